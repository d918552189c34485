//! The tests of recordings, as one program.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a failed setup must fail the test")]
#![allow(clippy::print_stdout, reason = "tests print what they skip and measure")]
#![allow(unreachable_pub, reason = "the modules belong to one program")]
#![allow(clippy::cast_precision_loss, clippy::format_push_string, reason = "recordings of tests are small")]

mod bounded_memory;
mod calls;
mod checking_observer;
mod codec;
mod common;
mod damage;
mod disk;
mod document;
mod ending_threads;
mod explicit_times;
mod failing_disks;
mod following;
mod forking;
mod killing;
mod live;
mod merging;
mod observing;
mod old_files;
mod opening;
mod outputs;
mod phases;
mod reading;
mod reading_memory;
mod recorded;
mod recording_builder;
mod recovering;
mod requested_dumps;
mod ring_bounds;
mod terminating;
mod typed_events;
mod versions;
mod waiting;

use stackweave_testkit::counting_allocator::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

//! The tests of recordings, as one program.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "what a test cannot set up must fail it")]
#![allow(clippy::print_stdout, reason = "a test says what it skips and what it measured")]
#![allow(unreachable_pub, reason = "the modules are those of one program")]
#![allow(clippy::cast_precision_loss, clippy::format_push_string, reason = "recordings of tests are small")]

mod asked_dumps;
mod bounded_memory;
mod calls;
mod codec;
mod common;
mod damage;
mod disk;
mod document;
mod ending_threads;
mod failing_disks;
mod following;
mod forking;
mod given_times;
mod killing;
mod live;
mod making;
mod merging;
mod observing;
mod old_files;
mod opening;
mod outputs;
mod phases;
mod reading;
mod reading_memory;
mod recorded;
mod recovering;
mod ring_bounds;
mod terminating;
mod typed_events;
mod versions;
mod waiting;
mod watching;

use stackweave_testkit::counting_allocator::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

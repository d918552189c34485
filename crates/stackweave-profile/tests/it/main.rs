//! The tests of profiles, as one program.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "what a test cannot set up must fail it")]
#![allow(unreachable_pub, reason = "the modules are those of one program")]

mod aggregating;
mod aggregating_memory;
mod common;
mod device_profiles;
mod devices;
mod devices_random;
mod diffing;
mod every_measure;
mod hiding;
mod json;
mod like_cprofile;
mod live;
mod memory;
mod memory_random;
mod memory_reads;
mod modules;
mod native;
mod open_spans;
mod recorded_costs;
mod recorded_names;
mod recorded_phases;
mod stacks;
mod timing;
mod timing_random;

use stackweave_testkit::counting_allocator::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

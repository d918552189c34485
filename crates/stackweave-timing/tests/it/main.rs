//! The tests of phases, as one program.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "what a test cannot set up must fail it")]
#![allow(unreachable_pub, reason = "the modules are those of one program")]

mod common;
mod forking;
mod hot;
mod model;
mod odd;
mod trees;

use stackweave_testkit::counting_allocator::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

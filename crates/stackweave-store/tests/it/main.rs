//! The tests of tables and labels, as one program.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "what a test cannot set up must fail it")]
#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "small numbers, and estimates")]

mod address_map;
mod blob_interning;
mod interning;
mod interrupted;
mod interrupted_blobs;
mod interruption;
mod many_labels;

use stackweave_testkit::counting_allocator::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

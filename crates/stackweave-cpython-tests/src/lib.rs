//! The functions under test for Python: a shared library that `ctypes` loads into each installed interpreter.
//!
//! The scripts in `python/` call it and compare with what Python reports about the same stack; the tests in `tests/`
//! run them.
#![expect(clippy::expect_used, reason = "a test that cannot do its work must fail")]
#![expect(clippy::missing_panics_doc, reason = "as above")]
#![expect(clippy::cast_precision_loss, reason = "the figures are rough")]

pub mod activations;
pub mod allocators;
pub mod calls;
pub mod codes;
pub mod gil;
pub mod other_allocators;
pub mod other_hook;
pub mod pythons;
pub mod repeated;
pub mod shutdown;
pub mod signals;
pub mod source_signals;
pub mod sources;
pub mod timing;
pub mod walks;

use stackweave_testkit::counting_allocator::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

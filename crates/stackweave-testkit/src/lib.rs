//! Building blocks of Stackweave's tests: stacks built by C, C++ and assembly fixtures, and outside oracles that
//! say what these stacks are.
//!
//! `STACKWEAVE_TEST_SUBJECT=libgcc` replaces Stackweave's unwinder by libgcc's: a test that then fails is itself
//! wrong.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![expect(clippy::expect_used, reason = "a test kit that cannot work must fail the test")]
#![expect(clippy::inline_always, reason = "the first frame of a capture is the function it is inlined in")]
#![expect(
    clippy::cast_possible_truncation,
    reason = "the platform is 64-bit: an address, a word and a usize are one size"
)]

pub mod child;
pub mod coroutine_stack;
pub mod counting_allocator;
mod event_kinds;
pub mod fixtures;
pub mod folder;
pub mod growing_file;
pub mod hostile_recording;
pub mod library;
pub mod modules;
pub mod oracles;
pub mod python_entry;
pub mod pythons;
pub mod random;
pub mod signals;
pub mod stack;
pub mod stack_checker;
pub mod stepping;
pub mod subject;
pub mod symbols;
pub mod tree;
pub mod truth;

use std::time::Duration;

/// Returns the processor time that this process has used. Other processes do not change it.
///
/// # Panics
/// When the system has no such clock.
pub fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid memory for a time.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) }, 0);
    Duration::from_secs(time.tv_sec.unsigned_abs()) + Duration::from_nanos(time.tv_nsec.unsigned_abs())
}

/// Returns the size of a test: `ci` by default, `long` if `STACKWEAVE_TEST_LONG` is set, as `make test-long` does.
pub fn scale<T>(ci: T, long: T) -> T {
    if std::env::var_os("STACKWEAVE_TEST_LONG").is_some_and(|value| value == "1") { long } else { ci }
}

//! What the tests of Stackweave are made of: stacks built by C, C++ and assembly fixtures, and outside
//! oracles that say what those stacks are.
//!
//! `STACKWEAVE_TEST_SUBJECT=libgcc` puts libgcc's unwinder in the place of Stackweave's: a test that then
//! fails is wrong itself.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![expect(clippy::expect_used, reason = "a test kit that cannot do its work must fail the test")]
#![expect(clippy::inline_always, reason = "the first frame of a capture is the function it is inlined in")]
#![expect(
    clippy::cast_possible_truncation,
    reason = "the platform is 64-bit: an address, a word and a usize are one size"
)]

pub mod child;
pub mod coroutine_stack;
pub mod counting_allocator;
pub mod fixtures;
pub mod folder;
pub mod growing_file;
pub mod ledger;
pub mod library;
pub mod modules;
pub mod oracles;
pub mod python_entry;
pub mod pythons;
pub mod random;
pub mod signals;
pub mod stack;
pub mod stepping;
pub mod subject;
pub mod symbols;
pub mod tree;
pub mod truth;
mod wild_kinds;
pub mod wild_recording;

use std::time::Duration;

/// The processor time that this process has taken: what another process does at the same time does not change it.
///
/// # Panics
/// When the system has no such clock.
pub fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid place for a time.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) }, 0);
    Duration::from_secs(time.tv_sec.unsigned_abs()) + Duration::from_nanos(time.tv_nsec.unsigned_abs())
}

/// How much a test does: `ci` as a rule, `long` where `STACKWEAVE_TEST_LONG` is set, which `make test-long` does.
pub fn scale<T>(ci: T, long: T) -> T {
    if std::env::var_os("STACKWEAVE_TEST_LONG").is_some_and(|value| value == "1") { long } else { ci }
}

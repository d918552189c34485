//! Checks that may run in a signal handler: they do not allocate until the verdict.

use std::ffi::c_void;

use stackweave_unwind::{Captured, CodeAddress, StackPointer, StopReason};

use crate::oracles::{self, Oracle, framehop, glibc, libgcc};
use crate::stack::{Compare, explain, first_difference, first_unequal};
use crate::subject;

/// Compares captured stacks with those of oracles, and remembers the first difference.
#[derive(Debug)]
pub struct StackChecker {
    ours: Vec<CodeAddress>,
    expected: Vec<CodeAddress>,
    failed_ours: Vec<CodeAddress>,
    failed_expected: Vec<CodeAddress>,
    our_pointers: Vec<StackPointer>,
    expected_pointers: Vec<StackPointer>,
    failure: Option<StackMismatch>,
    accepted: &'static [StopReason],
    checks: usize,
    frames: usize,
    unanswered: usize,
}

/// The stack that a check compares with: what was captured, by which oracle, and its number of frames.
struct OracleCheck {
    what: &'static str,
    oracle: &'static str,
    count: usize,
}

#[derive(Clone, Copy, Debug)]
struct StackMismatch {
    what: &'static str,
    oracle: &'static str,
    check: usize,
    index: usize,
    stop: StopReason,
}

/// Returns whether an oracle that relies on unwind tables stopped in interrupted code without tables, such as the
/// linkage stubs (PLT) of some linkers. Async-signal-safe.
pub fn is_lost(expected: &[CodeAddress]) -> bool {
    expected.last().is_some_and(|last| last.is_exact() && libgcc::function_start(*last) == 0)
}

impl StackChecker {
    /// Creates a checker for stacks of up to `limit` frames. Runs every oracle once, so that none has to
    /// initialise itself later.
    pub fn new(limit: usize) -> Self {
        let mut checker = Self {
            ours: vec![CodeAddress::default(); limit],
            expected: vec![CodeAddress::default(); limit],
            our_pointers: vec![StackPointer::default(); limit],
            expected_pointers: vec![StackPointer::default(); limit],
            failed_ours: Vec::with_capacity(limit),
            failed_expected: Vec::with_capacity(limit),
            failure: None,
            accepted: &[StopReason::EndOfStack],
            checks: 0,
            frames: 0,
            unanswered: 0,
        };
        subject::capture(&mut checker.ours, 0);
        glibc::capture(&mut checker.expected);
        libgcc::capture(&mut checker.expected, &mut [], 0);
        checker
    }

    /// Sets the stop reasons that are right for the next stacks; the default is only the end of the stack.
    pub const fn accept(&mut self, stops: &'static [StopReason]) {
        self.accepted = stops;
    }

    /// Captures here, and compares with the stacks that the oracles find. Async-signal-safe with
    /// [`oracles::SIGNAL_SAFE`].
    #[inline(never)]
    pub fn check_here(&mut self, what: &'static str, oracles: &[Oracle]) {
        let captured = subject::capture(&mut self.ours, 0);
        for oracle in oracles {
            let (name, count, compare) = match oracle {
                Oracle::Glibc => ("glibc", glibc::capture(&mut self.expected), Compare::Addresses),
                Oracle::Libgcc => {
                    let count = libgcc::capture(&mut self.expected, &mut self.expected_pointers, 0).len;
                    ("libgcc", count, Compare::AddressesAndKinds)
                }
                Oracle::Framehop => ("framehop", framehop::capture(&mut self.expected), Compare::Addresses),
            };
            let difference = first_difference(&self.ours[..captured.len], &self.expected[..count], compare);
            self.enter(&OracleCheck { what, oracle: name, count }, captured, difference);
            if *oracle == Oracle::Libgcc {
                let captured = subject::capture_with_stack_pointers(&mut self.ours, &mut self.our_pointers, 0);
                let common = captured.len.min(count);
                let pairs = self.our_pointers[..common].iter().zip(&self.expected_pointers);
                let difference =
                    pairs.enumerate().find(|(_, (ours, expected))| ours != expected).map(|(index, _)| index);
                self.enter(&OracleCheck { what, oracle: "libgcc, of stack pointers,", count }, captured, difference);
            }
        }
        self.frames += captured.len;
    }

    /// Captures the interrupted stack in a signal handler, and compares it with the frames that libgcc finds behind
    /// the signal frame. Returns whether libgcc found them all. Async-signal-safe.
    ///
    /// # Safety
    /// `context` is that of the signal handler that is running on this thread.
    #[inline(never)]
    pub unsafe fn check_context(&mut self, what: &'static str, context: *const c_void) -> bool {
        // SAFETY: the caller's promise.
        let captured = unsafe { subject::capture_from_context(context, &mut self.ours, 0) };
        let count = libgcc::capture_interrupted(&mut self.expected, 0).len;
        let difference = first_unequal(&self.ours[..captured.len], &self.expected[..count], Compare::AddressesAndKinds);
        self.enter(&OracleCheck { what, oracle: "libgcc", count }, captured, difference);
        self.frames += captured.len;
        !is_lost(&self.expected[..count])
    }

    /// Checks both ways of capturing in a signal handler.
    ///
    /// # Safety
    /// The same as for [`StackChecker::check_context`].
    pub unsafe fn check_in_handler(&mut self, what: &'static str, context: *const c_void) {
        // SAFETY: the caller's promise.
        let answered = unsafe { self.check_context(what, context) };
        // glibc does not report where it is lost.
        self.check_here(what, if answered { oracles::SIGNAL_SAFE } else { &[Oracle::Libgcc] });
    }

    /// Records a check whose stacks are in the checker's own buffers. Where the oracle is lost, our frames must
    /// only begin with the oracle's frames.
    fn enter(&mut self, check: &OracleCheck, captured: Captured, difference: Option<usize>) {
        self.checks += 1;
        let (ours, expected) = (&self.ours[..captured.len], &self.expected[..check.count]);
        let wrong = if is_lost(expected) {
            self.unanswered += 1;
            difference.filter(|&index| index < expected.len())
        } else {
            difference.or_else(|| (!self.accepted.contains(&captured.stop)).then_some(captured.len))
        };
        if let (Some(index), None) = (wrong, self.failure) {
            let &OracleCheck { what, oracle, .. } = check;
            self.failure = Some(StackMismatch { what, oracle, check: self.checks, index, stop: captured.stop });
            self.failed_ours.extend_from_slice(ours);
            self.failed_expected.extend_from_slice(expected);
        }
    }

    /// Records a comparison of the caller's stacks; `wrong` is the index of the first wrong frame.
    /// Async-signal-safe while the stacks are no longer than the checker's limit.
    pub fn record_comparison(
        &mut self,
        what: &'static str,
        (ours, stop): (&[CodeAddress], StopReason),
        expected: &[CodeAddress],
        wrong: Option<usize>,
    ) {
        self.checks += 1;
        self.frames += ours.len();
        if let (Some(index), None) = (wrong, self.failure) {
            self.failure = Some(StackMismatch { what, oracle: "the known stack", check: self.checks, index, stop });
            self.failed_ours.extend_from_slice(ours);
            self.failed_expected.extend_from_slice(expected);
        }
    }

    /// Returns how many checks were made so far.
    pub const fn checks(&self) -> usize {
        self.checks
    }

    /// Returns how many checks were incomplete, because the oracle could not leave the interrupted code.
    pub const fn unanswered(&self) -> usize {
        self.unanswered
    }

    /// Returns how many frames were captured so far.
    pub const fn frames(&self) -> usize {
        self.frames
    }

    /// Returns how many checks were made, if all succeeded.
    ///
    /// # Errors
    /// Describes the first check that failed.
    pub fn verdict(&self) -> Result<usize, String> {
        let Some(failure) = self.failure else { return Ok(self.checks) };
        let StackMismatch { what, oracle, check, index, stop } = failure;
        Err(format!(
            "{what}: check {check} of {} is not what {oracle} says (stopped: {stop})\n{}",
            self.checks,
            explain(&self.failed_ours, &self.failed_expected, index)
        ))
    }

    /// Fails the test if a check failed.
    ///
    /// # Panics
    /// Panics with the description of the first failed check, or if fewer than `least` checks were made.
    #[track_caller]
    pub fn expect_agreement(&self, least: usize) {
        if let Err(message) = self.verdict() {
            panic!("{message}");
        }
        assert!(self.checks >= least, "only {} checks were made, at least {least} were due", self.checks);
    }
}

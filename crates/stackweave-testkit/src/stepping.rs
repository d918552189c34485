//! Single-stepping by the trap flag, with a capture at every instruction.

use std::ffi::c_void;

use stackweave_unwind::{CodeAddress, StopReason};

use crate::fixtures::{sw_trap_off, sw_trap_on};
use crate::modules;
use crate::oracles::SIGNAL_SAFE;
use crate::oracles::libgcc::{self, function_start};
use crate::signals::{SignalStack, with_handlers};
use crate::stack::{Compare, first_unequal};
use crate::stack_checker::StackChecker;
use crate::subject;

const LIMIT: usize = 512;
/// The handler's own stack is captured every this many steps. The number is prime, so that all code is met.
const THROUGH_HANDLER_EVERY: usize = 7;

/// The results of single-stepping.
#[derive(Debug)]
pub struct Steps {
    /// Number of instructions; each has its own captures.
    pub total: usize,
    /// Number of instructions in each module that was loaded when stepping began, by path.
    pub by_module: Vec<(String, usize)>,
    /// The comparisons with libgcc and with the known frames.
    pub checker: StackChecker,
}

impl Steps {
    /// Returns how many instructions were in modules whose path contains `name`.
    pub fn within(&self, name: &str) -> usize {
        self.by_module.iter().filter(|(path, _)| path.contains(name)).map(|(_, count)| count).sum()
    }
}

/// The oracle for the captured stack at each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepOracle {
    /// libgcc, and the known frames.
    Libgcc,
    /// The known frames only, because the code leads libgcc into unreadable memory.
    KnownFrames,
}

/// Runs `body` one instruction at a time. At each, the stack captured from the context must equal libgcc's (if it
/// is the oracle), and end in all frames from here outward.
pub fn step_through(stack: SignalStack, oracle: StepOracle, body: &mut dyn FnMut()) -> Steps {
    let modules = modules::loaded();
    let mut counts = vec![0_usize; modules.len()];
    let mut checker = StackChecker::new(LIMIT);
    let mut frames = vec![CodeAddress::default(); LIMIT];
    let mut last = LastStep { frames: Vec::with_capacity(LIMIT) };
    let mut chain = Vec::with_capacity(LIMIT);
    let chain_at: *mut Vec<CodeAddress> = &raw mut chain;
    let mut total = 0;
    let mut on_step = |context: *mut c_void| {
        // SAFETY: this is the handler that received the context.
        let captured = unsafe { subject::capture_from_context(context, &mut frames, 0) };
        let (frames, stop) = (&frames[..captured.len], captured.stop);
        if let Some(pc) = frames.first()
            && let Some(module) = modules.iter().position(|module| module.contains(pc.address()))
        {
            counts[module] += 1;
        }
        // SAFETY: the chain was written before the first step, and does not change while stepping.
        let chain = unsafe { &*chain_at };
        let root_side = &frames[frames.len().saturating_sub(chain.len())..];
        let wrong = first_unequal(root_side, chain, Compare::Addresses)
            .or((stop != StopReason::EndOfStack).then_some(chain.len()));
        checker.record_comparison("the frames outside the stepped code", (root_side, stop), chain, wrong);
        if oracle == StepOracle::Libgcc {
            // SAFETY: as above.
            if unsafe { checker.check_context("stepping", context) } {
                last.keep(frames);
                if total % THROUGH_HANDLER_EVERY == 0 {
                    checker.check_here("stepping, through the handler", SIGNAL_SAFE);
                }
            } else {
                let wrong = last.first_not_called(frames);
                checker.record_comparison("code without tables, just called", (frames, stop), &last.frames, wrong);
            }
        }
        total += 1;
    };
    with_handlers(&[libc::SIGTRAP], stack, &mut on_step, || run_with_trap_flag(chain_at, body));
    let by_module = modules.into_iter().map(|module| module.path).zip(counts).collect();
    Steps { total, by_module, checker }
}

/// The stack at the previous step. Where libgcc is lost, in a linkage stub without tables, it is the only oracle:
/// the previous instruction called the stub.
struct LastStep {
    frames: Vec<CodeAddress>,
}

impl LastStep {
    fn keep(&mut self, frames: &[CodeAddress]) {
        self.frames.clear();
        self.frames.extend_from_slice(frames);
    }

    /// Returns the index of the first of `frames` that does not fit a call made by the last step's first frame.
    fn first_not_called(&self, frames: &[CodeAddress]) -> Option<usize> {
        let (Some(caller), Some(frame)) = (self.frames.first(), frames.get(1)) else { return Some(frames.len()) };
        if function_start(*caller) != function_start(*frame) {
            return Some(1);
        }
        first_unequal(&frames[2..], &self.frames[1..], Compare::Addresses).map(|index| index + 2)
    }
}

#[inline(never)]
fn run_with_trap_flag(chain: *mut Vec<CodeAddress>, body: &mut dyn FnMut()) {
    let mut frames = [CodeAddress::default(); LIMIT];
    let captured = libgcc::capture(&mut frames, &mut [], 1);
    // SAFETY: the vector is `step_through`'s own, with room for LIMIT frames; no step has been made yet.
    unsafe { (*chain).extend_from_slice(&frames[..captured.len]) };
    // SAFETY: SIGTRAP has a handler now.
    unsafe { sw_trap_on() };
    body();
    // SAFETY: sets a flag of the processor.
    unsafe { sw_trap_off() };
}

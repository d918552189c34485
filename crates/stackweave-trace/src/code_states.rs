//! The treatment of the calls of each function: one byte for each code object that was seen.
//!
//! Hot file: [`CodeStates::state`] neither allocates nor locks. Guarded by the GIL.

use std::cell::{Cell, RefCell, UnsafeCell};
use std::collections::HashMap;
use std::ptr;

/// The trace's treatment of the calls of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum CodeState {
    /// It is not decided yet.
    Unknown,
    /// Calls are recorded.
    Plain,
    /// It is a generator: its steps are recorded.
    Generator,
    /// It is a coroutine: its steps are recorded, and it may be the outermost of a task.
    Coroutine,
    /// Each of its calls is passed to the describer.
    Described,
    /// The filters exclude it.
    Excluded,
    /// It is excluded because it is called often, and its calls are short.
    Demoted,
}

impl CodeState {
    /// Returns whether its calls are on shadow stacks.
    #[inline(always)]
    pub(crate) fn is_recorded(self) -> bool {
        !matches!(self, Self::Excluded | Self::Demoted)
    }
}

/// The description of the calls of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DescribedCode {
    /// A bit for each of the first 64 patterns that match it.
    pub(crate) matched: u64,
    /// Whether native stacks are wanted.
    pub(crate) native: bool,
    /// Its state if calls were not described.
    pub(crate) otherwise: CodeState,
}

/// The number of calls of a function, and their total self time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CallTiming {
    pub(crate) calls: u32,
    pub(crate) ticks: u64,
}

/// The functions of a trace.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct CodeStates {
    first: Cell<*const CodeState>,
    count: Cell<u32>,
    states: UnsafeCell<Vec<CodeState>>,
    described: RefCell<HashMap<u32, DescribedCode>>,
    timings: UnsafeCell<Vec<CallTiming>>,
    /// The number of open calls that began before their function was demoted.
    open: RefCell<HashMap<u32, u32>>,
    /// The number of such functions.
    open_count: Cell<usize>,
}

/// The largest number of code objects that fit into a call.
const MAX_CODES: usize = 1 << 23;
const FIRST_CAPACITY: usize = 1 << 12;

impl CodeStates {
    pub(crate) fn new() -> Self {
        Self {
            first: Cell::new(ptr::null()),
            count: Cell::new(0),
            states: UnsafeCell::default(),
            described: RefCell::default(),
            timings: UnsafeCell::default(),
            open: RefCell::default(),
            open_count: Cell::new(0),
        }
    }

    /// Returns the state of the code object with this number.
    #[inline(always)]
    pub(crate) fn state(&self, code: u32) -> CodeState {
        if code >= self.count.get() {
            return CodeState::Unknown;
        }
        // SAFETY: below the count, in memory that is replaced only together with it.
        unsafe { *self.first.get().add(code as usize) }
    }

    /// Sets the state. A code object whose number does not fit is excluded.
    pub(crate) fn set_state(&self, code: u32, state: CodeState) -> CodeState {
        let index = code as usize;
        if index >= MAX_CODES {
            return CodeState::Excluded;
        }
        // SAFETY: the GIL is held, and there is no reference into it.
        let states = unsafe { &mut *self.states.get() };
        if index >= states.len() {
            states.resize((index + 1).next_power_of_two().max(FIRST_CAPACITY), CodeState::Unknown);
            self.first.set(states.as_ptr());
            self.count.set(u32::try_from(states.len()).unwrap_or(u32::MAX));
        }
        states[index] = state;
        state
    }

    /// Sets that each of its calls is described.
    pub(crate) fn describe(&self, code: u32, described: DescribedCode) -> CodeState {
        self.described.borrow_mut().insert(code, described);
        self.set_state(code, CodeState::Described)
    }

    /// Returns how its calls are described.
    pub(crate) fn described(&self, code: u32) -> Option<DescribedCode> {
        self.described.borrow().get(&code).copied()
    }

    /// Adds a call with this self time. After `calls` of them, returns their sums and starts afresh.
    #[inline(always)]
    pub(crate) fn time(&self, code: u32, ticks: u64, calls: u32) -> Option<CallTiming> {
        // SAFETY: the GIL is held, and there is no reference into it.
        let timings = unsafe { &mut *self.timings.get() };
        if timings.len() <= code as usize {
            grow(timings, code);
        }
        let timing = timings.get_mut(code as usize)?;
        timing.calls += 1;
        timing.ticks = timing.ticks.wrapping_add(ticks);
        (timing.calls >= calls).then(|| std::mem::take(timing))
    }

    /// Excludes its calls from now on; that many are open.
    pub(crate) fn demote(&self, code: u32, open: u32) {
        self.set_state(code, CodeState::Demoted);
        if open > 0 {
            self.open.borrow_mut().insert(code, open);
            self.open_count.set(self.open.borrow().len());
        }
    }

    /// Counts the end of a call that began before its function was demoted.
    pub(crate) fn end_demoted_call(&self, code: u32) {
        let mut open = self.open.borrow_mut();
        if let Some(count) = open.get_mut(&code) {
            *count -= 1;
            if *count == 0 {
                open.remove(&code);
                self.open_count.set(open.len());
            }
        }
    }

    /// Returns whether no more events of it are needed.
    #[inline(always)]
    pub(crate) fn is_finished(&self, code: u32) -> bool {
        let state = self.state(code);
        !state.is_recorded() && (self.open_count.get() == 0 || !self.open.borrow().contains_key(&code))
    }
}

#[cold]
fn grow(timings: &mut Vec<CallTiming>, code: u32) {
    let index = code as usize;
    if index < MAX_CODES {
        timings.resize((index + 1).next_power_of_two().max(FIRST_CAPACITY), CallTiming::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_kept_for_any_number_of_code_objects() {
        let codes = CodeStates::new();
        assert_eq!(codes.state(5), CodeState::Unknown);
        for code in (1..20_000).step_by(7) {
            codes.set_state(code, if code % 2 == 0 { CodeState::Plain } else { CodeState::Excluded });
        }
        for code in 1..20_000 {
            let expected = match (code % 7 == 1, code % 2) {
                (false, _) => CodeState::Unknown,
                (true, 0) => CodeState::Plain,
                (true, _) => CodeState::Excluded,
            };
            assert_eq!(codes.state(code), expected, "{code}");
        }
        assert_eq!(codes.set_state(1 << 23, CodeState::Plain), CodeState::Excluded);
    }

    #[test]
    fn a_demoted_function_is_finished_when_its_last_open_call_ends() {
        let codes = CodeStates::new();
        codes.set_state(3, CodeState::Plain);
        assert!(!codes.is_finished(3));
        codes.demote(3, 2);
        codes.end_demoted_call(3);
        assert!(!codes.is_finished(3));
        codes.end_demoted_call(3);
        assert!(codes.is_finished(3));
    }
}

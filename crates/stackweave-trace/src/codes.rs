//! What is done about each function: a byte for each code object that was seen.
//!
//! Hot file: [`Codes::state`] neither allocates nor locks. Guarded by the GIL.

use std::cell::{Cell, RefCell, UnsafeCell};
use std::collections::HashMap;
use std::ptr;

/// What is done about a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    /// Not decided yet.
    Unknown,
    /// Its calls are recorded.
    Plain,
    /// Its steps are recorded: a generator.
    Generator,
    /// The same, and it may be what a task runs: a coroutine.
    Coroutine,
    /// Somebody is asked about each of its calls.
    Described,
    /// Left out by the filters.
    LeftOut,
    /// Left out since it is called often, and short.
    Demoted,
}

impl State {
    /// Whether its calls are on shadow stacks.
    #[inline(always)]
    pub(crate) fn is_recorded(self) -> bool {
        !matches!(self, Self::LeftOut | Self::Demoted)
    }
}

/// More about a function whose calls are described.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Described {
    /// A bit for each of the first 64 patterns that stand for it.
    pub(crate) matched: u64,
    /// Whether native stacks are wanted.
    pub(crate) native: bool,
    /// What it would be otherwise.
    pub(crate) otherwise: State,
}

/// How long the calls of a function have taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Timing {
    pub(crate) calls: u32,
    pub(crate) ticks: u64,
}

/// All functions of a trace.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Codes {
    first: Cell<*const State>,
    count: Cell<u32>,
    states: UnsafeCell<Vec<State>>,
    described: RefCell<HashMap<u32, Described>>,
    timings: UnsafeCell<Vec<Timing>>,
    /// Functions that are demoted: how many of their calls are open, that began before.
    open: RefCell<HashMap<u32, u32>>,
    /// How many such functions there are.
    open_count: Cell<usize>,
}

/// The numbers of code objects that fit into a call.
const MOST: usize = 1 << 23;
const FIRST: usize = 1 << 12;

impl Codes {
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

    /// What is done about the code object with this number.
    #[inline(always)]
    pub(crate) fn state(&self, code: u32) -> State {
        if code >= self.count.get() {
            return State::Unknown;
        }
        // SAFETY: below the count, in memory that is replaced only together with it.
        unsafe { *self.first.get().add(code as usize) }
    }

    /// Decides it. One whose number does not fit is left out.
    pub(crate) fn set_state(&self, code: u32, state: State) -> State {
        let place = code as usize;
        if place >= MOST {
            return State::LeftOut;
        }
        // SAFETY: the GIL is held, and nobody has a reference into it.
        let states = unsafe { &mut *self.states.get() };
        if place >= states.len() {
            states.resize((place + 1).next_power_of_two().max(FIRST), State::Unknown);
            self.first.set(states.as_ptr());
            self.count.set(u32::try_from(states.len()).unwrap_or(u32::MAX));
        }
        states[place] = state;
        state
    }

    /// Decides that somebody is asked about each of its calls.
    pub(crate) fn describe(&self, code: u32, described: Described) -> State {
        self.described.borrow_mut().insert(code, described);
        self.set_state(code, State::Described)
    }

    /// What is to be described of it.
    pub(crate) fn described(&self, code: u32) -> Option<Described> {
        self.described.borrow().get(&code).copied()
    }

    /// One of its calls has taken that long by itself. After `calls` of them: all of them, and counts from anew.
    #[inline(always)]
    pub(crate) fn time(&self, code: u32, ticks: u64, calls: u32) -> Option<Timing> {
        // SAFETY: the GIL is held, and nobody has a reference into it.
        let timings = unsafe { &mut *self.timings.get() };
        if timings.len() <= code as usize {
            make_room(timings, code);
        }
        let timing = timings.get_mut(code as usize)?;
        timing.calls += 1;
        timing.ticks = timing.ticks.wrapping_add(ticks);
        (timing.calls >= calls).then(|| std::mem::take(timing))
    }

    /// Leaves its calls out from now on; that many are open.
    pub(crate) fn demote(&self, code: u32, open: u32) {
        self.set_state(code, State::Demoted);
        if open > 0 {
            self.open.borrow_mut().insert(code, open);
            self.open_count.set(self.open.borrow().len());
        }
    }

    /// A call of it ends that began before it was demoted.
    pub(crate) fn one_ends(&self, code: u32) {
        let mut open = self.open.borrow_mut();
        if let Some(count) = open.get_mut(&code) {
            *count -= 1;
            if *count == 0 {
                open.remove(&code);
                self.open_count.set(open.len());
            }
        }
    }

    /// Whether nothing needs to be told of it any more.
    #[inline(always)]
    pub(crate) fn is_over(&self, code: u32) -> bool {
        let state = self.state(code);
        !state.is_recorded() && (self.open_count.get() == 0 || !self.open.borrow().contains_key(&code))
    }
}

#[cold]
fn make_room(timings: &mut Vec<Timing>, code: u32) {
    let place = code as usize;
    if place < MOST {
        timings.resize((place + 1).next_power_of_two().max(FIRST), Timing::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_kept_however_many_there_are() {
        let codes = Codes::new();
        assert_eq!(codes.state(5), State::Unknown);
        for code in (1..20_000).step_by(7) {
            codes.set_state(code, if code % 2 == 0 { State::Plain } else { State::LeftOut });
        }
        for code in 1..20_000 {
            let expected = match (code % 7 == 1, code % 2) {
                (false, _) => State::Unknown,
                (true, 0) => State::Plain,
                (true, _) => State::LeftOut,
            };
            assert_eq!(codes.state(code), expected, "{code}");
        }
        assert_eq!(codes.set_state(1 << 23, State::Plain), State::LeftOut);
    }

    #[test]
    fn what_is_demoted_is_over_when_its_last_call_is() {
        let codes = Codes::new();
        codes.set_state(3, State::Plain);
        assert!(!codes.is_over(3));
        codes.demote(3, 2);
        codes.one_ends(3);
        assert!(!codes.is_over(3));
        codes.one_ends(3);
        assert!(codes.is_over(3));
    }
}

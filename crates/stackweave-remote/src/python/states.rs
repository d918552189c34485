//! The thread states of all interpreters.

use std::collections::HashSet;

use stackweave_cpython::layout::{GilLayout, is_plausible};

use super::problem::Problem;
use super::runtime::Runtime;
use super::snapshot::PageSnapshot;

/// A thread state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PyThreadState {
    pub(super) address: u64,
    pub(super) interpreter: u64,
    pub(super) pthread: u64,
    /// The thread id as the process itself sees it; 0 if it is not known.
    pub(super) task: u64,
    pub(super) has_gil: bool,
}

/// All states that can be found, the newest interpreters first, and the problem that hid others.
#[derive(Debug, Default)]
pub(super) struct ThreadStates {
    pub(super) states: Vec<PyThreadState>,
    pub(super) problem: Option<Problem>,
}

/// The maximum number of states.
const MAX_STATES: usize = 1 << 20;

impl ThreadStates {
    pub(super) fn read(snapshot: &PageSnapshot<'_>, runtime: &Runtime) -> Self {
        let mut found = Self::default();
        found.problem = StateSearch { snapshot, runtime, seen: HashSet::new() }.all(&mut found.states).err();
        found
    }
}

struct StateSearch<'a> {
    snapshot: &'a PageSnapshot<'a>,
    runtime: &'a Runtime,
    /// The visited addresses of interpreters and states.
    seen: HashSet<u64>,
}

impl StateSearch<'_> {
    fn all(&mut self, states: &mut Vec<PyThreadState>) -> Result<(), Problem> {
        let lists = &self.runtime.lists;
        let mut interpreter = self.word(self.runtime.address, lists.interpreters)?;
        while interpreter != 0 {
            self.visit(interpreter)?;
            self.of_interpreter(interpreter, states)?;
            interpreter = self.word(interpreter, lists.next_interpreter)?;
        }
        Ok(())
    }

    fn of_interpreter(&mut self, interpreter: u64, states: &mut Vec<PyThreadState>) -> Result<(), Problem> {
        let lists = &self.runtime.lists;
        let holder = self.holder(interpreter);
        let mut state = self.word(interpreter, lists.threads)?;
        while state != 0 {
            self.visit(state)?;
            if self.word(state, lists.interpreter)? != interpreter {
                return Err(Problem::Lists);
            }
            states.push(PyThreadState {
                address: state,
                interpreter,
                pthread: self.word(state, self.runtime.layout.thread.thread_id)?,
                task: lists.native_thread_id.map_or(Ok(0), |offset| self.word(state, offset))?,
                has_gil: holder == Some(state),
            });
            state = self.word(state, lists.next_thread)?;
        }
        Ok(())
    }

    /// Returns the state that holds the GIL of an interpreter, which other interpreters may share.
    fn holder(&self, interpreter: u64) -> Option<u64> {
        match self.runtime.lists.gil {
            GilLayout::OfRuntime { holder } => self.snapshot.word(self.runtime.address, holder),
            GilLayout::OfInterpreter { gil, holder, locked } => {
                let gil = self.snapshot.word(interpreter, gil).filter(|gil| is_plausible(*gil))?;
                // -1 before it is first taken.
                let is_locked = self.snapshot.half_word(gil, locked)? == 1;
                self.snapshot.word(gil, holder).filter(|_| is_locked)
            }
        }
    }

    fn visit(&mut self, address: u64) -> Result<(), Problem> {
        let is_new = is_plausible(address) && self.seen.len() < MAX_STATES && self.seen.insert(address);
        if is_new { Ok(()) } else { Err(Problem::Lists) }
    }

    fn word(&self, address: u64, offset: usize) -> Result<u64, Problem> {
        self.snapshot.word(address, offset).ok_or(Problem::Lists)
    }
}

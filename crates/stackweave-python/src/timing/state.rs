//! What a `Feed` has more when it is a `Timing`: the recorder of phases, the program's clock, and what was odd.
//!
//! Hot file: no allocation and no lock without a clock of the program's. The GIL is held.

use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyInt;
use stackweave_core::{RawFrame, StackId};
use stackweave_recording::Recorder;
use stackweave_recording::timing::{Outcome, Timing, Token};

use super::arguments::More;
use super::tally::Tally;
use crate::errors::Error;
use crate::keywords::type_name;

/// The phases of a recording.
pub(crate) struct TimingState {
    engine: Timing,
    clock: Option<Clock>,
    /// Phases that have begun, and that were ended by who began them. Written with the GIL held.
    begun: AtomicU64,
    ended: AtomicU64,
    tally: Mutex<Tally>,
}

/// A clock of the program's.
struct Clock {
    /// Until the recording is stopped: it may refer to the recording.
    tell: Mutex<Option<Py<PyAny>>>,
    /// What it said when the recording of this process began.
    first: AtomicI64,
}

/// Calls a function of the recorder of phases: at the time that the program's clock says, if it has one.
macro_rules! told {
    ($state:expr, $method:ident ( $($argument:expr),* )) => {
        match $state.now()? {
            None => $state.engine.$method($($argument),*),
            Some(ns) => $state.engine.at(ns).$method($($argument),*),
        }
    };
}

impl fmt::Debug for TimingState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimingState").finish_non_exhaustive()
    }
}

impl TimingState {
    pub(super) fn new(recorder: &Recorder, clock: Option<Bound<'_, PyAny>>) -> PyResult<Self> {
        let engine = Timing::new(recorder.clone());
        let engine = engine.ok_or_else(|| Error::start("the recording has no numbers left for phases"))?;
        let clock = clock.map(Clock::new).transpose()?;
        Ok(Self {
            engine,
            clock,
            begun: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            tally: Mutex::new(Tally::default()),
        })
    }

    pub(super) fn engine(&self) -> &Timing {
        &self.engine
    }

    /// Nanoseconds since the recording began; `None` if the program has no clock of its own.
    #[inline]
    fn now(&self) -> PyResult<Option<u64>> {
        match &self.clock {
            None => Ok(None),
            Some(clock) => clock.now(),
        }
    }

    #[inline]
    pub(super) fn begin(&self, frame: RawFrame, more: &More) -> PyResult<Token> {
        let token = match more {
            More::Nothing => told!(self, push(frame)),
            More::Code { bytecode_count, inline_depth } => {
                told!(self, push_code(frame, *bytecode_count, *inline_depth))
            }
            More::Details(json) => told!(self, push_with(frame, json)),
        };
        add(&self.begun, 1);
        Ok(token)
    }

    pub(super) fn begin_run(&self, frame: RawFrame, json: &[u8]) -> PyResult<Token> {
        let token = told!(self, push_run(frame, json));
        add(&self.begun, 1);
        Ok(token)
    }

    /// What began last on this thread ends; false if nothing is open here.
    #[inline]
    pub(super) fn end(&self) -> PyResult<bool> {
        let is_ended = told!(self, pop_if_open());
        add(&self.ended, u64::from(is_ended));
        Ok(is_ended)
    }

    pub(super) fn end_with(&self, outcome: Outcome, json: &[u8]) -> PyResult<bool> {
        let is_ended = told!(self, pop_if_open_with(outcome, json));
        add(&self.ended, u64::from(is_ended));
        Ok(is_ended)
    }

    /// This phase ends, and with it whatever was left open in it.
    pub(super) fn close(&self, token: Token, outcome: Outcome, json: &[u8]) -> PyResult<()> {
        let inner_of = |open: &[RawFrame]| open.get(token.depth() + 1..).unwrap_or_default().to_vec();
        let inner: Vec<RawFrame> = self.engine.with_open(inner_of);
        let is_ended = told!(self, close(token, outcome, json));
        add(&self.ended, u64::from(is_ended));
        if is_ended && !inner.is_empty() {
            self.with_tally(|tally| tally.add_left_open(&inner));
        }
        Ok(())
    }

    /// An end came where nothing is open, at this place.
    pub(super) fn unmatched(&self, place: String, stack: Option<StackId>) -> PyResult<()> {
        told!(self, unmatched_pop(None, stack));
        self.with_tally(|tally| tally.add_unmatched(place));
        Ok(())
    }

    /// Looks at what was odd. Never with code of Python's in between.
    pub(super) fn with_tally<R>(&self, look: impl FnOnce(&mut Tally) -> R) -> R {
        look(&mut self.tally.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Phases that have begun, and that nothing has ended.
    pub(super) fn still_open(&self) -> u64 {
        let ended = self.ended.load(Ordering::Relaxed) + self.engine.oddities().left_open;
        self.begun.load(Ordering::Relaxed).saturating_sub(ended)
    }

    /// In a forked child: what other threads have begun is none of its business.
    pub(crate) fn forked(&self) {
        if let Some(clock) = &self.clock {
            clock.begin_again();
        }
        let open = self.engine.depth() as u64 + self.engine.oddities().left_open;
        self.begun.store(open, Ordering::Relaxed);
        self.ended.store(0, Ordering::Relaxed);
    }

    /// The recording is over, and needs the program's clock no longer.
    pub(crate) fn stopped(&self) {
        if let Some(clock) = &self.clock {
            let tell = clock.tell.lock().unwrap_or_else(PoisonError::into_inner).take();
            drop(tell);
        }
    }
}

/// Without the price of an atomic addition: the GIL is held.
#[inline]
fn add(counter: &AtomicU64, count: u64) {
    counter.store(counter.load(Ordering::Relaxed) + count, Ordering::Relaxed);
}

impl Clock {
    fn new(tell: Bound<'_, PyAny>) -> PyResult<Self> {
        let first = nanoseconds(&tell.call0()?)?;
        Ok(Self { tell: Mutex::new(Some(tell.unbind())), first: AtomicI64::new(first) })
    }

    /// Nanoseconds since the recording began; `None` if that is over.
    fn now(&self) -> PyResult<Option<u64>> {
        let first = self.first.load(Ordering::Relaxed);
        Ok(self.read()?.map(|now| u64::try_from(i128::from(now) - i128::from(first)).unwrap_or(0)))
    }

    /// In a forked child, whose recording begins now.
    fn begin_again(&self) {
        if let Ok(Some(now)) = self.read() {
            self.first.store(now, Ordering::Relaxed);
        }
    }

    fn read(&self) -> PyResult<Option<i64>> {
        // SAFETY: whoever tells of a phase is called by the interpreter.
        let py = unsafe { Python::assume_attached() };
        let tell = self.tell.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|tell| tell.bind(py).clone());
        let Some(tell) = tell else { return Ok(None) };
        nanoseconds(&tell.call0()?).map(Some)
    }
}

fn nanoseconds(told: &Bound<'_, PyAny>) -> PyResult<i64> {
    if !told.is_instance_of::<PyInt>() {
        let message = format!("clock must give an int, of nanoseconds, not {}", type_name(told));
        return Err(PyTypeError::new_err(message));
    }
    let wide = |_| PyValueError::new_err("clock must give nanoseconds from -2**63 to 2**63 - 1");
    told.extract().map_err(wide)
}

//! The state of a `Feed` that is a `Timing`: the recorder of phases, the program's clock, and the anomalies.
//!
//! Hot file: no allocation and no lock unless the program has its own clock. The GIL is held.

use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyInt;
use stackweave_core::{RawFrame, StackId};
use stackweave_recording::Recorder;
use stackweave_recording::timing::{Outcome, Timing, Token};

use super::anomaly_tally::AnomalyTally;
use super::arguments::PhaseAttributes;
use crate::errors::Error;
use crate::keywords::type_name;

/// The phases of a recording.
pub(crate) struct TimingState {
    engine: Timing,
    clock: Option<ProgramClock>,
    /// The numbers of phases that have begun, and of phases that were ended explicitly. Written with the GIL held.
    begun_count: AtomicU64,
    ended_count: AtomicU64,
    tally: Mutex<AnomalyTally>,
}

/// The program's own clock.
struct ProgramClock {
    /// Dropped when the recording stops, because it may refer to the recording.
    function: Mutex<Option<Py<PyAny>>>,
    /// The time when the recording of this process began.
    first: AtomicI64,
}

/// Calls a function of the recorder of phases, with the time of the program's clock if there is one.
macro_rules! at_current_time {
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
        let clock = clock.map(ProgramClock::new).transpose()?;
        Ok(Self {
            engine,
            clock,
            begun_count: AtomicU64::new(0),
            ended_count: AtomicU64::new(0),
            tally: Mutex::new(AnomalyTally::default()),
        })
    }

    pub(super) fn engine(&self) -> &Timing {
        &self.engine
    }

    /// Returns the nanoseconds since the recording began; `None` if the program has no own clock.
    #[inline]
    fn now(&self) -> PyResult<Option<u64>> {
        match &self.clock {
            None => Ok(None),
            Some(clock) => clock.now(),
        }
    }

    #[inline]
    pub(super) fn begin(&self, frame: RawFrame, attributes: &PhaseAttributes) -> PyResult<Token> {
        let token = match attributes {
            PhaseAttributes::Nothing => at_current_time!(self, push(frame)),
            PhaseAttributes::Code { bytecode_count, inline_depth } => {
                at_current_time!(self, push_code(frame, *bytecode_count, *inline_depth))
            }
            PhaseAttributes::Json(json) => at_current_time!(self, push_with(frame, json)),
        };
        add(&self.begun_count, 1);
        Ok(token)
    }

    pub(super) fn begin_run(&self, frame: RawFrame, json: &[u8]) -> PyResult<Token> {
        let token = at_current_time!(self, push_run(frame, json));
        add(&self.begun_count, 1);
        Ok(token)
    }

    /// Ends the innermost open phase of this thread. Returns false if there is none.
    #[inline]
    pub(super) fn end(&self) -> PyResult<bool> {
        let is_ended = at_current_time!(self, pop_if_open());
        add(&self.ended_count, u64::from(is_ended));
        Ok(is_ended)
    }

    pub(super) fn end_with(&self, outcome: Outcome, json: &[u8]) -> PyResult<bool> {
        let is_ended = at_current_time!(self, pop_if_open_with(outcome, json));
        add(&self.ended_count, u64::from(is_ended));
        Ok(is_ended)
    }

    /// Ends a phase, and the open phases inside it.
    pub(super) fn close(&self, token: Token, outcome: Outcome, json: &[u8]) -> PyResult<()> {
        let inner_of = |open: &[RawFrame]| open.get(token.depth() + 1..).unwrap_or_default().to_vec();
        let inner: Vec<RawFrame> = self.engine.with_open(inner_of);
        let is_ended = at_current_time!(self, close(token, outcome, json));
        add(&self.ended_count, u64::from(is_ended));
        if is_ended && !inner.is_empty() {
            self.with_tally(|tally| tally.add_left_open(&inner));
        }
        Ok(())
    }

    /// Records a pop at this location without an open phase.
    pub(super) fn unmatched(&self, location: String, stack: Option<StackId>) -> PyResult<()> {
        at_current_time!(self, unmatched_pop(None, stack));
        self.with_tally(|tally| tally.add_unmatched(location));
        Ok(())
    }

    /// Calls `work` with the anomalies. It must not run Python code.
    pub(super) fn with_tally<R>(&self, work: impl FnOnce(&mut AnomalyTally) -> R) -> R {
        work(&mut self.tally.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the number of phases that have begun and not ended.
    pub(super) fn still_open(&self) -> u64 {
        let ended = self.ended_count.load(Ordering::Relaxed) + self.engine.anomalies().left_open;
        self.begun_count.load(Ordering::Relaxed).saturating_sub(ended)
    }

    /// Resets a forked child, which does not have the open phases of other threads.
    pub(crate) fn forked(&self) {
        if let Some(clock) = &self.clock {
            clock.restart();
        }
        let open = self.engine.depth() as u64 + self.engine.anomalies().left_open;
        self.begun_count.store(open, Ordering::Relaxed);
        self.ended_count.store(0, Ordering::Relaxed);
    }

    /// Drops the program's clock when the recording has stopped.
    pub(crate) fn stopped(&self) {
        if let Some(clock) = &self.clock {
            let function = clock.function.lock().unwrap_or_else(PoisonError::into_inner).take();
            drop(function);
        }
    }
}

/// Adds to a counter without the cost of an atomic addition, because the GIL is held.
#[inline]
fn add(counter: &AtomicU64, count: u64) {
    counter.store(counter.load(Ordering::Relaxed) + count, Ordering::Relaxed);
}

impl ProgramClock {
    fn new(function: Bound<'_, PyAny>) -> PyResult<Self> {
        let first = nanoseconds(&function.call0()?)?;
        Ok(Self { function: Mutex::new(Some(function.unbind())), first: AtomicI64::new(first) })
    }

    /// Returns the nanoseconds since the recording began; `None` if it has stopped.
    fn now(&self) -> PyResult<Option<u64>> {
        let first = self.first.load(Ordering::Relaxed);
        Ok(self.read()?.map(|now| u64::try_from(i128::from(now) - i128::from(first)).unwrap_or(0)))
    }

    /// Restarts the clock in a forked child, whose recording begins now.
    fn restart(&self) {
        if let Ok(Some(now)) = self.read() {
            self.first.store(now, Ordering::Relaxed);
        }
    }

    fn read(&self) -> PyResult<Option<i64>> {
        // SAFETY: the interpreter calls all functions that record phases, so this thread is attached.
        let py = unsafe { Python::assume_attached() };
        let function = self.function.lock().unwrap_or_else(PoisonError::into_inner);
        let function = function.as_ref().map(|function| function.bind(py).clone());
        let Some(function) = function else { return Ok(None) };
        nanoseconds(&function.call0()?).map(Some)
    }
}

fn nanoseconds(time: &Bound<'_, PyAny>) -> PyResult<i64> {
    if !time.is_instance_of::<PyInt>() {
        let message = format!("clock must return an int, of nanoseconds, not {}", type_name(time));
        return Err(PyTypeError::new_err(message));
    }
    let too_wide = |_| PyValueError::new_err("clock must return nanoseconds from -2**63 to 2**63 - 1");
    time.extract().map_err(too_wide)
}

//! Functions that return the open phases and the anomalies of a timing.

use pyo3::prelude::*;
use stackweave_core::RawFrame;

use super::state::TimingState;
use crate::errors::Error;
use crate::recording::Feed;

/// A name, a file and a line; "" and 0 if unknown.
type PhaseLocation = (String, String, u32);

pub(super) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(timing_start, module)?)?;
    module.add_function(wrap_pyfunction!(timing_open_phases, module)?)?;
    module.add_function(wrap_pyfunction!(timing_problems, module)?)?;
    module.add_function(wrap_pyfunction!(timing_anomalies, module)?)
}

/// Makes the recording record phases, with the times of this clock or with its own.
#[pyfunction]
#[pyo3(signature = (recording, clock, /))]
fn timing_start(recording: &Bound<'_, Feed>, clock: Option<Bound<'_, PyAny>>) -> PyResult<()> {
    let feed = recording.get();
    let state = TimingState::new(feed.recorder()?, clock)?;
    feed.set_timing(state).map_err(|_| Error::state("the recording records phases already").into())
}

/// Returns the open phases of the calling thread, outermost first.
#[pyfunction]
#[pyo3(signature = (recording, /))]
fn timing_open_phases(recording: &Bound<'_, Feed>) -> PyResult<Vec<PhaseLocation>> {
    let open = state_of(recording)?.engine().with_open(<[RawFrame]>::to_vec);
    Ok(open.into_iter().map(location_of).collect())
}

/// Returns the numbers of pops without a push, of phases that were left open inside another, of open phases, and of ends of phases
/// that were not open.
#[pyfunction]
#[pyo3(signature = (recording, /))]
fn timing_problems(recording: &Bound<'_, Feed>) -> PyResult<(u64, u64, u64, u64)> {
    let state = state_of(recording)?;
    let anomalies = state.engine().anomalies();
    Ok((anomalies.unmatched_pops, anomalies.left_open, state.still_open(), anomalies.lost_tokens))
}

/// Returns the phases that were left open and the locations of pops without a push: the first ones of each, with their counts.
#[pyfunction]
#[pyo3(signature = (recording, /))]
#[expect(clippy::type_complexity, reason = "two lists of rows for Python")]
fn timing_anomalies(recording: &Bound<'_, Feed>) -> PyResult<(Vec<(PhaseLocation, u64)>, Vec<(String, u64)>)> {
    let (left_open, unmatched) =
        state_of(recording)?.with_tally(|tally| (tally.left_open().to_vec(), tally.unmatched().to_vec()));
    Ok((left_open.into_iter().map(|(frame, count)| (location_of(frame), count)).collect(), unmatched))
}

fn state_of<'a>(recording: &'a Bound<'_, Feed>) -> PyResult<&'a TimingState> {
    recording.get().timing().ok_or_else(|| Error::state("the recording does not record phases").into())
}

fn location_of(frame: RawFrame) -> PhaseLocation {
    let Some(label) = stackweave_store::locate_label(frame) else { return PhaseLocation::default() };
    (label.name.to_string(), label.filename.to_string(), label.position.line.unwrap_or(0))
}

//! What is open on a thread, and what was odd.

use pyo3::prelude::*;
use stackweave_core::RawFrame;

use super::state::TimingState;
use crate::errors::Error;
use crate::recording::Feed;

/// A name, a file and a line; "" and 0 where there is none.
type Place = (String, String, u32);

pub(super) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(timing_start, module)?)?;
    module.add_function(wrap_pyfunction!(timing_open_frames, module)?)?;
    module.add_function(wrap_pyfunction!(timing_problems, module)?)?;
    module.add_function(wrap_pyfunction!(timing_tally, module)?)
}

/// From now on the recording takes phases, at the times that this clock gives, or at its own.
#[pyfunction]
#[pyo3(signature = (recording, clock, /))]
fn timing_start(recording: &Bound<'_, Feed>, clock: Option<Bound<'_, PyAny>>) -> PyResult<()> {
    let feed = recording.get();
    let state = TimingState::new(feed.recorder()?, clock)?;
    feed.set_timing(state).map_err(|_| Error::state("the recording takes phases already").into())
}

/// What is open on the calling thread, outermost first.
#[pyfunction]
#[pyo3(signature = (recording, /))]
fn timing_open_frames(recording: &Bound<'_, Feed>) -> PyResult<Vec<Place>> {
    let open = state_of(recording)?.engine().with_open(<[RawFrame]>::to_vec);
    Ok(open.into_iter().map(place_of).collect())
}

/// How many pops had no push, how many phases were left open inside another, how many are open, and how many were ended that
/// were not open.
#[pyfunction]
#[pyo3(signature = (recording, /))]
fn timing_problems(recording: &Bound<'_, Feed>) -> PyResult<(u64, u64, u64, u64)> {
    let state = state_of(recording)?;
    let odd = state.engine().oddities();
    Ok((odd.unmatched_pops, odd.left_open, state.still_open(), odd.lost_tokens))
}

/// Which phases were left open, and where pops came from that had no push: the first ones of each, with how often.
#[pyfunction]
#[pyo3(signature = (recording, /))]
#[expect(clippy::type_complexity, reason = "two lists of rows, as Python gets them")]
fn timing_tally(recording: &Bound<'_, Feed>) -> PyResult<(Vec<(Place, u64)>, Vec<(String, u64)>)> {
    let (left_open, unmatched) =
        state_of(recording)?.with_tally(|tally| (tally.left_open().to_vec(), tally.unmatched().to_vec()));
    Ok((left_open.into_iter().map(|(frame, count)| (place_of(frame), count)).collect(), unmatched))
}

fn state_of<'a>(recording: &'a Bound<'_, Feed>) -> PyResult<&'a TimingState> {
    recording.get().timing().ok_or_else(|| Error::state("the recording takes no phases").into())
}

fn place_of(frame: RawFrame) -> Place {
    let Some(label) = stackweave_store::locate_label(frame) else { return Place::default() };
    (label.name.to_string(), label.filename.to_string(), label.position.line.unwrap_or(0))
}

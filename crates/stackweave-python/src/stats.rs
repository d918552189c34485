//! `stats()`: counters and states of the library, as nested dicts.

use std::sync::atomic::Ordering;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use stackweave_core::{SourceStop, StopReason};
use stackweave_store::thread_words::{ThreadWords, thread_words};
use stackweave_symbolize::UnresolvedReason;
use stackweave_unwind::UnloadWatch;

use crate::resolving::resolver;
use crate::{python_extra_frames, python_frame_source, python_source, stack_answers};

/// Counters over all threads since the process began, in dicts by part: captures, unwind, python, stacks, symbolizer, answers and errors.
///
/// >>> "captures" in stackweave.stats()
/// True
#[pyfunction]
pub(crate) fn stats(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let stats = PyDict::new(py);
    let capture = stackweave_capture::stats();
    stats.set_item("captures", capture.captures)?;
    stats.set_item("unwind", unwind(py)?)?;
    let python = python_source::stats(py)?;
    let reasons = SourceStop::ALL.map(|reason| (reason.as_str(), capture.stopped_by(reason)));
    python.set_item("stop_reasons", counted(py, reasons)?)?;
    stats.set_item("python", python)?;
    let table = PyDict::new(py);
    table.set_item("stacks", capture.stacks.stacks)?;
    table.set_item("refused", capture.stacks.refused)?;
    table.set_item("tree_bytes", capture.stacks.tree_bytes)?;
    table.set_item("index_bytes", capture.stacks.index_bytes)?;
    stats.set_item("stacks", table)?;
    stats.set_item("symbolizer", symbolizer(py)?)?;
    stats.set_item("answers", answers(py)?)?;
    let errors = PyDict::new(py);
    errors.set_item("frame_sources", python_frame_source::ERRORS.load(Ordering::Relaxed))?;
    errors.set_item("extra_frames", python_extra_frames::ERRORS.load(Ordering::Relaxed))?;
    stats.set_item("errors", errors)?;
    Ok(stats)
}

fn unwind(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let stats = stackweave_unwind::stats();
    let dict = PyDict::new(py);
    dict.set_item("captures", stats.captures())?;
    dict.set_item("hits", stats.hits)?;
    dict.set_item("misses", stats.misses)?;
    dict.set_item("unsupported", stats.unsupported)?;
    dict.set_item("resets", stats.resets)?;
    let watch = match stats.unload_watch {
        UnloadWatch::Counters => "counters",
        UnloadWatch::QueryLoader => "queries the loader",
        UnloadWatch::NeverUnloads => "never unloads",
        _ => "unknown",
    };
    dict.set_item("unload_watch", watch)?;
    let reserve_bytes = match thread_words() {
        Ok(ThreadWords::Reserve(bytes)) => bytes,
        Ok(ThreadWords::Program) | Err(_) => 0,
    };
    dict.set_item("static_tls_bytes", reserve_bytes)?;
    let reasons = StopReason::ALL.map(|reason| (reason.as_str(), stats.stopped_by(reason)));
    dict.set_item("stop_reasons", counted(py, reasons)?)?;
    Ok(dict)
}

/// Returns the signal by which this process answers `stackweave stacks`, or why it does not.
fn answers(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    let state = stack_answers::state();
    dict.set_item("signal", state.ok())?;
    dict.set_item("reason", state.err().map(|reason| reason.to_string()))?;
    Ok(dict)
}

/// Returns the statistics of this process's resolver. A forked child has its own.
fn symbolizer(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    let symbolizer = match resolver() {
        Ok(resolver) => resolver.symbolizer(),
        Err(error) => {
            dict.set_item("error", error.value(py).str()?)?;
            return Ok(dict);
        }
    };
    let stats = symbolizer.stats();
    dict.set_item("addresses", stats.addresses)?;
    dict.set_item("looked_up", stats.looked_up)?;
    dict.set_item("modules", stats.modules)?;
    dict.set_item("replaced", stats.replaced)?;
    dict.set_item("child_failures", stats.child_failures)?;
    dict.set_item("child_error", symbolizer.child_error())?;
    let reasons = UnresolvedReason::ALL.map(|reason| (reason.as_str(), stats.unknown[reason as usize]));
    dict.set_item("unknown", counted(py, reasons)?)?;
    Ok(dict)
}

/// Returns the reasons that have occurred, with their counts.
fn counted<'py, const N: usize>(py: Python<'py>, reasons: [(&str, u64); N]) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (reason, count) in reasons {
        if count > 0 {
            dict.set_item(reason, count)?;
        }
    }
    Ok(dict)
}

//! Converts the statistics of a trace to a dict.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use stackweave_cpython::calls::Mechanism;
use stackweave_trace::TraceStats;

pub(super) fn dict_of<'py>(py: Python<'py>, stats: &TraceStats) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let mechanism = match stats.mechanism {
        Mechanism::Monitoring => "monitoring",
        Mechanism::EvalHook => "eval",
        Mechanism::ProfileSlot => "profile",
    };
    dict.set_item("mechanism", mechanism)?;
    dict.set_item("fallback_reason", stats.fallback_reason.as_deref())?;
    dict.set_item("calls", stats.calls)?;
    dict.set_item("c_calls", stats.native_calls)?;
    dict.set_item("repairs", stats.repairs)?;
    dict.set_item("ignored_ends", stats.ignored_ends)?;
    dict.set_item("dropped", stats.dropped)?;
    dict.set_item("hidden", stats.hidden)?;
    dict.set_item("left_out", stats.left_out)?;
    dict.set_item("stepped_aside", stats.stepped_aside)?;
    dict.set_item("unrecorded_threads", stats.unrecorded_threads)?;
    dict.set_item("taken_out", stats.taken_out)?;
    dict.set_item("other_interpreters", stats.other_interpreters)?;
    dict.set_item("threads", stats.threads)?;
    let demoted = PyList::empty(py);
    for function in &stats.demoted {
        let entry = PyDict::new(py);
        entry.set_item("name", &function.name)?;
        entry.set_item("filename", &function.filename)?;
        entry.set_item("lineno", function.first_line)?;
        entry.set_item("calls", function.calls)?;
        entry.set_item("mean", function.mean.as_secs_f64())?;
        demoted.append(entry)?;
    }
    dict.set_item("demoted", demoted)?;
    Ok(dict)
}

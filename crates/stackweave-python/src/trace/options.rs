//! Reads the options of a trace, which the Python part has checked.

use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use stackweave_core::Pattern;
use stackweave_cpython::calls::Mechanism;
use stackweave_trace::{Demotion, DescribedFunctions, TraceOptions};

use super::python_describer::PythonDescriber;
use crate::options::from_dict;

from_dict! {
    /// The options as Python writes them.
    struct TraceKeywords {
        c_calls: bool,
        mechanism: String,
        include: Vec<String>,
        exclude: Vec<String>,
        own: Vec<String>,
        min_duration: f64,
        max_depth: Option<usize>,
        demote: Option<(u32, f64)>,
        max_events: Option<u64>,
        tasks: bool,
        outer: bool,
        described: Vec<(String, bool)>,
        describe: Py<PyAny>,
    }
}

fn patterns(texts: &[String]) -> Vec<Pattern> {
    texts.iter().filter_map(|text| text.parse().ok()).collect()
}

fn seconds(value: f64, name: &str) -> PyResult<Duration> {
    Duration::try_from_secs_f64(value).map_err(|error| PyValueError::new_err(format!("{name}: {error}")))
}

fn mechanism(name: &str) -> PyResult<Option<Mechanism>> {
    match name {
        "auto" => Ok(None),
        "monitoring" => Ok(Some(Mechanism::Monitoring)),
        "eval" => Ok(Some(Mechanism::EvalHook)),
        "profile" => Ok(Some(Mechanism::ProfileSlot)),
        _ => Err(PyValueError::new_err(format!("mechanism must be auto, monitoring, eval or profile, not {name:?}"))),
    }
}

/// Reads the options from a dict.
pub(super) fn options_of(dict: &Bound<'_, PyDict>) -> PyResult<TraceOptions> {
    let given = TraceKeywords::from_dict(dict)?;
    let demotion = |(calls, mean)| Ok::<_, PyErr>(Demotion { calls, mean: seconds(mean, "demote")? });
    let described = given.described.into_iter();
    Ok(TraceOptions {
        c_calls: given.c_calls,
        mechanism: mechanism(&given.mechanism)?,
        include: patterns(&given.include),
        exclude: patterns(&given.exclude),
        own: patterns(&given.own),
        min_duration: seconds(given.min_duration, "min_duration")?,
        max_depth: given.max_depth,
        demotion: given.demote.map(demotion).transpose()?,
        max_events: given.max_events,
        tasks: given.tasks,
        outer: given.outer,
        described: described
            .filter_map(|(text, native)| Some(DescribedFunctions { pattern: text.parse().ok()?, native }))
            .collect(),
        describer: Box::new(PythonDescriber::new(Some(given.describe))),
    })
}

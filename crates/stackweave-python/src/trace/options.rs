//! Reads the options of a trace, which the Python part has checked.

use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use stackweave_core::Pattern;
use stackweave_cpython::calls::Mechanism;
use stackweave_trace::{Demotion, DescribedFunctions, TraceOptions};

use super::python_describer::PythonDescriber;

fn item<'py, T: FromPyObjectOwned<'py>>(dict: &Bound<'py, PyDict>, name: &str) -> PyResult<Option<T>> {
    match dict.get_item(name)? {
        Some(value) if !value.is_none() => value.extract().map(Some).map_err(Into::into),
        _ => Ok(None),
    }
}

fn patterns(texts: Option<Vec<String>>) -> Vec<Pattern> {
    texts.unwrap_or_default().iter().filter_map(|text| text.parse().ok()).collect()
}

fn seconds(value: f64, name: &str) -> PyResult<Duration> {
    Duration::try_from_secs_f64(value).map_err(|error| PyValueError::new_err(format!("{name}: {error}")))
}

fn mechanism(name: &str) -> PyResult<Mechanism> {
    match name {
        "monitoring" => Ok(Mechanism::Monitoring),
        "eval" => Ok(Mechanism::EvalHook),
        "profile" => Ok(Mechanism::ProfileSlot),
        _ => Err(PyValueError::new_err(format!("mechanism must be monitoring, eval or profile, not {name:?}"))),
    }
}

/// Reads the options from a dict.
pub(super) fn options_of(dict: &Bound<'_, PyDict>) -> PyResult<TraceOptions> {
    let mut options = TraceOptions::new(Box::new(PythonDescriber::new(item(dict, "describe")?)));
    options.c_calls = item(dict, "c_calls")?.unwrap_or(false);
    options.mechanism = item::<String>(dict, "mechanism")?.map(|name| mechanism(&name)).transpose()?;
    options.include = patterns(item(dict, "include")?);
    options.exclude = patterns(item(dict, "exclude")?);
    options.own = patterns(item(dict, "own")?);
    options.min_duration = seconds(item(dict, "min_duration")?.unwrap_or(0.0), "min_duration")?;
    options.max_depth = item(dict, "max_depth")?;
    if let Some((calls, mean)) = item::<(u32, f64)>(dict, "demote")? {
        options.demotion = Some(Demotion { calls, mean: seconds(mean, "demote")? });
    }
    options.max_events = item(dict, "max_events")?;
    options.tasks = item(dict, "tasks")?.unwrap_or(true);
    options.outer = item(dict, "outer")?.unwrap_or(true);
    let described: Vec<(String, bool)> = item(dict, "described")?.unwrap_or_default();
    options.described = described
        .into_iter()
        .filter_map(|(text, native)| Some(DescribedFunctions { pattern: text.parse().ok()?, native }))
        .collect();
    Ok(options)
}

//! Reads the options of a recording, which the Python part has checked.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use stackweave_recording::clock::ClockSource;
use stackweave_recording::{Options, Ring, WhenFull};

use crate::errors::Error;

pub(super) fn options_of(dict: &Bound<'_, PyDict>) -> PyResult<Options> {
    let value = |name: &str| {
        let value = dict.get_item(name)?;
        Ok::<_, PyErr>(value.ok_or_else(|| Error::other(format!("the option {name} is missing")))?)
    };
    let path: PathBuf = value("path")?.extract()?;
    let ring: Option<(Option<u64>, Option<f64>)> = value("ring")?.extract()?;
    let flush_every: f64 = value("flush_every")?.extract()?;
    // Only some recordings have these options: phases, and the program's own clock, which counts nanoseconds.
    let flag = |name: &str| dict.get_item(name)?.map_or(Ok(false), |value| value.extract());
    let entries = dict.get_item("extra")?.map(|value| value.extract()).transpose()?;
    let mut extra: BTreeMap<String, String> = entries.unwrap_or_default();
    if flag("timing")? {
        extra.insert("timing".to_owned(), "1".to_owned());
    }
    Ok(Options {
        memory: value("buffer")?.extract()?,
        when_full: if value("drop")?.extract()? { WhenFull::Drop } else { WhenFull::Block },
        ring: ring.map(|(bytes, seconds)| Ring { bytes, seconds }),
        dump_at_exit: value("dump_at_exit")?.extract()?,
        flush_every: Duration::try_from_secs_f64(flush_every).unwrap_or(Duration::MAX),
        follow_forks: value("follow_forks")?.extract()?,
        subprocesses: value("subprocesses")?.extract()?,
        overwrite: value("overwrite")?.extract()?,
        named_later: flag("named_later")?,
        numbered: flag("numbered")?,
        python: value("python")?.extract()?,
        clock: flag("own_clock")?.then_some(ClockSource::Monotonic),
        extra,
        ..Options::new(path)
    })
}

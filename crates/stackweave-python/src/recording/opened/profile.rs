//! The profiles of recordings for `tree()` and `top()`.

use std::ops::Range;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use stackweave_profile::{AggregateOptions, Aggregated, Filter, FrameKind, Measure, Pattern, Profile, View, aggregate};

use stackweave_recording::Recording;

use super::named_process::symbolizer;
use super::{OpenedRecording, RecordingPart};
use crate::errors::Error;

/// Which measure is aggregated, and which frames are shown.
#[derive(Clone, Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct ProfileOptions {
    measure: Option<String>,
    include: Vec<String>,
    exclude: Vec<String>,
    kind: Vec<String>,
    lines: bool,
    all: Option<bool>,
}

/// Returns the requested profile with the visible frames.
pub(super) fn of(
    py: Python<'_>,
    opened: &OpenedRecording,
    selection: &RecordingPart,
    options: &ProfileOptions,
) -> PyResult<Profile> {
    let view = Some(options.view()?);
    let chosen = opened.with_chosen(selection)?;
    let options = AggregateOptions { view, ..aggregate_options(opened, &chosen, selection, options)? };
    let symbolizer = symbolizer()?;
    let profile = py.detach(|| {
        let profiles = aggregate(chosen.processes(), &options, Some(symbolizer), &mut |_| {});
        profiles.map(Aggregated::merged)
    });
    Ok(profile.map_err(Error::from)?)
}

/// Returns the options by which the selected processes are aggregated.
pub(super) fn aggregate_options(
    opened: &OpenedRecording,
    chosen: &Recording,
    selection: &RecordingPart,
    options: &ProfileOptions,
) -> PyResult<AggregateOptions> {
    let measure = options.measure.as_deref().map(measure_named).transpose()?;
    // The times of a profile begin with its first process.
    let first = chosen.processes().iter().map(|process| opened.offset_of(process)).min().unwrap_or(0);
    let local = |ns: i64| u64::try_from(ns.saturating_sub(first)).unwrap_or(0);
    let range: Option<Range<u64>> = selection.range().map(|range| local(range.start)..local(range.end));
    let threads = selection.thread.map(|tid| tid.to_string()).into_iter().collect();
    Ok(AggregateOptions { measure, threads, range, lines: options.lines, ..AggregateOptions::default() })
}

impl ProfileOptions {
    /// Returns which frames are shown: by default, no internal ones.
    pub(super) fn view(&self) -> PyResult<View> {
        let kinds = self.kind.iter().map(|kind| kind_named(kind)).collect::<PyResult<_>>()?;
        let filter = Filter { include: patterns(&self.include), exclude: patterns(&self.exclude), kinds };
        Ok(View { show_all: self.all.unwrap_or(false), filter })
    }

    /// Returns which frames are shown; `None` if no option is set.
    pub(super) fn explicit_view(&self) -> PyResult<Option<View>> {
        let view = self.view()?;
        Ok((self.all.is_some() || !view.filter.is_empty()).then_some(view))
    }
}

fn patterns(texts: &[String]) -> Vec<Pattern> {
    let pattern = |text: &String| {
        let Ok(pattern) = text.parse();
        pattern
    };
    texts.iter().map(pattern).collect()
}

fn measure_named(name: &str) -> PyResult<Measure> {
    Measure::from_name(name).ok_or_else(|| {
        let known: Vec<_> = Measure::ALL.iter().map(|measure| measure.as_str()).collect();
        PyValueError::new_err(format!("measure must be one of {}, but is {name:?}", known.join(", ")))
    })
}

fn kind_named(name: &str) -> PyResult<FrameKind> {
    FrameKind::from_name(name).ok_or_else(|| {
        PyValueError::new_err(format!("kind may hold python, native, script, extra, span, but not {name:?}"))
    })
}

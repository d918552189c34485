//! Profiles of recordings, as `tree()` and `top()` ask for them.

use std::ops::Range;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use stackweave_profile::{AggregateOptions, Filter, FrameKind, Measure, Pattern, Profile, View, aggregate};

use stackweave_recording::Recording;

use super::named_process::symbolizer;
use super::{OpenedRecording, Selection};
use crate::errors::Error;

/// What is counted, and which frames are shown.
#[derive(Clone, Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct ProfileOptions {
    measure: Option<String>,
    include: Vec<String>,
    exclude: Vec<String>,
    kinds: Vec<String>,
    lines: bool,
    all: Option<bool>,
}

/// The profile that is asked for, of what is to be seen.
pub(super) fn of(
    py: Python<'_>,
    opened: &OpenedRecording,
    selection: &Selection,
    options: &ProfileOptions,
) -> PyResult<Profile> {
    let view = options.view()?;
    let chosen = opened.with_chosen(selection)?;
    let options = aggregate_options(opened, &chosen, selection, options)?;
    let symbolizer = symbolizer()?;
    let made = py.detach(|| {
        let made = aggregate(chosen.processes(), &options, Some(symbolizer), &mut |_| {});
        made.map(|made| made.merged().view(&view))
    });
    Ok(made.map_err(Error::from)?)
}

/// Which part of the processes that were chosen is counted, and how.
pub(super) fn aggregate_options(
    opened: &OpenedRecording,
    chosen: &Recording,
    selection: &Selection,
    options: &ProfileOptions,
) -> PyResult<AggregateOptions> {
    let measure = options.measure.as_deref().map(measure_named).transpose()?;
    // The ranges of a profile begin with the first process that is in it.
    let first = chosen.processes().iter().map(|process| opened.offset_of(process)).min().unwrap_or(0);
    let local = |ns: i64| u64::try_from(ns.saturating_sub(first)).unwrap_or(0);
    let range: Option<Range<u64>> = selection.range().map(|range| local(range.start)..local(range.end));
    let threads = selection.thread.map(|tid| tid.to_string()).into_iter().collect();
    Ok(AggregateOptions { measure, threads, range, lines: options.lines, ..AggregateOptions::default() })
}

impl ProfileOptions {
    /// Which frames are shown: internals are not, if nothing is said.
    pub(super) fn view(&self) -> PyResult<View> {
        let kinds = self.kinds.iter().map(|kind| kind_named(kind)).collect::<PyResult<_>>()?;
        let filter = Filter { include: patterns(&self.include), exclude: patterns(&self.exclude), kinds };
        Ok(View { show_all: self.all.unwrap_or(false), filter })
    }

    /// The same; `None` if nothing is said at all.
    pub(super) fn said_view(&self) -> PyResult<Option<View>> {
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
        PyValueError::new_err(format!("kinds may hold python, native, script, extra, label, but not {name:?}"))
    })
}

//! Profiles of recordings, as `tree()` and `top()` ask for them.

use std::ops::Range;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use stackweave_profile::{AggregateOptions, Filter, FrameKind, Measure, Pattern, Profile, View, aggregate};

use super::named_process::symbolizer;
use super::{OpenedRecording, Selection, read_error};

/// What is counted, and which frames are shown.
#[derive(Clone, Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct ProfileOptions {
    measure: Option<String>,
    include: Vec<String>,
    exclude: Vec<String>,
    kinds: Vec<String>,
    lines: bool,
    all: bool,
}

/// The profile that is asked for, of what is to be seen.
pub(super) fn of(
    py: Python<'_>,
    opened: &OpenedRecording,
    selection: &Selection,
    options: ProfileOptions,
) -> PyResult<Profile> {
    let ProfileOptions { measure, include, exclude, kinds, lines, all } = options;
    let view = View {
        show_all: all,
        filter: Filter {
            include: patterns(&include),
            exclude: patterns(&exclude),
            kinds: kinds.iter().map(|kind| kind_named(kind)).collect::<PyResult<_>>()?,
        },
    };
    let measure = measure.as_deref().map(measure_named).transpose()?;
    let chosen: Vec<_> = opened.chosen(selection)?.iter().map(|process| process.recording.clone()).collect();
    // The ranges of a profile begin with the first process that is in it.
    let first = chosen.iter().map(|process| opened.offset_of(process)).min().unwrap_or(0);
    let local = |ns: i64| u64::try_from(ns.saturating_sub(first)).unwrap_or(0);
    let range: Option<Range<u64>> = selection.range().map(|range| local(range.start)..local(range.end));
    let threads = selection.thread.map(|tid| tid.to_string()).into_iter().collect();
    let options = AggregateOptions { measure, threads, range, lines, ..AggregateOptions::default() };
    let symbolizer = symbolizer()?;
    let made = py.detach(|| {
        let made = aggregate(&chosen, &options, Some(symbolizer), &mut |_| {})?;
        Ok(made.merged().view(&view))
    });
    made.map_err(|error| read_error(&error))
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
    let kinds = [FrameKind::Python, FrameKind::Native, FrameKind::Script, FrameKind::Extra, FrameKind::Label];
    kinds.into_iter().find(|kind| kind.as_str() == name).ok_or_else(|| {
        let known: Vec<_> = kinds.iter().map(|kind| kind.as_str()).collect();
        PyValueError::new_err(format!("kinds may hold {}, but not {name:?}", known.join(", ")))
    })
}

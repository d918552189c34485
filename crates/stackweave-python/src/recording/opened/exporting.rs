//! Exports recordings to the formats of viewers.

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use stackweave_export::{ExportOptions, Format, SizeLimit, SourceText, UnknownFormat, export, write};
use stackweave_recording::Recording;

use super::named_process::symbolizer;
use super::profile::{self, ProfileOptions};
use super::{OpenedRecording, RecordingPart};
use crate::errors::Error;

/// The path and the options of an export.
#[derive(Clone, Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct ExportRequest {
    path: PathBuf,
    format: Option<String>,
    title: Option<String>,
    time_order: bool,
    before: Option<PathBuf>,
    sources: Option<bool>,
    /// The path, name and text of each source file.
    texts: Vec<(String, String, String)>,
    overwrite: bool,
    min_block: Option<u64>,
    /// `None` for the limit of the format's readers, 0 for no limit.
    max_size: Option<u64>,
}

/// Writes a file, and returns what is missing in it.
pub(super) fn to_file(
    py: Python<'_>,
    opened: &OpenedRecording,
    selection: &RecordingPart,
    options: &ProfileOptions,
    request: ExportRequest,
) -> PyResult<Vec<String>> {
    let format = format_of(&request)?;
    let chosen = opened.with_chosen(selection)?;
    let before = request.before.as_ref().map(|path| py.detach(|| Recording::open(path))).transpose();
    let before = before.map_err(Error::from)?;
    let options = ExportOptions {
        part: profile::aggregate_options(opened, &chosen, selection, options)?,
        view: options.explicit_view()?,
        title: request.title,
        time_order: request.time_order,
        sources: request.sources,
        texts: request.texts.into_iter().map(|(file, name, text)| SourceText { file, name, text }).collect(),
        before: before.as_ref(),
        overwrite: request.overwrite,
        min_block: request.min_block,
        max_size: match request.max_size {
            None => SizeLimit::OfFormat,
            Some(0) => SizeLimit::None,
            Some(bytes) => SizeLimit::Bytes(bytes),
        },
    };
    let symbolizer = symbolizer()?;
    let done = py.detach(|| export(&chosen, format, &request.path, &options, (Some(symbolizer), &mut |_| {})));
    let done = done.map_err(Error::from)?;
    Ok(done.missing.into_iter().chain(done.remarks).chain(done.sources.left_out_text()).collect())
}

/// Returns the content of a `.prof` file.
pub(super) fn pstats<'py>(
    py: Python<'py>,
    opened: &OpenedRecording,
    selection: &RecordingPart,
    options: &ProfileOptions,
) -> PyResult<Bound<'py, PyBytes>> {
    let chosen = opened.with_chosen(selection)?;
    let part = profile::aggregate_options(opened, &chosen, selection, options)?;
    let options = ExportOptions { part, view: options.explicit_view()?, ..ExportOptions::default() };
    let symbolizer = symbolizer()?;
    let mut bytes = Vec::new();
    let done = py.detach(|| write(&chosen, Format::Pstats, &mut bytes, &options, (Some(symbolizer), &mut |_| {})));
    done.map_err(Error::from)?;
    Ok(PyBytes::new(py, &bytes))
}

fn format_of(request: &ExportRequest) -> PyResult<Format> {
    match &request.format {
        Some(name) => Ok(name.parse().map_err(|error: UnknownFormat| Error::from(error))?),
        None => Format::of_path(&request.path).ok_or_else(|| {
            let (path, names) = (request.path.display(), Format::names());
            PyValueError::new_err(format!("the format can't be derived from the name {path}; format may be {names}"))
        }),
    }
}

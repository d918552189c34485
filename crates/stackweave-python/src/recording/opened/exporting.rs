//! Recordings in the formats of viewers.

use std::path::PathBuf;

use pyo3::exceptions::{PyFileExistsError, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use stackweave_export::{ExportError, ExportOptions, Format, SizeLimit, SourceText, export, write};
use stackweave_recording::Recording;

use super::named_process::symbolizer;
use super::profile::{self, ProfileOptions};
use super::{OpenedRecording, Selection};
use crate::errors::StackweaveError;

/// Where an export goes, and how it looks.
#[derive(Clone, Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct ExportRequest {
    path: PathBuf,
    format: Option<String>,
    title: Option<String>,
    time_order: bool,
    before: Option<PathBuf>,
    sources: Option<bool>,
    /// File, name and text of each.
    texts: Vec<(String, String, String)>,
    overwrite: bool,
    /// `None` for what readers of the format can open, 0 for no limit.
    max_size: Option<u64>,
}

/// Writes a file, and says what is missing in it.
pub(super) fn to_file(
    py: Python<'_>,
    opened: &OpenedRecording,
    selection: &Selection,
    options: &ProfileOptions,
    request: ExportRequest,
) -> PyResult<Vec<String>> {
    let format = format_of(&request)?;
    let chosen = opened.with_chosen(selection)?;
    let before = request.before.as_ref().map(|path| py.detach(|| Recording::open(path))).transpose();
    let before = before.map_err(|error| StackweaveError::new_err(error.to_string()))?;
    let options = ExportOptions {
        part: profile::aggregate_options(opened, &chosen, selection, options)?,
        view: options.said_view()?,
        title: request.title,
        time_order: request.time_order,
        sources: request.sources,
        texts: request.texts.into_iter().map(|(file, name, text)| SourceText { file, name, text }).collect(),
        before: before.as_ref(),
        overwrite: request.overwrite,
        max_size: match request.max_size {
            None => SizeLimit::OfFormat,
            Some(0) => SizeLimit::None,
            Some(bytes) => SizeLimit::Bytes(bytes),
        },
    };
    let symbolizer = symbolizer()?;
    let done = py.detach(|| export(&chosen, format, &request.path, &options, (Some(symbolizer), &mut |_| {})));
    done.map(|done| done.missing.into_iter().chain(done.sources.left_out()).collect()).map_err(|error| error_of(&error))
}

/// What a `.prof` file would hold.
pub(super) fn pstats<'py>(
    py: Python<'py>,
    opened: &OpenedRecording,
    selection: &Selection,
    options: &ProfileOptions,
) -> PyResult<Bound<'py, PyBytes>> {
    let chosen = opened.with_chosen(selection)?;
    let part = profile::aggregate_options(opened, &chosen, selection, options)?;
    let options = ExportOptions { part, view: options.said_view()?, ..ExportOptions::default() };
    let symbolizer = symbolizer()?;
    let mut bytes = Vec::new();
    let done = py.detach(|| write(&chosen, Format::Pstats, &mut bytes, &options, (Some(symbolizer), &mut |_| {})));
    done.map_err(|error| error_of(&error))?;
    Ok(PyBytes::new(py, &bytes))
}

fn format_of(request: &ExportRequest) -> PyResult<Format> {
    match &request.format {
        Some(name) => name.parse().map_err(|error: stackweave_export::UnknownFormat| unknown(&error.to_string())),
        None => Format::of_path(&request.path).ok_or_else(|| {
            let (path, names) = (request.path.display(), Format::names());
            unknown(&format!("the name of {path} does not say a format; format may be {names}"))
        }),
    }
}

fn unknown(message: &str) -> PyErr {
    PyValueError::new_err(message.to_owned())
}

fn error_of(error: &ExportError) -> PyErr {
    let message = error.to_string();
    match error {
        ExportError::Exists(_) => PyFileExistsError::new_err(format!("{message}; overwrite=True replaces it")),
        ExportError::Write(..) => PyOSError::new_err(message),
        ExportError::TooLarge(_) => StackweaveError::new_err(format!(
            "{message}; start and end export a part of the time, max_size=\"4GB\" or max_size=\"none\" allows more"
        )),
        _ => StackweaveError::new_err(message),
    }
}

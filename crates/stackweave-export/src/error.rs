//! Errors of exports.

use core::fmt;
use std::io;
use std::path::{Path, PathBuf};

use stackweave_profile::{DifferentMeasures, Measure};
use stackweave_recording::ReadError;

use crate::format::Format;

/// An error of an export. Its text is one sentence.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The recording can't be read.
    #[error("{0}")]
    Read(#[from] ReadError),
    /// The export can't be written. The path is added once it is known.
    #[error("can't write {to}: {1}", to = target(.0.as_deref()))]
    Write(Option<PathBuf>, #[source] io::Error),
    /// The path exists, and must not be replaced.
    #[error("{0} already exists")]
    Exists(PathBuf),
    /// The export exceeds its size limit; nothing of it is kept.
    #[error("{0}")]
    TooLarge(TooLarge),
    /// The export would replace a recording that it is made from.
    #[error("{0} is a recording that this export reads, and is not replaced: choose another path")]
    IsInput(PathBuf),
    /// The format can't show what the recording contains.
    #[error("{0}")]
    Unsupported(String),
}

fn target(path: Option<&Path>) -> String {
    path.map_or_else(|| "the export".to_owned(), |path| path.display().to_string())
}

/// The size limit of an export, and how far it got.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TooLarge {
    /// The format of the export.
    pub format: Format,
    /// The limit in bytes.
    pub limit: u64,
    /// The share of the recording that was exported at that size, from 0 to 1; `None` if unknown.
    pub share: Option<f64>,
}

impl fmt::Display for TooLarge {
    #[expect(clippy::cast_precision_loss, reason = "rounded to a few digits for display")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = |bytes: f64| Measure::AllocatedBytes.text(bytes);
        let limit = self.limit as f64;
        write!(f, "the {} export is larger than its limit of {}", self.format, bytes(limit))?;
        if let Some(share) = self.share {
            let all = bytes(limit / share);
            let percent = (share * 100.0).max(0.1);
            write!(f, "; {percent:.1} % of the events reached it (all of them would take about {all})")?;
        }
        match self.format.smaller() {
            Some(smaller) => write!(f, "; {smaller} contains the same in fewer bytes"),
            None => Ok(()),
        }
    }
}

impl From<io::Error> for ExportError {
    fn from(error: io::Error) -> Self {
        Self::Write(None, error)
    }
}

impl From<DifferentMeasures> for ExportError {
    fn from(error: DifferentMeasures) -> Self {
        Self::Unsupported(error.to_string())
    }
}

//! Why there is no export.

use core::fmt;
use std::io;
use std::path::{Path, PathBuf};

use stackweave_profile::{DifferentMeasures, Measure};
use stackweave_recording::ReadError;

use crate::format::Format;

/// Each is one sentence.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The recording can't be read any more.
    #[error("{0}")]
    Read(#[from] ReadError),
    /// The export can't be written. With the path, once it is known.
    #[error("can't write {to}: {1}", to = target(.0.as_deref()))]
    Write(Option<PathBuf>, #[source] io::Error),
    /// What is there already is not replaced.
    #[error("{0} is there already")]
    Exists(PathBuf),
    /// The export is larger than it may be, and nothing of it is kept.
    #[error("{0}")]
    TooLarge(TooLarge),
    /// The export would take the place of a recording that it is made from.
    #[error("{0} is a recording that is read, and is not replaced: name another file")]
    IsAnInput(PathBuf),
    /// This format can't show what the recording holds.
    #[error("{0}")]
    NotThis(String),
}

fn target(path: Option<&Path>) -> String {
    path.map_or_else(|| "the export".to_owned(), |path| path.display().to_string())
}

/// How an export came to be too large.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TooLarge {
    /// What it is an export to.
    pub format: Format,
    /// How many bytes it may have.
    pub limit: u64,
    /// How much of the recording was in it when it had them, from 0 to 1; `None` if that is not known.
    pub share: Option<f64>,
}

impl fmt::Display for TooLarge {
    #[expect(clippy::cast_precision_loss, reason = "for people, with a few digits")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = |bytes: f64| Measure::AllocatedBytes.text(bytes);
        let limit = self.limit as f64;
        write!(f, "the {} export is larger than its limit of {}", self.format, bytes(limit))?;
        if let Some(share) = self.share {
            let all = bytes(limit / share);
            let percent = (share * 100.0).max(0.1);
            write!(f, ", which {percent:.1} % of the events reach (all of them would take about {all})")?;
        }
        match self.format.smaller() {
            Some(smaller) => write!(f, "; {smaller} holds the same in fewer bytes"),
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
        Self::NotThis(error.to_string())
    }
}

//! Why there is no export.

use core::fmt;
use std::io;
use std::path::PathBuf;

use stackweave_profile::DifferentMeasures;
use stackweave_recording::ReadError;

/// Each is one sentence.
#[derive(Debug)]
pub enum ExportError {
    /// The recording can't be read any more.
    Read(ReadError),
    /// The export can't be written. With the path, once it is known.
    Write(Option<PathBuf>, io::Error),
    /// What is there already is not replaced.
    Exists(PathBuf),
    /// This format can't show what the recording holds.
    NotThis(String),
}

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => error.fmt(f),
            Self::Write(Some(path), error) => write!(f, "can't write {}: {error}", path.display()),
            Self::Write(None, error) => write!(f, "can't write the export: {error}"),
            Self::Exists(path) => write!(f, "{} is there already", path.display()),
            Self::NotThis(why) => f.write_str(why),
        }
    }
}

impl core::error::Error for ExportError {}

impl From<io::Error> for ExportError {
    fn from(error: io::Error) -> Self {
        Self::Write(None, error)
    }
}

impl From<ReadError> for ExportError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

impl From<DifferentMeasures> for ExportError {
    fn from(error: DifferentMeasures) -> Self {
        Self::NotThis(error.to_string())
    }
}

//! Outputs of the Python part: created, replaced and removed by the same module as all others.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use stackweave_files::output::{Existing, numbered, write_file};
use stackweave_recording::read::{others_of_run, remove_run};

use crate::errors::Error;

/// More files of one name than anybody keeps.
const MOST_NUMBERS: u32 = 100_000;

/// Copies a file to an output, which is there whole or not at all.
#[pyfunction]
pub(crate) fn copy_to_output(py: Python<'_>, source: PathBuf, path: PathBuf, overwrite: bool) -> PyResult<()> {
    let copied = py.detach(move || {
        let copied = File::open(source).and_then(|mut source| {
            check_other_file(&source, &path)?;
            write_file(&path, Existing::from_overwrite(overwrite), |out| io::copy(&mut source, out).map(drop))
        });
        copied.map_err(|error| (path, error))
    });
    copied.map(drop).map_err(|(path, error)| Error::output(&path, &error).into())
}

/// Fails if a file would be replaced by a copy of itself: what is recorded to it afterwards would be lost with it.
fn check_other_file(source: &File, path: &Path) -> io::Result<()> {
    let own = source.metadata()?;
    let is_same = std::fs::metadata(path).is_ok_and(|found| (found.dev(), found.ino()) == (own.dev(), own.ino()));
    if is_same {
        let sentence = "it is the recording itself: name another file";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, sentence));
    }
    Ok(())
}

/// Writes bytes to an output, which is there whole or not at all.
#[pyfunction]
pub(crate) fn write_output(py: Python<'_>, path: PathBuf, bytes: &[u8], overwrite: bool) -> PyResult<()> {
    let written = py.detach(move || {
        let written = write_file(&path, Existing::from_overwrite(overwrite), |out| out.write_all(bytes));
        written.map_err(|error| (path, error))
    });
    written.map(drop).map_err(|(path, error)| Error::output(&path, &error).into())
}

/// The path, or the first one with a number in its name that nobody has: out-2.swv, out-3.swv.
#[pyfunction]
pub(crate) fn free_name(path: PathBuf) -> OsString {
    let names = (1..MOST_NUMBERS).map(|number| numbered(&path, number));
    let free = names.into_iter().find(|name| std::fs::symlink_metadata(name).is_err());
    free.unwrap_or(path).into()
}

/// The files beside a recording that belong to the same run of the program.
#[pyfunction]
pub(crate) fn others_of_same_run(py: Python<'_>, path: PathBuf) -> Vec<OsString> {
    py.detach(move || others_of_run(&path)).into_iter().map(Into::into).collect()
}

/// Removes a recording and those of the same run; what is none of them stays.
#[pyfunction]
pub(crate) fn remove_recordings_of_run(py: Python<'_>, path: PathBuf) {
    py.detach(move || remove_run(&path));
}

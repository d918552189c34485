//! Output files of the Python part, which are created, replaced and removed as all other outputs are.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use stackweave_files::output::{Existing, numbered, write_file};
use stackweave_recording::read::{others_of_run, remove_run};

use crate::errors::Error;

/// The greatest number that is tried in a file name.
const MAX_NUMBER: u32 = 100_000;

/// Copies a file to an output, which is written completely or not at all.
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

/// Fails if a file would be replaced by a copy of itself, because later events would be lost with the replaced file.
fn check_other_file(source: &File, path: &Path) -> io::Result<()> {
    let own = source.metadata()?;
    let is_same = std::fs::metadata(path).is_ok_and(|found| (found.dev(), found.ino()) == (own.dev(), own.ino()));
    if is_same {
        let sentence = "it is the recording itself: name another file";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, sentence));
    }
    Ok(())
}

/// Writes bytes to an output, which is written completely or not at all.
#[pyfunction]
pub(crate) fn write_output(py: Python<'_>, path: PathBuf, bytes: &[u8], overwrite: bool) -> PyResult<()> {
    let written = py.detach(move || {
        let written = write_file(&path, Existing::from_overwrite(overwrite), |out| out.write_all(bytes));
        written.map_err(|error| (path, error))
    });
    written.map(drop).map_err(|(path, error)| Error::output(&path, &error).into())
}

/// Returns the path if it does not exist, else the first path with a number that does not exist: out-2.swv, out-3.swv.
#[pyfunction]
pub(crate) fn unused_path(path: PathBuf) -> OsString {
    let names = (1..MAX_NUMBER).map(|number| numbered(&path, number));
    let free = names.into_iter().find(|name| std::fs::symlink_metadata(name).is_err());
    free.unwrap_or(path).into()
}

/// Returns the files beside a recording that belong to the same run of the program.
#[pyfunction]
pub(crate) fn other_recordings_of_run(py: Python<'_>, path: PathBuf) -> Vec<OsString> {
    py.detach(move || others_of_run(&path)).into_iter().map(Into::into).collect()
}

/// Removes a recording and the others of the same run, and no other files.
#[pyfunction]
pub(crate) fn remove_recordings_of_run(py: Python<'_>, path: PathBuf) {
    py.detach(move || remove_run(&path));
}

//! The output of a command: a file, or standard output.

use std::io;
use std::path::{Path, PathBuf};

use stackweave_files::output::is_stream;

use crate::failure::Failure;

const STANDARD_OUTPUT: &str = "/dev/stdout";

/// Returns the path for `--output`: `-` is standard output.
pub(crate) fn path(given: &Path) -> PathBuf {
    if given == Path::new("-") { PathBuf::from(STANDARD_OUTPUT) } else { given.to_owned() }
}

/// Returns the name of an output for messages.
pub(crate) fn name(output: &Path) -> String {
    if output == Path::new(STANDARD_OUTPUT) { "standard output".to_owned() } else { output.display().to_string() }
}

/// Fails, before anything is read, if the file can't be written.
pub(crate) fn check(output: &Path) -> Result<(), Failure> {
    let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if folder.is_dir() || is_stream(output) {
        return Ok(());
    }
    Err(Failure::new(format!(
        "can't write {}: there is no folder {}; create it first",
        output.display(),
        folder.display()
    )))
}

/// Returns the failure for an output that exists, which says whether `--overwrite` would replace it.
pub(crate) fn exists(output: &Path) -> Failure {
    let path = output.display();
    Failure::new(if output.is_file() {
        format!("{path} already exists; --overwrite replaces it")
    } else {
        format!(
            "{path} already exists; choose another path with --output (--overwrite replaces only folders of earlier exports)"
        )
    })
}

/// Returns whether the error means that the reader of the output has closed it, which is no failure.
pub(crate) fn is_closed(output: &Path, error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe && is_stream(output)
}

//! Where a command writes to: a file, or standard output.

use std::io;
use std::path::{Path, PathBuf};

use stackweave_files::output::is_stream;

use crate::failure::Failure;

const STANDARD_OUTPUT: &str = "/dev/stdout";

/// The path of `--output`: `-` is standard output.
pub(crate) fn place(given: &Path) -> PathBuf {
    if given == Path::new("-") { PathBuf::from(STANDARD_OUTPUT) } else { given.to_owned() }
}

/// What an output is called in sentences.
pub(crate) fn name(output: &Path) -> String {
    if output == Path::new(STANDARD_OUTPUT) { "standard output".to_owned() } else { output.display().to_string() }
}

/// Fails, before anything is read, where a file can't be written.
pub(crate) fn check(output: &Path) -> Result<(), Failure> {
    let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if folder.is_dir() || is_stream(output) {
        return Ok(());
    }
    Err(Failure::new(format!(
        "can't write {}: there is no folder {}; make it first",
        output.display(),
        folder.display()
    )))
}

/// The failure of a command that may not replace what is at the path of its output, and whether `--force` would.
pub(crate) fn exists(output: &Path) -> Failure {
    let path = output.display();
    Failure::new(if output.is_file() {
        format!("{path} is there already; --force replaces it")
    } else {
        format!(
            "{path} is there already; name another place with --output (--force replaces only folders of earlier exports)"
        )
    })
}

/// Returns whether nobody reads any more what is written through: that is no failure.
pub(crate) fn is_closed(output: &Path, error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe && is_stream(output)
}

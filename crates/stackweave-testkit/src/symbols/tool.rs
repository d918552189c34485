//! Installed programs that the tests run.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Skipped;

/// An installed program.
#[derive(Clone, Debug)]
pub struct Tool {
    path: PathBuf,
}

impl Tool {
    /// Finds the first of these programs that is on the path. A name also matches with a version suffix
    /// (`llvm-dwp-19`), the highest version first.
    pub fn find(names: &[&str]) -> Result<Self, Skipped> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
        for name in names {
            let plain = folders.iter().map(|folder| folder.join(name)).find(|file| file.is_file());
            if let Some(path) = plain.or_else(|| versioned(&folders, name)) {
                return Ok(Self { path });
            }
        }
        Err(Skipped(format!("{} is not installed", names.join(" or "))))
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs it in `folder` and returns its standard output.
    pub fn run<A: AsRef<OsStr>>(
        &self,
        folder: &Path,
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<String, Skipped> {
        self.run_with_input(folder, arguments, Stdio::null())
    }

    /// Runs it as [`Tool::run`] does, with an input.
    pub fn run_with_input<A: AsRef<OsStr>>(
        &self,
        folder: &Path,
        arguments: impl IntoIterator<Item = A>,
        input: Stdio,
    ) -> Result<String, Skipped> {
        let mut command = Command::new(&self.path);
        command.current_dir(folder).args(arguments).stdin(input).env_remove("DEBUGINFOD_URLS");
        let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let output = command.output().map_err(|error| Skipped(format!("{name} does not start: {error}")))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let error = String::from_utf8_lossy(&output.stderr);
        let first = error.lines().find(|line| !line.trim().is_empty()).unwrap_or("no message");
        Err(Skipped(format!("{name} failed ({}): {first}", output.status)))
    }
}

fn versioned(folders: &[PathBuf], name: &str) -> Option<PathBuf> {
    let entries = folders.iter().filter_map(|folder| folder.read_dir().ok()).flatten().flatten();
    let version = |path: &Path| -> Option<u32> {
        path.file_name()?.to_str()?.strip_prefix(name)?.strip_prefix('-')?.parse().ok()
    };
    entries
        .map(|entry| entry.path())
        .filter_map(|path| Some((version(&path)?, path)))
        .max_by_key(|(version, _)| *version)
        .map(|(_, path)| path)
}

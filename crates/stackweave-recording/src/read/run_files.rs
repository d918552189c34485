//! The files of one run of a program, identified by their content and not by their names.

use std::path::{Path, PathBuf};

use stackweave_files::output::remove_file_if;

use super::first_start::first_start;

/// Returns the files beside a recording that belong to the same run: those of forked and started processes, not those of earlier runs
/// with similar names.
pub fn others_of_run(path: &Path) -> Vec<PathBuf> {
    run_of(path).map(|run| beside(path, &run)).unwrap_or_default()
}

/// Removes a recording and all others of its run. Files that are no recording, or belong to another run, stay.
pub fn remove_run(path: &Path) {
    let Some(run) = run_of(path) else { return };
    for file in beside(path, &run).iter().map(PathBuf::as_path).chain([path]) {
        remove_file_if(file, |file| run_of(file).as_ref() == Some(&run));
    }
}

fn run_of(path: &Path) -> Option<String> {
    first_start(path)?.run().map(ToOwned::to_owned)
}

fn beside(path: &Path, run: &str) -> Vec<PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let stem = path.file_stem().unwrap_or_default().as_encoded_bytes();
    let is_named = |name: &[u8]| name.strip_prefix(stem).is_some_and(|rest| rest.starts_with(b"."));
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.file_name())
        .filter(|name| is_named(name.as_encoded_bytes()) && Some(name.as_os_str()) != path.file_name())
        .map(|name| path.with_file_name(name))
        .filter(|other| other.extension() == path.extension() || path.extension().is_none())
        .filter(|other| run_of(other).as_deref() == Some(run))
        .collect();
    found.sort();
    found
}

//! A file, or a folder, that is there whole or not at all.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process;

use crate::error::ExportError;

/// Writes a file under a temporary name beside it, and renames that. Nothing is left behind by a failure.
pub(crate) fn write_file(
    path: &Path,
    overwrite: bool,
    write: impl FnOnce(&mut dyn Write) -> Result<(), ExportError>,
) -> Result<u64, ExportError> {
    let failed = |error| ExportError::Write(Some(path.to_owned()), error);
    let temporary = temporary(path, overwrite)?;
    let guard = Unfinished { path: &temporary };
    let mut out = BufWriter::with_capacity(1 << 18, File::create(&temporary).map_err(failed)?);
    write(&mut out).map_err(|error| at(path, error))?;
    let file = out.into_inner().map_err(|error| failed(error.into_error()))?;
    let bytes = file.metadata().map_err(failed)?.len();
    fs::rename(&temporary, path).map_err(failed)?;
    core::mem::forget(guard);
    Ok(bytes)
}

/// The same for a folder, which `write` fills.
pub(crate) fn write_folder(
    path: &Path,
    overwrite: bool,
    write: impl FnOnce(&Path) -> Result<u64, ExportError>,
) -> Result<u64, ExportError> {
    let failed = |error| ExportError::Write(Some(path.to_owned()), error);
    let temporary = temporary(path, overwrite)?;
    let guard = Unfinished { path: &temporary };
    fs::create_dir_all(&temporary).map_err(failed)?;
    let bytes = write(&temporary).map_err(|error| at(path, error))?;
    if path.is_dir() {
        fs::remove_dir_all(path).map_err(failed)?;
    }
    fs::rename(&temporary, path).map_err(failed)?;
    core::mem::forget(guard);
    Ok(bytes)
}

fn temporary(path: &Path, overwrite: bool) -> Result<PathBuf, ExportError> {
    if !overwrite && path.exists() {
        return Err(ExportError::Exists(path.to_owned()));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(path.with_file_name(format!(".{name}.{}.part", process::id())))
}

fn at(path: &Path, error: ExportError) -> ExportError {
    match error {
        ExportError::Write(None, error) => ExportError::Write(Some(path.to_owned()), error),
        other => other,
    }
}

/// Removes what is not finished.
struct Unfinished<'a> {
    path: &'a Path,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        let _ = if self.path.is_dir() { fs::remove_dir_all(self.path) } else { fs::remove_file(self.path) };
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use stackweave_testkit::folder::Folder;

    use super::*;

    #[test]
    fn a_failure_leaves_what_was_there_and_nothing_else() {
        let folder = Folder::new();
        let path = folder.write("a.txt", b"before");
        let full = |_: &mut dyn Write| Err(io::Error::from(io::ErrorKind::StorageFull).into());
        let said = write_file(&path, true, full).unwrap_err().to_string();
        assert!(said.contains("a.txt"), "{said}");
        assert_eq!((folder.names(), fs::read(&path).unwrap()), (vec!["a.txt".to_owned()], b"before".to_vec()));
    }

    #[test]
    fn a_file_is_replaced_only_if_that_is_wanted() {
        let folder = Folder::new();
        let path = folder.write("a.txt", b"before");
        let after = |out: &mut dyn Write| Ok(out.write_all(b"after")?);
        assert!(matches!(write_file(&path, false, after), Err(ExportError::Exists(_))));
        assert_eq!(write_file(&path, true, after).unwrap(), 5);
        assert_eq!((folder.names(), fs::read(&path).unwrap()), (vec!["a.txt".to_owned()], b"after".to_vec()));
    }

    #[test]
    fn a_folder_is_there_whole_or_not_at_all() {
        let folder = Folder::new();
        let path = folder.file("out");
        let half = |inside: &Path| {
            fs::write(inside.join("one"), "1")?;
            Err(io::Error::from(io::ErrorKind::StorageFull).into())
        };
        assert!(write_folder(&path, true, half).is_err());
        assert!(folder.names().is_empty());
        let whole = |inside: &Path| Ok(fs::write(inside.join("one"), "1").map(|()| 1)?);
        assert_eq!(write_folder(&path, false, whole).unwrap(), 1);
        assert_eq!(write_folder(&path, true, whole).unwrap(), 1);
        assert_eq!(fs::read(path.join("one")).unwrap(), b"1");
    }
}

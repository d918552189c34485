//! Creates and replaces output files, with errors that name the path.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use stackweave_files::output::{self, Existing, OutputFolder};

use crate::error::ExportError;

/// Writes a file completely or not at all. An existing file stays unchanged if something fails.
pub(crate) fn write_file(
    path: &Path,
    (overwrite, inputs): (bool, &[PathBuf]),
    write: impl FnOnce(&mut dyn Write) -> Result<(), ExportError>,
) -> Result<u64, ExportError> {
    if !output::is_stream(path) && inputs.iter().any(|input| is_same(input, path)) {
        return Err(ExportError::IsInput(path.to_owned()));
    }
    output::write_file(path, Existing::from_overwrite(overwrite), write).map_err(|error| with_path(path, error))
}

/// Writes a folder in the same way; `write` fills it.
pub(crate) fn write_folder(
    path: &Path,
    (overwrite, inputs): (bool, &[PathBuf]),
    write: impl FnOnce(&mut OutputFolder) -> Result<u64, ExportError>,
) -> Result<u64, ExportError> {
    let named = |error: ExportError| with_path(path, error);
    let created = OutputFolder::create(path, Existing::from_overwrite(overwrite), inputs);
    let mut folder = created.map_err(|error| named(error.into()))?;
    let bytes = write(&mut folder).map_err(named)?;
    let list = folder.finish().map_err(|error| named(error.into()))?;
    Ok(bytes + list)
}

fn is_same(one: &Path, other: &Path) -> bool {
    matches!((fs::canonicalize(one), fs::canonicalize(other)), (Ok(one), Ok(other)) if one == other)
}

fn with_path(path: &Path, error: ExportError) -> ExportError {
    match error {
        ExportError::Write(None, error) if error.kind() == io::ErrorKind::AlreadyExists => {
            ExportError::Exists(path.to_owned())
        }
        ExportError::Write(None, error) => ExportError::Write(Some(path.to_owned()), error),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use stackweave_testkit::folder::Folder;

    use super::*;

    #[test]
    fn a_failure_leaves_the_existing_file_and_names_the_path() {
        let folder = Folder::new();
        let path = folder.write("a.txt", b"before");
        let full = |_: &mut dyn Write| Err(io::Error::from(io::ErrorKind::StorageFull).into());
        let message = write_file(&path, (true, &[]), full).unwrap_err().to_string();
        assert!(message.contains("a.txt"), "{message}");
        assert_eq!((folder.names(), fs::read(&path).unwrap()), (vec!["a.txt".to_owned()], b"before".to_vec()));
    }

    #[test]
    fn a_file_is_replaced_only_on_request_and_if_it_is_no_input() {
        let folder = Folder::new();
        let path = folder.write("a.txt", b"before");
        let after = |out: &mut dyn Write| Ok(out.write_all(b"after")?);
        assert!(matches!(write_file(&path, (false, &[]), after), Err(ExportError::Exists(_))));
        let inputs = [folder.path().join("../").join(folder.path().file_name().unwrap()).join("a.txt")];
        assert!(matches!(write_file(&path, (true, &inputs), after), Err(ExportError::IsInput(_))));
        assert_eq!(fs::read(&path).unwrap(), b"before");
        assert_eq!(write_file(&path, (true, &[]), after).unwrap(), 5);
        assert_eq!((folder.names(), fs::read(&path).unwrap()), (vec!["a.txt".to_owned()], b"after".to_vec()));
    }

    fn folder_bytes(path: &Path) -> u64 {
        fs::read_dir(path).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
    }

    #[test]
    fn a_folder_is_written_completely_or_not_at_all() {
        let folder = Folder::new();
        let path = folder.file("out");
        let half = |inside: &mut OutputFolder| {
            inside.file(Path::new("one"))?.write_all(b"1")?;
            Err(io::Error::from(io::ErrorKind::StorageFull).into())
        };
        assert!(write_folder(&path, (true, &[]), half).is_err());
        assert!(folder.names().is_empty());
        let whole = |inside: &mut OutputFolder| Ok(inside.file(Path::new("one"))?.write_all(b"1").map(|()| 1)?);
        let bytes = write_folder(&path, (false, &[]), whole).unwrap();
        assert_eq!(bytes, folder_bytes(&path));
        assert!(matches!(write_folder(&path, (false, &[]), whole), Err(ExportError::Exists(_))));
        assert_eq!(write_folder(&path, (true, &[]), whole).unwrap(), bytes);
        assert_eq!(fs::read(path.join("one")).unwrap(), b"1");
    }
}

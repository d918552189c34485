//! The list of the files that an export has written to its folder. It allows, and only it allows, a later export
//! to replace the folder.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Readers of datasets ignore names that begin like this.
pub(super) const NAME: &str = "_stackweave_export";
const FIRST_LINE: &str = "stackweave export 1";
/// A longer list was not written by Stackweave.
const MAX_BYTES: u64 = 64 << 20;
/// The size of entries that are not files. It is in no list, so that a link, a device or an empty folder is never
/// regarded as an exported file.
const NO_FILE: u64 = u64::MAX;

/// The files of an export by their paths in its folder, with their sizes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Manifest(pub(super) BTreeMap<PathBuf, u64>);

impl Manifest {
    /// Writes the list, a line for each file.
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{FIRST_LINE}")?;
        for (path, size) in &self.0 {
            let path = path.to_str().filter(|path| !path.contains('\n')).ok_or(io::ErrorKind::InvalidInput)?;
            writeln!(out, "{size} {path}")?;
        }
        Ok(())
    }

    /// Returns the contents of a folder. Fails unless all of it is in the folder's own list, so that an export may
    /// replace it.
    pub(super) fn of_whole_folder(folder: &Path) -> io::Result<Self> {
        let refuse = |sentence: String| Err(io::Error::new(io::ErrorKind::InvalidInput, sentence));
        let Some(listed) = Self::read(&folder.join(NAME))? else {
            return refuse(format!(
                "the folder has no list {NAME} of an export, and is not replaced: name a new folder"
            ));
        };
        let mut found = BTreeMap::new();
        walk(folder, Path::new(""), &mut found)?;
        found.remove(Path::new(NAME));
        for (path, size) in &found {
            let path_text = path.display();
            match listed.0.get(path) {
                None => {
                    return refuse(format!(
                        "the folder also contains {path_text}, and is not replaced: name a new folder"
                    ));
                }
                Some(known) if known != size => {
                    return refuse(format!(
                        "{path_text} in it has changed, and the folder is not replaced: name a new folder"
                    ));
                }
                Some(_) => {}
            }
        }
        // Remove files that are only in the list: they are not in the folder, and must never be deleted.
        Ok(Self(found))
    }

    /// Reads a list; `None` if the file is not such a list.
    fn read(path: &Path) -> io::Result<Option<Self>> {
        let is_list = fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.len() <= MAX_BYTES);
        if !is_list {
            return Ok(None);
        }
        let bytes = fs::read(path)?;
        let Ok(text) = String::from_utf8(bytes) else { return Ok(None) };
        let mut lines = text.lines();
        if lines.next() != Some(FIRST_LINE) {
            return Ok(None);
        }
        let file = |line: &str| {
            let (size, path) = line.split_once(' ')?;
            Some((PathBuf::from(path), size.parse().ok().filter(|size| *size != NO_FILE)?))
        };
        Ok(lines.map(file).collect::<Option<_>>().map(Self))
    }

    /// Removes the listed files, their folders and the folder itself. Other files remain, with the folders around
    /// them.
    pub(super) fn remove(&self, folder: &Path) {
        let mut folders = Vec::new();
        for path in self.0.keys() {
            let _ = fs::remove_file(folder.join(path));
            folders.extend(path.ancestors().skip(1).map(|inner| folder.join(inner)));
        }
        let _ = fs::remove_file(folder.join(NAME));
        folders.push(folder.to_owned());
        folders.sort();
        folders.dedup();
        // Inner folders are last in order, and are removed first. Folders that still contain something remain.
        for each in folders.iter().rev() {
            let _ = fs::remove_dir(each);
        }
    }
}

/// Lists the contents of a folder, with sizes. Links are not followed; an empty folder is an entry.
fn walk(root: &Path, inner: &Path, found: &mut BTreeMap<PathBuf, u64>) -> io::Result<()> {
    let mut is_empty = true;
    for entry in fs::read_dir(root.join(inner))? {
        let entry = entry?;
        is_empty = false;
        let path = inner.join(entry.file_name());
        let known = entry.metadata()?;
        if known.is_dir() {
            walk(root, &path, found)?;
        } else {
            found.insert(path, if known.is_file() { known.len() } else { NO_FILE });
        }
    }
    if is_empty && !inner.as_os_str().is_empty() {
        found.insert(inner.to_owned(), NO_FILE);
    }
    Ok(())
}

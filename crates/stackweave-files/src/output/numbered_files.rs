//! Files of one owner, who may write some of them repeatedly. Files of others are never overwritten: the name gets
//! a number instead.

use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::{Existing, numbered, write_file};

/// The highest number that is tried.
const MAX_NUMBER: u32 = 100_000;

/// The files that one owner has written.
#[derive(Debug, Default)]
pub struct NumberedFiles {
    files: Vec<(PathBuf, Stamp)>,
}

/// Shows whether a file is still the one that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    file: (u64, u64),
    length: u64,
    modified: (i64, i64),
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            file: (metadata.dev(), metadata.ino()),
            length: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

impl NumberedFiles {
    /// Writes a file: over an older one of this owner, otherwise with a free name. Returns its path.
    pub fn save(&mut self, wanted: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
        for number in 1..MAX_NUMBER {
            let path = numbered(wanted, number);
            let existing = Existing::from_overwrite(self.is_own(&path));
            match write_file(&path, existing, |out| out.write_all(bytes)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                written => written?,
            };
            let stamp = Stamp::of(&fs::symlink_metadata(&path)?);
            self.files.retain(|(known, _)| *known != path);
            self.files.push((path.clone(), stamp));
            return Ok(path);
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Returns the files, in the order in which they were written.
    pub fn paths(&self) -> impl Iterator<Item = &OsStr> {
        self.files.iter().map(|(path, _)| path.as_os_str())
    }

    fn is_own(&self, path: &Path) -> bool {
        let known = self.files.iter().find(|(known, _)| known == path);
        known.is_some_and(|(_, stamp)| fs::symlink_metadata(path).is_ok_and(|found| Stamp::of(&found) == *stamp))
    }
}

#[cfg(test)]
mod tests {
    use stackweave_testkit::folder::Folder;

    use super::*;

    #[test]
    fn other_files_are_kept_and_own_ones_are_replaced() {
        let folder = Folder::new();
        let [wanted, second, third] = ["out.prof", "out-2.prof", "out-3.prof"].map(|name| folder.file(name));
        fs::write(&wanted, "other").unwrap();
        let mut files = NumberedFiles::default();
        assert_eq!(files.save(&wanted, b"one").unwrap(), second);
        assert_eq!(files.save(&wanted, b"two").unwrap(), second);
        assert_eq!(fs::read(&second).unwrap(), b"two");
        // A changed file no longer belongs to this owner.
        fs::write(&second, "changed").unwrap();
        assert_eq!(files.save(&wanted, b"three").unwrap(), third);
        assert_eq!(files.paths().collect::<Vec<_>>(), [second.as_os_str(), third.as_os_str()]);
        assert_eq!([&wanted, &second].map(|path| fs::read_to_string(path).unwrap()), ["other", "changed"]);
    }
}

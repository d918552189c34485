//! The files of one state. What others have written is never overwritten: the name gets a number.

use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use stackweave_files::output::{Existing, numbered, write_file};

/// More files of one name than anybody looks at.
const MOST: u32 = 100_000;

#[derive(Default)]
pub(super) struct SavedFiles {
    files: Vec<(PathBuf, Stamp)>,
}

/// What shows that a file is still the one that was written.
#[derive(Clone, Copy, PartialEq, Eq)]
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

impl SavedFiles {
    /// Writes a file, over an older one of this state, or else under a name that is free. Says which.
    pub(super) fn save(&mut self, wanted: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
        for number in 1..MOST {
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

    /// What was saved, in the order in which it was.
    pub(super) fn paths(&self) -> impl Iterator<Item = &OsStr> {
        self.files.iter().map(|(path, _)| path.as_os_str())
    }

    fn is_own(&self, path: &Path) -> bool {
        let known = self.files.iter().find(|(known, _)| known == path);
        known.is_some_and(|(_, stamp)| fs::symlink_metadata(path).is_ok_and(|found| Stamp::of(&found) == *stamp))
    }
}

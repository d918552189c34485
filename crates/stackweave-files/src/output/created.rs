//! The proof that this process has created a file or folder.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A file or folder that this process has created, with its name.
///
/// A different file that has received the name since then is never touched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Created {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl Created {
    /// Returns the proof for a file that the caller has created with this name.
    pub(super) fn file(path: &Path, file: &File) -> io::Result<Self> {
        Ok(Self::new(path, &file.metadata()?))
    }

    /// Creates a folder, which must not exist yet.
    pub(super) fn folder(path: &Path, mode: u32) -> io::Result<Self> {
        use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
        fs::DirBuilder::new().mode(0o700).create(path)?;
        if mode != 0o700 {
            fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
        }
        Ok(Self::new(path, &fs::symlink_metadata(path)?))
    }

    fn new(path: &Path, found: &Metadata) -> Self {
        Self { path: path.to_owned(), device: found.dev(), inode: found.ino() }
    }

    /// Returns its name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the numbers of its device and inode.
    pub const fn identity(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    /// Returns whether it still has the name.
    pub fn exists(&self) -> bool {
        fs::symlink_metadata(&self.path).is_ok_and(|found| (found.dev(), found.ino()) == self.identity())
    }

    /// Removes the file, or the folder if it is empty, if it still has the name. Returns whether it was removed.
    pub fn discard(&self) -> bool {
        let Ok(found) = fs::symlink_metadata(&self.path) else { return false };
        if (found.dev(), found.ino()) != self.identity() {
            return false;
        }
        if found.is_dir() { fs::remove_dir(&self.path).is_ok() } else { fs::remove_file(&self.path).is_ok() }
    }
}

/// Removes a regular file if `is_ours` confirms it by its content. Links, devices and folders are not removed.
/// Returns whether the file was removed.
pub fn remove_file_if(path: &Path, is_ours: impl FnOnce(&Path) -> bool) -> bool {
    let is_file = fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    is_file && is_ours(path) && fs::remove_file(path).is_ok()
}

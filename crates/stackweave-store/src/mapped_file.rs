//! A file's bytes, mapped into memory.

use std::fs::{File, Metadata};
use std::io;
use std::ops::Deref;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use memmap2::Mmap;

/// Which file it is, and in which state: another file at the same path, or the same file rewritten, has
/// another identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileIdentity {
    device: u64,
    inode: u64,
    size: u64,
    modified_ns: i128,
}

impl FileIdentity {
    /// The identity of the file that is at `path` now.
    pub fn of_path(path: &Path) -> io::Result<Self> {
        std::fs::metadata(path).map(|metadata| Self::of_metadata(&metadata))
    }

    /// Whether both are the same file, in whatever state.
    pub fn is_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    fn of_metadata(metadata: &Metadata) -> Self {
        let modified_ns = i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
        Self { device: metadata.dev(), inode: metadata.ino(), size: metadata.size(), modified_ns }
    }
}

/// A file's bytes. They stay, even if the file is deleted or another one takes its place.
///
/// They do not stay if someone writes to the very same file: compare [`MappedFile::identity`] with
/// [`FileIdentity::of_path`] before relying on them again. A file that is cut short while its bytes are
/// read ends the process, as it does a program whose own libraries are cut short.
#[derive(Debug)]
pub struct MappedFile {
    path: PathBuf,
    identity: FileIdentity,
    map: Option<Mmap>,
}

impl MappedFile {
    /// Maps the file at `path`. Only regular files can be mapped.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        // An empty file can't be mapped, and has no bytes to map.
        let map = if metadata.size() == 0 {
            None
        } else {
            // SAFETY: a private, read-only mapping. That nobody writes to the file meanwhile can't be
            // known: parsers of these bytes trust none of them, and check every bound.
            Some(unsafe { Mmap::map(&file) }?)
        };
        Ok(Self { path: path.to_owned(), identity: FileIdentity::of_metadata(&metadata), map })
    }

    /// Where it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Which file it was when it was opened.
    pub fn identity(&self) -> FileIdentity {
        self.identity
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("stackweave-store-{}-{name}", std::process::id()))
    }

    #[test]
    fn bytes_outlive_the_file() {
        let path = scratch("outlive");
        std::fs::write(&path, b"some bytes").unwrap();
        let file = MappedFile::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(&*file, b"some bytes");
        assert!(FileIdentity::of_path(&path).is_err());
    }

    #[test]
    fn another_file_at_the_same_path_has_another_identity() {
        let path = scratch("identity");
        std::fs::write(&path, b"first").unwrap();
        let first = MappedFile::open(&path).unwrap();
        assert_eq!(FileIdentity::of_path(&path).unwrap(), first.identity());
        let other = scratch("identity-other");
        std::fs::write(&other, b"second").unwrap();
        std::fs::rename(&other, &path).unwrap();
        let second = FileIdentity::of_path(&path).unwrap();
        assert!(second != first.identity() && !second.is_same_file(&first.identity()));
        assert_eq!(&*first, b"first");
        std::fs::write(&path, b"second, rewritten").unwrap();
        let rewritten = FileIdentity::of_path(&path).unwrap();
        assert!(rewritten != second && rewritten.is_same_file(&second));
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn an_empty_file_has_no_bytes_and_a_folder_is_no_file() {
        let path = scratch("empty");
        std::fs::write(&path, b"").unwrap();
        assert!(MappedFile::open(&path).unwrap().is_empty());
        std::fs::remove_file(&path).unwrap();
        assert!(MappedFile::open(&std::env::temp_dir()).is_err());
    }
}

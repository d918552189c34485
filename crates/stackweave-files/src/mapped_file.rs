//! The bytes of a file, mapped into memory or copied.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::ops::Deref;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use memmap2::{Mmap, UncheckedAdvice};

use crate::regular_file::open_regular;

/// The identity and state of a file: a different file at the same path, or the same file after a change, has a
/// different identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileIdentity {
    device: u64,
    inode: u64,
    size: u64,
    modified_ns: i128,
}

impl FileIdentity {
    /// Returns the identity of the file that is currently at `path`.
    pub fn of_path(path: &Path) -> io::Result<Self> {
        std::fs::metadata(path).map(|metadata| Self::of_metadata(&metadata))
    }

    /// Returns whether both are the same file, in any state.
    pub fn is_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    fn of_metadata(metadata: &Metadata) -> Self {
        let modified_ns = i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
        Self { device: metadata.dev(), inode: metadata.ino(), size: metadata.size(), modified_ns }
    }
}

/// The bytes of a file. They remain valid if the file is deleted or replaced.
///
/// They do not remain valid if another program writes to the same file: compare [`MappedFile::identity`] with
/// [`FileIdentity::of_path`] before using them again. If a mapped file is truncated while its bytes are read, the
/// process ends, as it does if its own libraries are truncated. So map only files that the program has mapped
/// itself, and use [`MappedFile::open_copied`] for other files.
#[derive(Debug)]
pub struct MappedFile {
    path: PathBuf,
    identity: FileIdentity,
    bytes: MappedBytes,
}

#[derive(Debug)]
enum MappedBytes {
    Mapped(Mmap),
    Copied(Box<[u8]>),
}

/// Larger files are always mapped: a copy would need too much memory.
const MAX_COPIED: u64 = 64 << 20;

impl MappedFile {
    /// Maps the file at `path`. Only regular files can be mapped.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = open_regular(path)?;
        let metadata = file.metadata()?;
        Self::of(path, &file, &metadata)
    }

    /// Copies the file at `path` into memory, up to 64 MiB; larger files are mapped. So a debug file that is
    /// rewritten while its bytes are read causes wrong names at worst, and does not end the reading program.
    pub fn open_copied(path: &Path) -> io::Result<Self> {
        let file = open_regular(path)?;
        let metadata = file.metadata()?;
        if metadata.size() > MAX_COPIED {
            return Self::of(path, &file, &metadata);
        }
        let mut bytes = Vec::new();
        file.take(MAX_COPIED).read_to_end(&mut bytes)?;
        let bytes = MappedBytes::Copied(bytes.into());
        Ok(Self { path: path.to_owned(), identity: FileIdentity::of_metadata(&metadata), bytes })
    }

    fn of(path: &Path, file: &File, metadata: &Metadata) -> io::Result<Self> {
        // An empty file cannot be mapped, and has no bytes.
        let bytes = if metadata.size() == 0 {
            MappedBytes::Copied(Box::default())
        } else {
            // SAFETY: a private, read-only mapping. Another program may write to the file meanwhile: parsers of
            // these bytes trust none of them, and check every bound.
            MappedBytes::Mapped(unsafe { Mmap::map(file) }?)
        };
        Ok(Self { path: path.to_owned(), identity: FileIdentity::of_metadata(metadata), bytes })
    }

    /// Releases the memory of the bytes that were read: the next use reads them from the file again.
    pub fn release(&self) {
        if let MappedBytes::Mapped(map) = &self.bytes {
            // SAFETY: nothing is lost, because the mapping is read-only and of a file. Without success, the bytes stay.
            drop(unsafe { map.unchecked_advise(UncheckedAdvice::DontNeed) });
        }
    }

    /// Returns the path with which it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the identity that the file had when it was opened.
    pub fn identity(&self) -> FileIdentity {
        self.identity
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.bytes {
            MappedBytes::Mapped(map) => map,
            MappedBytes::Copied(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("stackweave-store-{}-{name}", std::process::id()))
    }

    #[test]
    fn bytes_remain_after_the_file_is_deleted() {
        let path = scratch("outlive");
        std::fs::write(&path, b"some bytes").unwrap();
        let file = MappedFile::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(&*file, b"some bytes");
        assert!(FileIdentity::of_path(&path).is_err());
    }

    #[test]
    fn a_copy_remains_after_a_truncation() {
        let path = scratch("cut");
        std::fs::write(&path, vec![7; 1 << 16]).unwrap();
        let file = MappedFile::open_copied(&path).unwrap();
        assert_eq!(file.identity(), FileIdentity::of_path(&path).unwrap());
        // A mapping could no longer be read here.
        std::fs::write(&path, b"").unwrap();
        assert!(file.len() == 1 << 16 && file.iter().all(|byte| *byte == 7));
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn released_bytes_are_read_again() {
        let path = scratch("release");
        std::fs::write(&path, vec![7; 1 << 20]).unwrap();
        let file = MappedFile::open(&path).unwrap();
        let resident = || {
            let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
            let of_file = maps.split_once(path.to_str().unwrap()).map(|(_, of_file)| of_file.to_owned());
            of_file.and_then(|text| text.split_once("Rss:")?.1.split_whitespace().next()?.parse::<u64>().ok())
        };
        assert!(file.iter().all(|byte| *byte == 7) && resident().is_some_and(|resident| resident >= 1 << 10));
        file.release();
        assert_eq!(resident(), Some(0));
        assert!(file.iter().all(|byte| *byte == 7));
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_different_file_at_the_same_path_has_a_different_identity() {
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
    fn an_empty_file_has_no_bytes_and_a_folder_is_refused() {
        let path = scratch("empty");
        std::fs::write(&path, b"").unwrap();
        assert!(MappedFile::open(&path).unwrap().is_empty());
        std::fs::remove_file(&path).unwrap();
        assert!(MappedFile::open(&std::env::temp_dir()).is_err());
    }
}

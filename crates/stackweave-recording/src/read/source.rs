//! Sources of the bytes of a recording.
//!
//! Files are read and not mapped: a file that is truncated meanwhile causes short reads instead of a signal.

use core::fmt;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use stackweave_files::open_regular;

/// Bytes that many threads can read at any position.
pub trait RecordingSource: Send + Sync + fmt::Debug {
    /// Returns the current number of bytes.
    fn size(&self) -> io::Result<u64>;

    /// Fills `buffer` from position `at` on, as far as there are bytes, and returns the number of bytes.
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Returns the user id of the owner of the file; `None` if it is no file.
    fn owner(&self) -> Option<u32> {
        None
    }
}

impl RecordingSource for Arc<[u8]> {
    fn size(&self) -> io::Result<u64> {
        Ok(self.as_ref().len() as u64)
    }

    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(at).ok().and_then(|at| self.get(at..)).unwrap_or_default();
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }
}

/// The maximum number of open files. A folder may contain more than a process may open, so the others are opened for each block
/// that is read.
const MAX_OPEN_FILES: usize = 256;

static OPEN_FILES: AtomicUsize = AtomicUsize::new(0);

/// A file on disk.
#[derive(Debug)]
pub(crate) struct FileSource {
    path: PathBuf,
    identity: FileId,
    owner: u32,
    open: Option<File>,
}

/// The identity of a file, independent of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }

    /// Returns the identity of the file at `path`, if there is one.
    pub(crate) fn at(path: &Path) -> Option<Self> {
        std::fs::metadata(path).ok().map(|metadata| Self::of(&metadata))
    }
}

impl FileSource {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = open_regular(path)?;
        let metadata = file.metadata()?;
        let (identity, owner) = (FileId::of(&metadata), metadata.uid());
        let may_stay_open = OPEN_FILES
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |open| (open < MAX_OPEN_FILES).then_some(open + 1))
            .is_ok();
        Ok(Self { path: path.to_owned(), identity, owner, open: may_stay_open.then_some(file) })
    }

    fn with<T>(&self, act: impl FnOnce(&File) -> io::Result<T>) -> io::Result<T> {
        if let Some(file) = &self.open {
            return act(file);
        }
        let file = open_regular(&self.path)?;
        if FileId::of(&file.metadata()?) != self.identity {
            return Err(io::Error::other("another file has replaced it"));
        }
        act(&file)
    }
}

impl Drop for FileSource {
    fn drop(&mut self) {
        if self.open.is_some() {
            OPEN_FILES.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl RecordingSource for FileSource {
    fn owner(&self) -> Option<u32> {
        Some(self.owner)
    }

    fn size(&self) -> io::Result<u64> {
        self.with(|file| file.metadata().map(|metadata| metadata.len()))
    }

    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.with(|file| {
            let mut done = 0;
            while done < buffer.len() {
                match file.read_at(&mut buffer[done..], at.saturating_add(done as u64)) {
                    Ok(0) => break,
                    Ok(read) => done += read,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(done)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_beyond_the_end_are_short() {
        let bytes: Arc<[u8]> = Arc::from(&b"0123456789"[..]);
        let mut buffer = [0; 4];
        assert_eq!(bytes.read_at(8, &mut buffer).unwrap(), 2);
        assert_eq!(&buffer[..2], b"89");
        assert_eq!(bytes.read_at(10, &mut buffer).unwrap() + bytes.read_at(u64::MAX, &mut buffer).unwrap(), 0);
    }

    #[test]
    fn a_file_that_replaced_the_opened_one_is_not_read() {
        let folder = std::env::temp_dir();
        let path = folder.join(format!("stackweave-source-{}", std::process::id()));
        let other = folder.join(format!("stackweave-source-{}-other", std::process::id()));
        std::fs::write(&path, b"first").unwrap();
        let mut source = FileSource::open(&path).unwrap();
        if source.open.take().is_some() {
            OPEN_FILES.fetch_sub(1, Ordering::Relaxed);
        }
        let mut buffer = [0; 8];
        assert_eq!(source.read_at(1, &mut buffer).unwrap(), 4);
        std::fs::write(&other, b"other").unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert_eq!(source.read_at(0, &mut buffer).unwrap_err().to_string(), "another file has replaced it");
        std::fs::remove_file(&path).unwrap();
    }
}

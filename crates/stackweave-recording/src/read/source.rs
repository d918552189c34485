//! Where the bytes of a recording come from.
//!
//! Files are read at positions and not mapped: one that is cut while it is read gives short reads, not a signal.

use core::fmt;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use stackweave_files::open_regular;

/// Bytes that can be read at any position, by many threads at once.
pub trait Source: Send + Sync + fmt::Debug {
    /// How many there are now.
    fn size(&self) -> io::Result<u64>;

    /// Fills `buffer` from `at` on, as far as there are bytes, and says how far.
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Returns the number of the user who owns the file that they are in; `None` if they are in none.
    fn owner(&self) -> Option<u32> {
        None
    }
}

impl Source for Arc<[u8]> {
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

/// How many files of recordings are kept open. A folder may hold more than a process may open; the others are
/// opened for each block that is read.
const HELD_FILES: usize = 256;

static HELD: AtomicUsize = AtomicUsize::new(0);

/// A file on disk.
#[derive(Debug)]
pub(crate) struct FileSource {
    path: PathBuf,
    identity: FileId,
    owner: u32,
    held: Option<File>,
}

/// Which file it is, whatever it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }

    /// The file that is at `path`, if there is one.
    pub(crate) fn at(path: &Path) -> Option<Self> {
        std::fs::metadata(path).ok().map(|metadata| Self::of(&metadata))
    }
}

impl FileSource {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = open_regular(path)?;
        let metadata = file.metadata()?;
        let (identity, owner) = (FileId::of(&metadata), metadata.uid());
        let may_hold = HELD
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| (held < HELD_FILES).then_some(held + 1))
            .is_ok();
        Ok(Self { path: path.to_owned(), identity, owner, held: may_hold.then_some(file) })
    }

    fn with<T>(&self, act: impl FnOnce(&File) -> io::Result<T>) -> io::Result<T> {
        if let Some(file) = &self.held {
            return act(file);
        }
        let file = open_regular(&self.path)?;
        if FileId::of(&file.metadata()?) != self.identity {
            return Err(io::Error::other("another file has taken its place"));
        }
        act(&file)
    }
}

impl Drop for FileSource {
    fn drop(&mut self) {
        if self.held.is_some() {
            HELD.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Source for FileSource {
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
    fn bytes_behind_the_end_are_not_there() {
        let bytes: Arc<[u8]> = Arc::from(&b"0123456789"[..]);
        let mut buffer = [0; 4];
        assert_eq!(bytes.read_at(8, &mut buffer).unwrap(), 2);
        assert_eq!(&buffer[..2], b"89");
        assert_eq!(bytes.read_at(10, &mut buffer).unwrap() + bytes.read_at(u64::MAX, &mut buffer).unwrap(), 0);
    }

    #[test]
    fn a_file_that_took_anothers_place_is_not_read() {
        let folder = std::env::temp_dir();
        let path = folder.join(format!("stackweave-source-{}", std::process::id()));
        let other = folder.join(format!("stackweave-source-{}-other", std::process::id()));
        std::fs::write(&path, b"first").unwrap();
        let mut source = FileSource::open(&path).unwrap();
        if source.held.take().is_some() {
            HELD.fetch_sub(1, Ordering::Relaxed);
        }
        let mut buffer = [0; 8];
        assert_eq!(source.read_at(1, &mut buffer).unwrap(), 4);
        std::fs::write(&other, b"other").unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert_eq!(source.read_at(0, &mut buffer).unwrap_err().to_string(), "another file has taken its place");
        std::fs::remove_file(&path).unwrap();
    }
}

//! The cache folder of debug files. elfutils' clients share it, so it has their layout.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use stackweave_core::BuildId;
use stackweave_files::output::{Existing, OutputFile};

/// The time that a missing file is remembered.
const MISSING_FOR: Duration = Duration::from_secs(600);

/// The cache has `FOLDER/BUILD-ID/debuginfo` for each file; it is empty if no server has the file.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    folder: PathBuf,
}

/// The result of a search in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cached {
    Here(PathBuf),
    /// No server had it, recently.
    Missing,
    Unknown,
}

impl Cache {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    pub(super) fn path(&self, id: &BuildId) -> PathBuf {
        self.folder.join(id.to_string()).join("debuginfo")
    }

    pub(super) fn find(&self, id: &BuildId) -> Cached {
        let path = self.path(id);
        let Ok(metadata) = fs::metadata(&path) else { return Cached::Unknown };
        if !metadata.is_file() {
            return Cached::Unknown;
        }
        if metadata.len() > 0 {
            return Cached::Here(path);
        }
        let age = metadata.modified().ok().and_then(|modified| modified.elapsed().ok());
        if age.is_some_and(|age| age < MISSING_FOR) { Cached::Missing } else { Cached::Unknown }
    }

    /// Remembers that no server has the file. A file that another process has fetched meanwhile is kept.
    pub(super) fn note_missing(&self, id: &BuildId) -> io::Result<()> {
        match self.find(id) {
            Cached::Here(_) => Ok(()),
            _ => self.begin(id)?.keep(),
        }
    }

    /// Begins a file with a temporary name.
    pub(super) fn begin(&self, id: &BuildId) -> io::Result<UnfinishedDownload> {
        let path = self.path(id);
        fs::create_dir_all(path.parent().unwrap_or(&self.folder))?;
        let file = OutputFile::create(&path, Existing::Replace)?;
        Ok(UnfinishedDownload { file, path, first: Vec::new(), length: 0 })
    }
}

/// A file that is not complete yet. If it is dropped, it is removed.
#[derive(Debug)]
pub(super) struct UnfinishedDownload {
    file: OutputFile,
    path: PathBuf,
    first: Vec<u8>,
    length: u64,
}

impl UnfinishedDownload {
    /// Gives the file its name, atomically.
    pub(super) fn keep(self) -> io::Result<()> {
        self.file.finish().map(drop)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }

    pub(super) fn is_elf(&self) -> bool {
        self.first == b"\x7fELF"
    }
}

impl Write for UnfinishedDownload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        let missing = 4_usize.saturating_sub(self.first.len()).min(written);
        self.first.extend_from_slice(&bytes[..missing]);
        self.length += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_folder::TestFolder;

    #[test]
    fn a_file_has_its_name_when_it_is_complete() {
        let folder = TestFolder::new();
        let (cache, id) = (Cache::new(folder.path().join("cache")), BuildId::new(&[0xab, 0xcd]).unwrap());
        assert_eq!(cache.find(&id), Cached::Unknown);
        let mut unfinished = cache.begin(&id).unwrap();
        for byte in b"\x7fELF..." {
            unfinished.write_all(&[*byte]).unwrap();
        }
        assert!(unfinished.is_elf());
        assert_eq!((unfinished.length(), cache.find(&id)), (7, Cached::Unknown));
        unfinished.keep().unwrap();
        assert_eq!(cache.find(&id), Cached::Here(folder.path().join("cache/abcd/debuginfo")));
        cache.note_missing(&id).unwrap();
        assert!(matches!(cache.find(&id), Cached::Here(_)));
        drop(cache.begin(&id).unwrap());
        assert_eq!(fs::read_dir(folder.path().join("cache/abcd")).unwrap().count(), 1);
    }

    #[test]
    fn files_of_a_killed_process_are_harmless() {
        let folder = TestFolder::new();
        let (cache, id) = (Cache::new(folder.path().into()), BuildId::new(&[2]).unwrap());
        fs::create_dir(folder.path().join("02")).unwrap();
        for number in 0..300 {
            folder.file(&format!("02/debuginfo.{}-{number}", std::process::id()), "");
        }
        assert!(cache.begin(&id).unwrap().keep().is_ok());
    }

    #[test]
    fn a_missing_file_is_remembered_for_a_limited_time() {
        let folder = TestFolder::new();
        let (cache, id) = (Cache::new(folder.path().into()), BuildId::new(&[1]).unwrap());
        cache.note_missing(&id).unwrap();
        assert_eq!(cache.find(&id), Cached::Missing);
        let file = fs::File::options().write(true).open(cache.path(&id)).unwrap();
        file.set_modified(std::time::SystemTime::now() - MISSING_FOR).unwrap();
        assert_eq!(cache.find(&id), Cached::Unknown);
    }
}

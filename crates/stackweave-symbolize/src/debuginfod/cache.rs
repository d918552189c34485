//! The folder that debug files are kept in, shared with the clients of elfutils and so laid out like theirs.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use stackweave_core::BuildId;
use stackweave_files::output::{Existing, OutputFile};

/// How long it is believed that no server has a file.
const MISSING_FOR: Duration = Duration::from_secs(600);

/// `FOLDER/BUILD-ID/debuginfo` for each file; empty if no server has it.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    folder: PathBuf,
}

/// What the cache knows of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cached {
    Here(PathBuf),
    /// No server had it, not long ago.
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

    /// Takes note that no server has the file. A file that someone else has fetched meanwhile stays.
    pub(super) fn note_missing(&self, id: &BuildId) -> io::Result<()> {
        match self.find(id) {
            Cached::Here(_) => Ok(()),
            _ => self.begin(id)?.keep(),
        }
    }

    /// Begins a file, under another name until it is whole.
    pub(super) fn begin(&self, id: &BuildId) -> io::Result<Unfinished> {
        let path = self.path(id);
        fs::create_dir_all(path.parent().unwrap_or(&self.folder))?;
        let file = OutputFile::create(&path, Existing::Replace)?;
        Ok(Unfinished { file, path, first: Vec::new(), length: 0 })
    }
}

/// A file on its way into the cache. Dropped, it is gone.
#[derive(Debug)]
pub(super) struct Unfinished {
    file: OutputFile,
    path: PathBuf,
    first: Vec<u8>,
    length: u64,
}

impl Unfinished {
    /// Makes it the file of its name, at once and as a whole.
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

impl Write for Unfinished {
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
    fn a_file_is_there_when_it_is_whole() {
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
    fn what_a_killed_process_left_is_in_nobodys_way() {
        let folder = TestFolder::new();
        let (cache, id) = (Cache::new(folder.path().into()), BuildId::new(&[2]).unwrap());
        fs::create_dir(folder.path().join("02")).unwrap();
        for number in 0..300 {
            folder.file(&format!("02/debuginfo.{}-{number}", std::process::id()), "");
        }
        assert!(cache.begin(&id).unwrap().keep().is_ok());
    }

    #[test]
    fn it_is_forgotten_after_a_while_that_there_is_no_file() {
        let folder = TestFolder::new();
        let (cache, id) = (Cache::new(folder.path().into()), BuildId::new(&[1]).unwrap());
        cache.note_missing(&id).unwrap();
        assert_eq!(cache.find(&id), Cached::Missing);
        let file = fs::File::options().write(true).open(cache.path(&id)).unwrap();
        file.set_modified(std::time::SystemTime::now() - MISSING_FOR).unwrap();
        assert_eq!(cache.find(&id), Cached::Unknown);
    }
}

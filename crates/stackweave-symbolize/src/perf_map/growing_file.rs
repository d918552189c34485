//! A file that a running process appends to.

use std::fs::{File, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use stackweave_files::open_regular;

/// The change of the file since the last check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Growth {
    /// No change, or there is no file.
    Same,
    /// Data was appended after the consumed part.
    Appended,
    /// It is a different file, or was rewritten: it must be read from its start.
    Replaced,
}

/// The first of some paths at which there is a file, and how much of it was read.
#[derive(Debug)]
pub(super) struct PerfMapFile {
    candidates: Vec<PathBuf>,
    pid: u32,
    opened: Option<Opened>,
}

/// The opened file. It is kept open so that no other file can have its inode number.
#[derive(Debug)]
struct Opened {
    file: File,
    path: PathBuf,
    consumed: u64,
    /// The last consumed bytes, which differ if the file was rewritten.
    last_bytes: Vec<u8>,
}

const LAST_BYTES: usize = 64;

impl PerfMapFile {
    /// Creates the reader for the file that process `pid` writes at one of `candidates`.
    pub(super) fn new(candidates: Vec<PathBuf>, pid: u32) -> Self {
        Self { candidates, pid, opened: None }
    }

    /// Checks whether there is something to read. A deleted file is unchanged.
    pub(super) fn check(&mut self) -> Growth {
        if let Some(opened) = &mut self.opened {
            match open(&opened.path, self.pid) {
                Some(file) if !is_same(&file, &opened.file) => {
                    *opened = Opened { file, path: opened.path.clone(), consumed: 0, last_bytes: Vec::new() };
                    return Growth::Replaced;
                }
                _ => return opened.growth(),
            }
        }
        let found = self.candidates.iter().find_map(|path| Some((open(path, self.pid)?, path.clone())));
        let Some((file, path)) = found else { return Growth::Same };
        self.opened = Some(Opened { file, path, consumed: 0, last_bytes: Vec::new() });
        Growth::Replaced
    }

    /// Returns whether a file was found.
    pub(super) fn is_open(&self) -> bool {
        self.opened.is_some()
    }

    /// Returns how much of it was consumed.
    pub(super) fn consumed(&self) -> u64 {
        self.opened.as_ref().map_or(0, |opened| opened.consumed)
    }

    /// Marks everything before `offset` as consumed.
    pub(super) fn consume_to(&mut self, offset: u64) {
        let from = offset.saturating_sub(LAST_BYTES as u64);
        let mut last_bytes = [0; LAST_BYTES];
        let length = self.read_at(from, &mut last_bytes[..usize::try_from(offset - from).unwrap_or(0)]);
        if let Some(opened) = &mut self.opened {
            opened.consumed = offset;
            opened.last_bytes = last_bytes[..length].to_vec();
        }
    }

    /// Returns the current length of the file.
    pub(super) fn length(&self) -> u64 {
        self.opened.as_ref().and_then(|opened| opened.file.metadata().ok()).map_or(0, |metadata| metadata.len())
    }

    /// Fills `buffer` from `offset` on as far as the file extends, and returns the number of bytes. An error is
    /// treated as the end of the file.
    pub(super) fn read_at(&self, offset: u64, buffer: &mut [u8]) -> usize {
        self.opened.as_ref().map_or(0, |opened| read_at(&opened.file, offset, buffer))
    }
}

impl Opened {
    fn growth(&mut self) -> Growth {
        let Ok(metadata) = self.file.metadata() else { return Growth::Same };
        let mut last_bytes = vec![0; self.last_bytes.len()];
        let length = read_at(&self.file, self.consumed.saturating_sub(last_bytes.len() as u64), &mut last_bytes);
        if metadata.len() < self.consumed || last_bytes[..length] != self.last_bytes {
            self.consumed = 0;
            self.last_bytes.clear();
            return Growth::Replaced;
        }
        if metadata.len() > self.consumed { Growth::Appended } else { Growth::Same }
    }
}

fn read_at(file: &File, offset: u64, buffer: &mut [u8]) -> usize {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    filled
}

/// Opens a regular file that belongs to the process, this user or root: any user may put files into `/tmp`.
fn open(path: &Path, pid: u32) -> Option<File> {
    let file = open_regular(path).ok()?;
    let metadata = file.metadata().ok()?;
    is_trusted(&metadata, pid).then_some(file)
}

fn is_trusted(metadata: &Metadata, pid: u32) -> bool {
    let owner = metadata.uid();
    let is_of_process = || std::fs::metadata(format!("/proc/{pid}")).is_ok_and(|process| process.uid() == owner);
    owner == 0 || owner == rustix::process::geteuid().as_raw() || is_of_process()
}

fn is_same(one: &File, other: &File) -> bool {
    match (one.metadata(), other.metadata()) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_folder::TestFolder;

    #[test]
    fn appended_different_and_rewritten_files_are_distinguished() {
        let folder = TestFolder::new();
        let path = folder.path().join("growing");
        let mut file = PerfMapFile::new(vec![folder.path().join("nothing"), path.clone()], std::process::id());
        assert_eq!((file.check(), file.is_open()), (Growth::Same, false));
        folder.file("growing", "one\n");
        assert_eq!((file.check(), file.is_open()), (Growth::Replaced, true));
        file.consume_to(4);
        assert_eq!(file.check(), Growth::Same);
        std::fs::write(&path, "one\ntwo\n").unwrap();
        assert_eq!((file.check(), file.consumed()), (Growth::Appended, 4));
        file.consume_to(8);
        std::fs::write(&path, "new\nand longer\n").unwrap();
        assert_eq!((file.check(), file.consumed()), (Growth::Replaced, 0));
        file.consume_to(15);
        std::fs::write(&path, "short\n").unwrap();
        assert_eq!(file.check(), Growth::Replaced);
        file.consume_to(6);
        std::fs::rename(folder.file("other", "other\nfile\n"), &path).unwrap();
        assert_eq!((file.check(), file.length()), (Growth::Replaced, 11));
        file.consume_to(11);
        std::fs::remove_file(&path).unwrap();
        assert_eq!((file.check(), file.length()), (Growth::Same, 11));
    }

    #[test]
    fn only_regular_files_are_opened() {
        let folder = TestFolder::new();
        let mut file = PerfMapFile::new(vec![folder.path().into(), "/dev/zero".into()], std::process::id());
        assert_eq!((file.check(), file.is_open()), (Growth::Same, false));
        assert_eq!(file.read_at(0, &mut [0; 8]), 0);
    }
}

//! A file that stays ours, whatever the program does with numbers of files.
//!
//! Daemons close all files that they inherited, and those are taken to be all that are open. What the program opens next would
//! then have our number, and get what is recorded. So ours has a number that is not given to others soon, and is looked
//! at before each use.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// New files get the least number that is free, so from here on they hardly meet ours.
const FIRST_NUMBER: libc::c_int = 1000;

#[derive(Debug)]
pub(super) struct OwnFile {
    /// Closed only as long as it is ours.
    file: ManuallyDrop<File>,
    device_and_node: (u64, u64),
}

impl OwnFile {
    pub(super) fn new(file: File) -> io::Result<Self> {
        let file = ManuallyDrop::new(with_high_number(file));
        let device_and_node = identity(&file)?;
        Ok(Self { file, device_and_node })
    }

    /// The file, once it is known to be ours still. If the program has closed it, it is opened again by its path.
    fn ours(&mut self, path: &Path) -> io::Result<&mut File> {
        if !self.is_ours() {
            let again = with_high_number(OpenOptions::new().append(true).open(path)?);
            if identity(&again)? != self.device_and_node {
                return Err(io::Error::other(
                    "the program has closed the recording's file, and another one is in its place",
                ));
            }
            // The number of the old one is nobody's, or the program's.
            self.file = ManuallyDrop::new(again);
        }
        Ok(&mut self.file)
    }

    fn is_ours(&self) -> bool {
        identity(&self.file).is_ok_and(|known| known == self.device_and_node)
    }

    pub(super) fn write_all(&mut self, bytes: &[u8], path: &Path) -> io::Result<()> {
        self.ours(path)?.write_all(bytes)
    }

    pub(super) fn cut(&mut self, length: u64, path: &Path) -> io::Result<()> {
        self.ours(path)?.set_len(length)
    }

    /// Returns the file, if it is still ours.
    pub(super) fn get(&self) -> io::Result<&File> {
        if self.is_ours() {
            Ok(&self.file)
        } else {
            Err(io::Error::other("the program has closed the recording's file"))
        }
    }

    /// Its number, which may be another's.
    #[cfg(test)]
    pub(super) fn number(&self) -> i32 {
        self.file.as_raw_fd()
    }
}

impl Drop for OwnFile {
    fn drop(&mut self) {
        if self.is_ours() {
            // SAFETY: dropped once, here.
            unsafe { ManuallyDrop::drop(&mut self.file) };
        }
    }
}

fn identity(file: &File) -> io::Result<(u64, u64)> {
    file.metadata().map(|known| (known.dev(), known.ino()))
}

/// The same file with a number out of the way, if there are so many.
fn with_high_number(file: File) -> File {
    // SAFETY: an open file.
    let number = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, FIRST_NUMBER) };
    if number < 0 {
        return file;
    }
    drop(file);
    // SAFETY: just made, and nobody else's.
    unsafe { File::from_raw_fd(number) }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::fd::IntoRawFd;
    use std::path::PathBuf;

    use super::*;

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            Self(std::env::temp_dir().join(format!("stackweave-own-{name}-{}", std::process::id())))
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0);
        }
    }

    #[test]
    fn a_file_that_the_program_closed_is_opened_again() {
        let (path, other) = (Scratch::new("again"), Scratch::new("other"));
        let mut own = OwnFile::new(File::create(&path.0).unwrap()).unwrap();
        own.write_all(b"one", &path.0).unwrap();
        // SAFETY: the file is not used by this number again; another one gets it, as the program's next may.
        unsafe {
            let number = own.number();
            let others = File::create(&other.0).unwrap().into_raw_fd();
            assert_eq!(libc::dup2(others, number), number);
            libc::close(others);
            own.write_all(b" two", &path.0).unwrap();
            assert_ne!(own.number(), number);
            libc::close(number);
        }
        assert_eq!((fs::read(&path.0).unwrap(), fs::read(&other.0).unwrap()), (b"one two".to_vec(), Vec::new()));
    }

    #[test]
    fn what_is_gone_is_not_written_elsewhere() {
        let (path, other) = (Scratch::new("gone"), Scratch::new("new"));
        let mut own = OwnFile::new(File::create(&path.0).unwrap()).unwrap();
        // SAFETY: the number is not used again before the file is opened anew.
        unsafe { libc::close(own.number()) };
        fs::write(&other.0, b"mine").unwrap();
        fs::rename(&other.0, &path.0).unwrap();
        assert!(own.write_all(b"ours", &path.0).is_err());
        assert_eq!(fs::read(&path.0).unwrap(), b"mine");
    }
}

//! The file of a recording, protected against a program that closes or reuses its descriptor.
//!
//! Daemons close all open descriptors, because they assume that these are inherited. The next file that the program opens would get
//! the descriptor of the recording, and then the recorded events. So the file has a high descriptor, which is not reused soon, and
//! its identity is checked before each use.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// New files get the lowest free descriptor, so they rarely reach this one.
const FIRST_DESCRIPTOR: libc::c_int = 1000;

#[derive(Debug)]
pub(super) struct OwnFile {
    /// Closed only while the descriptor still refers to it.
    file: ManuallyDrop<File>,
    device_and_node: (u64, u64),
}

impl OwnFile {
    pub(super) fn new(file: File) -> io::Result<Self> {
        let file = ManuallyDrop::new(with_high_descriptor(file));
        let device_and_node = identity(&file)?;
        Ok(Self { file, device_and_node })
    }

    /// Returns the file after checking its identity. If the program has closed it, it is reopened by its path.
    fn checked(&mut self, path: &Path) -> io::Result<&mut File> {
        if !self.is_unchanged() {
            let again = with_high_descriptor(OpenOptions::new().append(true).open(path)?);
            if identity(&again)? != self.device_and_node {
                return Err(io::Error::other(
                    "the program has closed the recording's file, and another file has replaced it",
                ));
            }
            // The old descriptor is closed, or the program's.
            self.file = ManuallyDrop::new(again);
        }
        Ok(&mut self.file)
    }

    fn is_unchanged(&self) -> bool {
        identity(&self.file).is_ok_and(|known| known == self.device_and_node)
    }

    pub(super) fn write_all(&mut self, bytes: &[u8], path: &Path) -> io::Result<()> {
        self.checked(path)?.write_all(bytes)
    }

    pub(super) fn truncate(&mut self, length: u64, path: &Path) -> io::Result<()> {
        self.checked(path)?.set_len(length)
    }

    /// Returns the file, if the descriptor still refers to it.
    pub(super) fn get(&self) -> io::Result<&File> {
        if self.is_unchanged() {
            Ok(&self.file)
        } else {
            Err(io::Error::other("the program has closed the recording's file"))
        }
    }

    /// Returns the descriptor, which may refer to another file.
    #[cfg(test)]
    pub(super) fn descriptor(&self) -> i32 {
        self.file.as_raw_fd()
    }
}

impl Drop for OwnFile {
    fn drop(&mut self) {
        if self.is_unchanged() {
            // SAFETY: dropped once, here.
            unsafe { ManuallyDrop::drop(&mut self.file) };
        }
    }
}

fn identity(file: &File) -> io::Result<(u64, u64)> {
    file.metadata().map(|known| (known.dev(), known.ino()))
}

/// Moves the file to a high descriptor, if the limit allows that.
fn with_high_descriptor(file: File) -> File {
    // SAFETY: an open file.
    let descriptor = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR) };
    if descriptor < 0 {
        return file;
    }
    drop(file);
    // SAFETY: a new descriptor, which no other code has.
    unsafe { File::from_raw_fd(descriptor) }
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
    fn a_file_that_the_program_closed_is_reopened() {
        let (path, other) = (Scratch::new("again"), Scratch::new("other"));
        let mut own = OwnFile::new(File::create(&path.0).unwrap()).unwrap();
        own.write_all(b"one", &path.0).unwrap();
        // SAFETY: this descriptor is not used again for the file; another file gets it, as the program's next one may.
        unsafe {
            let descriptor = own.descriptor();
            let others = File::create(&other.0).unwrap().into_raw_fd();
            assert_eq!(libc::dup2(others, descriptor), descriptor);
            libc::close(others);
            own.write_all(b" two", &path.0).unwrap();
            assert_ne!(own.descriptor(), descriptor);
            libc::close(descriptor);
        }
        assert_eq!((fs::read(&path.0).unwrap(), fs::read(&other.0).unwrap()), (b"one two".to_vec(), Vec::new()));
    }

    #[test]
    fn a_file_that_was_replaced_is_not_written() {
        let (path, other) = (Scratch::new("gone"), Scratch::new("new"));
        let mut own = OwnFile::new(File::create(&path.0).unwrap()).unwrap();
        // SAFETY: the descriptor is not used again before the file is reopened.
        unsafe { libc::close(own.descriptor()) };
        fs::write(&other.0, b"mine").unwrap();
        fs::rename(&other.0, &path.0).unwrap();
        assert!(own.write_all(b"ours", &path.0).is_err());
        assert_eq!(fs::read(&path.0).unwrap(), b"mine");
    }
}

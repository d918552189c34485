//! The file of a recording.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::FromRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::own_file::OwnFile;

const MODE: libc::mode_t = 0o666;

/// Whole blocks go to its end, all of what is given at once or nothing.
#[derive(Debug)]
pub(super) struct FileSink {
    file: OwnFile,
    path: PathBuf,
    length: u64,
    /// A pipe or a device can't be cut.
    can_cut: bool,
}

impl FileSink {
    /// Makes the file, with `start` in it. Nobody ever sees it without, where the file system can do that. A file that is
    /// there already is an error, unless it may be replaced.
    pub(super) fn create(path: &Path, overwrite: bool, start: &[u8]) -> io::Result<Self> {
        if overwrite && let Ok(known) = fs::metadata(path) {
            let kind = known.file_type();
            if kind.is_fifo() || kind.is_char_device() || kind.is_socket() {
                let file = OpenOptions::new().append(true).open(path)?;
                return Self::of(file, path, false);
            }
            fs::remove_file(path)?;
        }
        match Self::create_unnamed(path, start) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Self::create_named(path, start),
            made => made,
        }
    }

    fn of(file: File, path: &Path, can_cut: bool) -> io::Result<Self> {
        Ok(Self { file: OwnFile::new(file)?, path: path.to_owned(), length: 0, can_cut })
    }

    /// Where the file system knows no files without a name, or there is no `/proc`.
    fn create_named(path: &Path, start: &[u8]) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create_new(true).mode(MODE).open(path)?;
        let mut sink = Self::of(file, path, true)?;
        sink.append(&[start]).inspect_err(|_| drop(fs::remove_file(path)))?;
        Ok(sink)
    }

    /// A file that gets its name when `start` is in it.
    fn create_unnamed(path: &Path, start: &[u8]) -> io::Result<Self> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let flags = libc::O_TMPFILE | libc::O_WRONLY | libc::O_APPEND | libc::O_CLOEXEC;
        // SAFETY: a path that ends in zero, and the mode that the flags ask for.
        let descriptor = unsafe { libc::open(c_path(folder)?.as_ptr(), flags, MODE) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just opened, and nobody else's.
        let file = unsafe { File::from_raw_fd(descriptor) };
        let mut sink = Self::of(file, path, true)?;
        sink.append(&[start])?;
        let unnamed = c_path(&PathBuf::from(format!("/proc/self/fd/{}", sink.file.number())))?;
        let (here, named) = (libc::AT_FDCWD, c_path(path)?);
        // SAFETY: both paths end in zero.
        let done = unsafe { libc::linkat(here, unnamed.as_ptr(), here, named.as_ptr(), libc::AT_SYMLINK_FOLLOW) };
        if done == 0 { Ok(sink) } else { Err(io::Error::last_os_error()) }
    }

    /// Appends all parts, or, after an error, none of them: the file is cut back to what it was.
    pub(super) fn append(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        for part in parts {
            if let Err(error) = self.file.write_all(part, &self.path) {
                if self.can_cut {
                    // If this fails too, a reader finds the next block behind the torn one.
                    let _ = self.file.cut(self.length, &self.path);
                }
                return Err(error);
            }
        }
        self.length += parts.iter().map(|part| part.len() as u64).sum::<u64>();
        Ok(())
    }

    pub(super) const fn length(&self) -> u64 {
        self.length
    }
}

fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("stackweave-sink-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_file_is_made_once_and_grows() {
        let folder = Folder::new("made");
        let path = folder.0.join("out.swv");
        let mut sink = FileSink::create(&path, false, b"start").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"start");
        sink.append(&[b" one", b" two"]).unwrap();
        assert_eq!((fs::read(&path).unwrap(), sink.length()), (b"start one two".to_vec(), 13));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o711, 0o600, "as the umask allows");
        let again = FileSink::create(&path, false, b"start").unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        FileSink::create(&path, true, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    #[test]
    fn without_unnamed_files_it_is_the_same() {
        let folder = Folder::new("named");
        let path = folder.0.join("out.swv");
        let mut sink = FileSink::create_named(&path, b"start").unwrap();
        sink.append(&[b"!"]).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"start!");
        assert_eq!(FileSink::create_named(&path, b"").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn a_missing_folder_is_said_to_be_missing() {
        let folder = Folder::new("missing");
        let error = FileSink::create(&folder.0.join("no/out.swv"), false, b"").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0);
    }

    #[test]
    fn a_device_that_is_full_says_so() {
        let mut sink = FileSink::create(Path::new("/dev/full"), true, b"start").unwrap();
        assert_eq!(sink.append(&[b"more"]).unwrap_err().raw_os_error(), Some(libc::ENOSPC));
        assert_eq!(sink.length(), 0);
    }
}

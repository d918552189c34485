//! Opens input files whose paths may be untrusted.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a file for reading if it is a regular file.
///
/// Paths from a recording, a module list, a debug link or another process may lead to any file. Opening a pipe
/// waits for its writer, and opening a device may start hardware. So the type of the file is checked before it is
/// opened and, because another file may replace it in between, again on the open file. In that window, a pipe does
/// not block and a terminal does not become the controlling terminal.
pub fn open_regular(path: &Path) -> io::Result<File> {
    check(&fs::metadata(path)?)?;
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    check(&file.metadata()?)?;
    Ok(file)
}

/// Opens a regular file. Fails if the path ends in a symbolic link.
pub fn open_regular_unlinked(path: &Path) -> io::Result<File> {
    check(&fs::symlink_metadata(path)?)?;
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_NOFOLLOW;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    check(&file.metadata()?)?;
    Ok(file)
}

fn check(metadata: &Metadata) -> io::Result<()> {
    if metadata.is_file() {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::io::Read as _;
    use std::os::unix::ffi::OsStrExt as _;

    use stackweave_testkit::folder::Folder;

    use super::*;

    #[test]
    fn pipes_and_devices_are_refused_without_waiting() {
        let folder = Folder::new();
        let pipe = folder.file("pipe");
        let name = CString::new(pipe.as_os_str().as_bytes()).unwrap();
        // SAFETY: the name ends with a zero byte.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        std::os::unix::fs::symlink(&pipe, folder.file("link")).unwrap();
        let link = folder.file("link");
        for path in [&*pipe, &*link, Path::new("/dev/null"), Path::new("/dev/zero"), folder.path()] {
            assert_eq!(open_regular(path).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{}", path.display());
            assert!(open_regular_unlinked(path).is_err(), "{}", path.display());
        }
    }

    #[test]
    fn regular_files_are_opened_and_links_only_if_they_are_allowed() {
        let folder = Folder::new();
        let file = folder.write("file", b"text");
        let link = folder.file("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let mut text = String::new();
        open_regular(&link).unwrap().read_to_string(&mut text).unwrap();
        open_regular_unlinked(&file).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "texttext");
        assert!(open_regular_unlinked(&link).is_err());
    }
}

//! Finds out what is at an output's path.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::Existing;
use super::temporary::folder_of;

/// The number of links that are followed, as in the kernel.
const MAX_LINKS: u32 = 40;
/// The time to wait for the reader of a FIFO, which may be started at the same time as the writer.
const WAIT_FOR_READER: Duration = Duration::from_secs(5);
const RETRY_INTERVAL: Duration = Duration::from_millis(5);

/// The target of an output.
#[derive(Debug)]
pub(super) enum OutputTarget {
    /// A target that accepts bytes and cannot be replaced.
    Stream(File),
    /// A regular file, or none yet. If there is a file to replace, the path contains no link.
    Name { path: PathBuf, replaced: Option<Metadata> },
}

/// Finds the target of an output, without changing anything.
pub(super) fn find(path: &Path, existing: Existing) -> io::Result<OutputTarget> {
    if let Some(stream) = standard_stream(path) {
        return stream.map(|stream| OutputTarget::Stream(stream.into()));
    }
    match fs::metadata(path) {
        Ok(found) if is_stream_type(&found) => open_stream(path, &found).map(OutputTarget::Stream),
        Ok(found) => {
            check_replaceable(&found)?;
            match existing {
                Existing::Keep => Err(io::ErrorKind::AlreadyExists.into()),
                Existing::Replace => Ok(OutputTarget::Name { path: fs::canonicalize(path)?, replaced: Some(found) }),
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let path = match (fs::symlink_metadata(path), existing) {
                // A link to a missing file.
                (Ok(_), Existing::Keep) => return Err(io::ErrorKind::AlreadyExists.into()),
                (Ok(_), Existing::Replace) => resolve_links(path)?,
                (Err(_), _) => path.to_owned(),
            };
            Ok(OutputTarget::Name { path, replaced: None })
        }
        Err(error) => Err(error),
    }
}

/// Fails if an output must not replace the given file.
pub(super) fn check_replaceable(found: &Metadata) -> io::Result<()> {
    let kind = found.file_type();
    let refuse = |kind, sentence| Err(io::Error::new(kind, sentence));
    if kind.is_dir() {
        refuse(io::ErrorKind::IsADirectory, "it is a folder: name a file")
    } else if kind.is_file() {
        Ok(())
    } else if kind.is_block_device() {
        refuse(io::ErrorKind::InvalidInput, "it is a disk, and disks are never written to: name a file")
    } else {
        refuse(io::ErrorKind::InvalidInput, "it is not a regular file: name another one")
    }
}

/// Returns whether output to the path is written directly: to a device, a FIFO, a socket, or a standard stream.
pub fn is_stream(path: &Path) -> bool {
    standard_stream(path).is_some() || fs::metadata(path).is_ok_and(|found| is_stream_type(&found))
}

fn is_stream_type(found: &Metadata) -> bool {
    let kind = found.file_type();
    kind.is_fifo() || kind.is_char_device() || kind.is_socket()
}

/// Duplicates the descriptor: opening a file by this name would write from its beginning.
fn standard_stream(path: &Path) -> Option<io::Result<OwnedFd>> {
    let number = match path.to_str()? {
        "/dev/stdout" => "1",
        "/dev/stderr" => "2",
        other => other.strip_prefix("/dev/fd/").or_else(|| other.strip_prefix("/proc/self/fd/"))?,
    };
    match number {
        "1" => Some(io::stdout().as_fd().try_clone_to_owned()),
        "2" => Some(io::stderr().as_fd().try_clone_to_owned()),
        _ => None,
    }
}

fn open_stream(path: &Path, found: &Metadata) -> io::Result<File> {
    if found.file_type().is_socket() {
        return UnixStream::connect(path).map(|socket| OwnedFd::from(socket).into());
    }
    if found.file_type().is_fifo() {
        return open_fifo(path);
    }
    let flags = OFlags::NOCTTY.bits().cast_signed();
    OpenOptions::new().append(true).custom_flags(flags).open(path)
}

/// Opens a FIFO that has a reader, or gets one soon. Without a reader, the system would let the program wait
/// forever, and a signal that Python handles would not end that.
fn open_fifo(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOCTTY | OFlags::NONBLOCK).bits().cast_signed();
    let began = Instant::now();
    loop {
        match OpenOptions::new().append(true).custom_flags(flags).open(path) {
            Ok(fifo) => {
                rustix::fs::fcntl_setfl(&fifo, OFlags::APPEND)?;
                return Ok(fifo);
            }
            Err(error) if error.raw_os_error() != Some(Errno::NXIO.raw_os_error()) => return Err(error),
            Err(_) if began.elapsed() >= WAIT_FOR_READER => {
                let sentence = "it is a FIFO without a reader: start its reader first";
                return Err(io::Error::new(io::ErrorKind::NotConnected, sentence));
            }
            Err(_) => thread::sleep(RETRY_INTERVAL),
        }
    }
}

/// Returns the path of the file that writing to a link would create.
fn resolve_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&path) {
            Ok(next) => path = folder_of(&path).join(next),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many levels of symbolic links"))
}

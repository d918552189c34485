//! What is at an output's path.

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

/// As many links are followed as the kernel does.
const MOST_LINKS: u32 = 40;
/// The reader of a FIFO may be started at the same time as the writer.
const WAIT_FOR_READER: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Where an output goes.
#[derive(Debug)]
pub(super) enum Place {
    /// Something that takes bytes and can't be replaced.
    Stream(File),
    /// A regular file, or none yet. The path leads through no link, where there is a file to be replaced.
    Name { path: PathBuf, replaced: Option<Metadata> },
}

/// Finds out where an output goes, without changing anything.
pub(super) fn find(path: &Path, existing: Existing) -> io::Result<Place> {
    if let Some(stream) = standard_stream(path) {
        return stream.map(|stream| Place::Stream(stream.into()));
    }
    match fs::metadata(path) {
        Ok(found) if is_stream_type(&found) => open_stream(path, &found).map(Place::Stream),
        Ok(found) => {
            check_replaceable(&found)?;
            match existing {
                Existing::Keep => Err(io::ErrorKind::AlreadyExists.into()),
                Existing::Replace => Ok(Place::Name { path: fs::canonicalize(path)?, replaced: Some(found) }),
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let path = match (fs::symlink_metadata(path), existing) {
                // A link that leads nowhere.
                (Ok(_), Existing::Keep) => return Err(io::ErrorKind::AlreadyExists.into()),
                (Ok(_), Existing::Replace) => end_of_links(path)?,
                (Err(_), _) => path.to_owned(),
            };
            Ok(Place::Name { path, replaced: None })
        }
        Err(error) => Err(error),
    }
}

/// Fails if an output must not take the place of what was found.
pub(super) fn check_replaceable(found: &Metadata) -> io::Result<()> {
    let kind = found.file_type();
    let refuse = |kind, sentence| Err(io::Error::new(kind, sentence));
    if kind.is_dir() {
        refuse(io::ErrorKind::IsADirectory, "it is a folder: name a file")
    } else if kind.is_file() {
        Ok(())
    } else if kind.is_block_device() {
        refuse(io::ErrorKind::InvalidInput, "it is a disk, which is never written to: name a file")
    } else {
        refuse(io::ErrorKind::InvalidInput, "it is no regular file: name another one")
    }
}

/// Returns whether something is written through to what is at the path: a device, a FIFO, a socket, or a standard stream.
pub fn is_stream(path: &Path) -> bool {
    standard_stream(path).is_some() || fs::metadata(path).is_ok_and(|found| is_stream_type(&found))
}

fn is_stream_type(found: &Metadata) -> bool {
    let kind = found.file_type();
    kind.is_fifo() || kind.is_char_device() || kind.is_socket()
}

/// Shares the descriptor: opened anew by its name, a file would be written from its beginning.
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

/// Opens a FIFO that somebody reads, or begins to read soon. Without a reader the system would let the program wait for ever, and
/// a signal that Python handles would not end that.
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
                let sentence = "it is a FIFO that nobody reads: start its reader first";
                return Err(io::Error::new(io::ErrorKind::NotConnected, sentence));
            }
            Err(_) => thread::sleep(LOOK_EVERY),
        }
    }
}

/// Returns the path of the file that a link would create.
fn end_of_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&path) {
            Ok(next) => path = folder_of(&path).join(next),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many links lead to one another"))
}

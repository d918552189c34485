//! Files without a name, or with a random one.

use std::collections::hash_map::RandomState;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{Mode, OFlags};

use super::created::Created;
use super::permissions::OWNER_ONLY;

/// The number of random names that are tried.
const ATTEMPTS: u32 = 100;

/// Returns the parent folder of a path.
pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Creates a file without a name, which can receive one later. If the process dies, nothing remains of it.
pub(super) fn unnamed(folder: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::APPEND | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(folder, flags, Mode::from_raw_mode(OWNER_ONLY))?);
    // Without /proc it could never receive a name.
    let (found, own) = (fs::metadata(link_of(&file))?, file.metadata()?);
    if (found.dev(), found.ino()) == (own.dev(), own.ino()) { Ok(file) } else { Err(io::ErrorKind::Unsupported.into()) }
}

/// Returns the path for linking a file without a name.
pub(super) fn link_of(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Creates a file with a unique random name.
pub(super) fn named(folder: &Path) -> io::Result<(File, Created)> {
    let (file, path) = with_random_name(folder, |path| {
        OpenOptions::new().read(true).append(true).create_new(true).mode(OWNER_ONLY).open(path)
    })?;
    let created = Created::file(&path, &file)?;
    Ok((file, created))
}

/// Calls `create` with random names in a folder, until the name is unused.
pub(super) fn with_random_name<T>(
    folder: &Path,
    mut create: impl FnMut(&Path) -> io::Result<T>,
) -> io::Result<(T, PathBuf)> {
    let mut attempt = 1;
    loop {
        let path = folder.join(random_name());
        match create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < ATTEMPTS => attempt += 1,
            created => return created.map(|created| (created, path)),
        }
    }
}

/// Returns a random name. It does not include the output's name, which may already have the maximum length.
fn random_name() -> String {
    let mut hasher = RandomState::new().build_hasher();
    // A forked child has the hash keys of its parent.
    hasher.write_u32(std::process::id());
    hasher.write_u128(SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos());
    format!(".stackweave-{:016x}.part", hasher.finish())
}

/// Creates a file for data that does not fit into memory. It has no name, and is deleted when it is closed.
pub fn unnamed_scratch() -> io::Result<File> {
    let folder = std::env::temp_dir();
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::EXCL | OFlags::CLOEXEC;
    if let Ok(file) = rustix::fs::open(&folder, flags, Mode::from_raw_mode(OWNER_ONLY)) {
        return Ok(file.into());
    }
    let (file, path) = with_random_name(&folder, |path| {
        OpenOptions::new().read(true).write(true).create_new(true).mode(OWNER_ONLY).open(path)
    })?;
    Created::file(&path, &file)?.discard();
    Ok(file)
}

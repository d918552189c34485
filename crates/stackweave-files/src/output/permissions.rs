//! The permissions of an output: for its owner alone, unless the user selects others.

use std::fs::{File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::OnceLock;

use rustix::fs::{Gid, Uid, fchown, getxattr};

/// The environment variable with the permissions of new files, as an octal number.
pub(super) const VARIABLE: &str = "STACKWEAVE_FILE_MODE";
/// The default, because recordings contain command lines, arguments, log records and paths.
pub(super) const OWNER_ONLY: u32 = 0o600;
/// The permissions of a file's group.
const GROUP: u32 = 0o070;

/// Returns the permissions of new files, independent of the umask.
pub(super) fn of_new_files() -> io::Result<u32> {
    // Read once: a forked child must not wait for the lock of the environment.
    static MODE: OnceLock<Option<u32>> = OnceLock::new();
    let mode = MODE.get_or_init(|| match std::env::var(VARIABLE) {
        Ok(text) => parse(&text),
        Err(std::env::VarError::NotPresent) => Some(OWNER_ONLY),
        Err(std::env::VarError::NotUnicode(_)) => None,
    });
    mode.ok_or_else(|| {
        let sentence = format!("{VARIABLE} must be an octal number up to 666, such as 640");
        io::Error::new(io::ErrorKind::InvalidInput, sentence)
    })
}

pub(super) fn parse(text: &str) -> Option<u32> {
    if text.is_empty() {
        return Some(OWNER_ONLY);
    }
    // The owner can always read and write.
    u32::from_str_radix(text, 8).ok().filter(|mode| *mode & !0o666 == 0).map(|mode| mode | OWNER_ONLY)
}

/// Returns the permissions of new folders: a user who may read the files may also enter the folder.
pub(super) fn of_new_folders() -> io::Result<u32> {
    let mode = of_new_files()?;
    Ok(mode | (mode & 0o444) >> 2)
}

/// Sets the permissions of a new file: those of the file that it replaces, or those of new files. They are never
/// extended.
pub(super) fn apply(file: &File, replaced: Option<(&Path, &Metadata)>) -> io::Result<()> {
    let mode = match replaced {
        Some((path, replaced)) => keep_owner(file, path, replaced)?,
        None => of_new_files()?,
    };
    file.set_permissions(Permissions::from_mode(mode))
}

/// Gives the file the owner and group of the replaced file, as far as the system allows. Returns the permissions
/// that it may have.
fn keep_owner(file: &File, path: &Path, replaced: &Metadata) -> io::Result<u32> {
    let own = file.metadata()?;
    let mode = replaced.mode() & 0o777;
    let group = Gid::from_raw(replaced.gid());
    let has_group = own.gid() == replaced.gid() || fchown(file, None, Some(group)).is_ok();
    if own.uid() != replaced.uid() {
        // Only root can do that. Other users become the owners of the file.
        let _ = fchown(file, Some(Uid::from_raw(replaced.uid())), None);
    }
    // With an access control list, these bits are the maximum for all its entries.
    let has_list = getxattr(path, "system.posix_acl_access", &mut [0_u8; 0][..]).is_ok_and(|length| length > 0);
    Ok(if has_group && !has_list { mode } else { mode & !GROUP })
}

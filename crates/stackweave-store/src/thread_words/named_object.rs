//! The object of the words as a named file, for processes without `/proc`: the loader opens files by their paths,
//! and an unnamed file has its path in `/proc`.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::{env, process};

use super::elf_object;

/// Number of attempts in each folder to find an unused name.
const NAMES: u32 = 100;

/// A file that is removed when this value is dropped.
#[derive(Debug)]
pub(super) struct NamedObject(PathBuf);

impl NamedObject {
    /// Writes the object to a folder for temporary files where no other user can replace it. No other copy of this
    /// library has this `address`: the loader regards equal paths as the same object.
    pub(super) fn create(address: usize) -> io::Result<Self> {
        let folders = [env::temp_dir(), "/dev/shm".into(), "/var/tmp".into(), "/tmp".into()];
        let mut outcome = Err(io::ErrorKind::NotFound.into());
        for folder in folders.iter().filter(|folder| is_safe(folder)) {
            outcome = Self::create_in(folder, address);
            if outcome.is_ok() {
                break;
            }
        }
        outcome
    }

    fn create_in(folder: &Path, address: usize) -> io::Result<Self> {
        for number in 0..NAMES {
            let name = format!("{}-{}-{address:x}-{number}", elf_object::NAME.to_string_lossy(), process::id());
            let path = folder.join(name);
            match File::options().write(true).create_new(true).mode(0o600).open(&path) {
                Ok(mut file) => {
                    let object = Self(path);
                    file.write_all(&elf_object::bytes())?;
                    return Ok(object);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for NamedObject {
    fn drop(&mut self) {
        // A remaining file is harmless, and there is no caller to report the error to.
        let _ = fs::remove_file(&self.0);
    }
}

/// Returns whether only this user and root can replace this user's files in a folder.
fn is_safe(folder: &Path) -> bool {
    const STICKY: u32 = 0o1000;
    const WRITTEN_BY_OTHERS: u32 = 0o022;
    // SAFETY: `geteuid` has no preconditions.
    let user = unsafe { libc::geteuid() };
    fs::metadata(folder).is_ok_and(|found| {
        found.is_dir()
            && (found.uid() == 0 || found.uid() == user)
            && (found.mode() & WRITTEN_BY_OTHERS == 0 || found.mode() & STICKY != 0)
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn each_object_has_its_own_file_which_is_removed() {
        let (first, second) = (NamedObject::create(5).unwrap(), NamedObject::create(5).unwrap());
        assert_ne!(first.path(), second.path());
        assert_eq!(fs::read(first.path()).unwrap(), elf_object::bytes());
        assert_eq!(fs::metadata(first.path()).unwrap().mode() & 0o777, 0o600);
        let path = first.path().to_owned();
        drop(first);
        assert!(!path.exists() && second.path().exists());
    }

    #[test]
    fn a_folder_where_other_users_can_replace_files_is_not_used() {
        let folder = stackweave_testkit::folder::Folder::new();
        for (mode, expected) in [(0o755, true), (0o777, false), (0o775, false), (0o1777, true)] {
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(is_safe(folder.path()), expected, "{mode:o}");
        }
        assert!(!is_safe(&folder.path().join("missing")));
    }
}

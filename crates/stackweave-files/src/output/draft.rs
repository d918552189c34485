//! A file on its way to its name.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Seek};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, RenameFlags, linkat, renameat_with};
use rustix::io::Errno;

use super::Existing;
use super::created::Created;
use super::place::{self, Place};
use super::rights;
use super::temporary::{folder_of, link_of, named, unnamed, with_random_name};

/// The name that a file shall get. It is kept apart from the file, so that whoever writes can keep that as it needs to.
///
/// Dropped, nothing is left of a file that was not published.
#[derive(Debug)]
pub struct Draft {
    path: PathBuf,
    existing: Existing,
    /// The random name, where the file could not be without one.
    temporary: Option<Created>,
}

/// Where an output goes.
#[derive(Debug)]
pub enum Opened {
    /// A device, a FIFO or a socket: what is written is there at once.
    Stream(File),
    /// A new file, and the name that it gets when it is published.
    Draft(File, Draft),
}

/// A file that has got its name.
#[derive(Debug)]
pub struct Published {
    /// The name, and the proof that it is this file's.
    pub created: Created,
    /// The file to write to from now on, if it is not the one that was given: the system has refused to name that, and it was copied.
    pub copy: Option<File>,
}

impl Draft {
    /// Opens an output. The path is neither created nor changed, unless it is a device, a FIFO or a socket.
    pub fn open(path: &Path, existing: Existing) -> io::Result<Opened> {
        rights::of_new_files()?;
        let path = match place::find(path, existing)? {
            Place::Stream(stream) => return Ok(Opened::Stream(stream)),
            Place::Name { path, .. } => path,
        };
        let folder = folder_of(&path);
        let (file, temporary) = match unnamed(folder) {
            Ok(file) => (file, None),
            // The file system has no unnamed files, or /proc is missing. The other way finds out whatever else is wrong.
            Err(_) => named(folder).map(|(file, temporary)| (file, Some(temporary)))?,
        };
        Ok(Opened::Draft(file, Self { path, existing, temporary }))
    }

    /// Returns the random name that the file has until it is published, where it has one.
    pub(super) const fn temporary(&self) -> Option<&Created> {
        self.temporary.as_ref()
    }

    /// Gives the file its name. After an error it is still a draft; the old file, if there is one, is as it was.
    pub fn publish(&mut self, file: &File) -> io::Result<Published> {
        let path = self.path.clone();
        self.publish_as(file, &path, self.existing)
    }

    /// Gives the file another name in the same folder.
    pub fn publish_as(&mut self, file: &File, path: &Path, existing: Existing) -> io::Result<Published> {
        let (path, replaced) = match place::find(path, existing)? {
            Place::Stream(_) => return Err(io::Error::other("it is no regular file any more")),
            Place::Name { path, replaced } => (path, replaced),
        };
        let path = path.as_path();
        rights::apply(file, replaced.as_ref().map(|replaced| (path, replaced)))?;
        let done = match existing {
            Existing::Keep => self.name_new(file, path),
            Existing::Replace => self.name_over(file, path),
        };
        match done {
            Ok(()) => Ok(Published { created: Created::file(path, file)?, copy: None }),
            // The system can refuse links to unnamed files, above all after a change of rights.
            Err(error) if self.temporary.is_none() && !is_final(&error) => {
                let copy = self.copy(file, replaced.as_ref(), path)?;
                match existing {
                    Existing::Keep => self.name_new(&copy, path)?,
                    Existing::Replace => self.name_over(&copy, path)?,
                }
                Ok(Published { created: Created::file(path, &copy)?, copy: Some(copy) })
            }
            Err(error) => Err(error),
        }
    }

    fn copy(&mut self, file: &File, replaced: Option<&Metadata>, path: &Path) -> io::Result<File> {
        let (mut copy, temporary) = named(folder_of(path))?;
        self.temporary = Some(temporary);
        let mut from = file.try_clone()?;
        from.rewind()?;
        io::copy(&mut from, &mut copy)?;
        rights::apply(&copy, replaced.map(|replaced| (path, replaced)))?;
        copy.sync_all()?;
        Ok(copy)
    }

    /// Gives it a name that nobody has.
    fn name_new(&mut self, file: &File, path: &Path) -> io::Result<()> {
        let Some(temporary) = &self.temporary else { return link(file, path) };
        rename_new(temporary.path(), path)?;
        self.temporary = None;
        Ok(())
    }

    /// Gives it a name that a regular file may have.
    fn name_over(&mut self, file: &File, path: &Path) -> io::Result<()> {
        if self.temporary.is_none() {
            match link(file, path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    let ((), temporary) = with_random_name(folder_of(path), |temporary| link(file, temporary))?;
                    self.temporary = Some(Created::file(&temporary, file)?);
                }
                linked => return linked,
            }
        }
        if let Ok(found) = fs::symlink_metadata(path) {
            place::check_replaceable(&found)?;
        }
        if let Some(temporary) = &self.temporary {
            fs::rename(temporary.path(), path)?;
        }
        self.temporary = None;
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            temporary.discard();
        }
    }
}

/// Whether another way to name the file would end in the same error.
fn is_final(error: &io::Error) -> bool {
    use io::ErrorKind::{AlreadyExists, InvalidInput, IsADirectory, ReadOnlyFilesystem, StorageFull};
    matches!(error.kind(), AlreadyExists | InvalidInput | IsADirectory | ReadOnlyFilesystem | StorageFull)
}

fn link(file: &File, path: &Path) -> io::Result<()> {
    Ok(linkat(CWD, link_of(file), CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

/// Renames to a name that nobody has.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            // The file system can't look and rename in one step: take the name with an empty file, which is ours to replace.
            let holder = OpenOptions::new().write(true).create_new(true).mode(rights::OWNER_ONLY).open(to)?;
            let holder = Created::file(to, &holder)?;
            fs::rename(from, to).inspect_err(|_| {
                holder.discard();
            })
        }
        renamed => Ok(renamed?),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns a draft as on a file system without unnamed files.
    pub(in super::super) fn named_draft(path: &Path, existing: Existing) -> (File, Draft) {
        let (file, temporary) = named(folder_of(path)).unwrap();
        (file, Draft { path: path.to_owned(), existing, temporary: Some(temporary) })
    }
}

//! A file that has not received its name yet.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Seek};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, RenameFlags, linkat, renameat_with};
use rustix::io::Errno;

use super::Existing;
use super::created::Created;
use super::output_target::{self, OutputTarget};
use super::permissions;
use super::temporary::{folder_of, link_of, named, unnamed, with_random_name};

/// The future name of a file. It is separate from the file, so that the writer can own the file.
///
/// If it is dropped before the file is published, nothing remains of the file.
#[derive(Debug)]
pub struct Draft {
    path: PathBuf,
    existing: Existing,
    /// The file with a random name, if it could not be created without a name.
    temporary: Option<Created>,
}

/// An opened output.
#[derive(Debug)]
pub enum OpenedOutput {
    /// A device, a FIFO or a socket, which is written to immediately.
    Stream(File),
    /// A new file, and the name that it receives when it is published.
    Draft(File, Draft),
}

/// A file that has received its name.
#[derive(Debug)]
pub struct Published {
    /// The name, and the proof that it belongs to this file.
    pub created: Created,
    /// The file for further writes, if it is not the given file: the system has refused to name that, so it was
    /// copied.
    pub copy: Option<File>,
}

impl Draft {
    /// Opens an output. The path is neither created nor changed, unless it is a device, a FIFO or a socket.
    pub fn open(path: &Path, existing: Existing) -> io::Result<OpenedOutput> {
        permissions::of_new_files()?;
        let path = match output_target::find(path, existing)? {
            OutputTarget::Stream(stream) => return Ok(OpenedOutput::Stream(stream)),
            OutputTarget::Name { path, .. } => path,
        };
        let folder = folder_of(&path);
        let (file, temporary) = match unnamed(folder) {
            Ok(file) => (file, None),
            // The file system has no unnamed files, or /proc is missing. The other method reports any other
            // problem.
            Err(_) => named(folder).map(|(file, temporary)| (file, Some(temporary)))?,
        };
        Ok(OpenedOutput::Draft(file, Self { path, existing, temporary }))
    }

    /// Returns the file with the random name that it has until it is published, if it has one.
    pub(super) const fn temporary(&self) -> Option<&Created> {
        self.temporary.as_ref()
    }

    /// Names the file. After an error it is still a draft, and an old file is unchanged.
    pub fn publish(&mut self, file: &File) -> io::Result<Published> {
        let path = self.path.clone();
        self.publish_as(file, &path, self.existing)
    }

    /// Gives the file a different name in the same folder.
    pub fn publish_as(&mut self, file: &File, path: &Path, existing: Existing) -> io::Result<Published> {
        let (path, replaced) = match output_target::find(path, existing)? {
            OutputTarget::Stream(_) => return Err(io::Error::other("it is no longer a regular file")),
            OutputTarget::Name { path, replaced } => (path, replaced),
        };
        let path = path.as_path();
        permissions::apply(file, replaced.as_ref().map(|replaced| (path, replaced)))?;
        let done = match existing {
            Existing::Keep => self.name_new(file, path),
            Existing::Replace => self.name_over(file, path),
        };
        match done {
            Ok(()) => Ok(Published { created: Created::file(path, file)?, copy: None }),
            // The system can refuse links to unnamed files, especially after a change of owner.
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
        permissions::apply(&copy, replaced.map(|replaced| (path, replaced)))?;
        copy.sync_all()?;
        Ok(copy)
    }

    /// Gives the file a name that must not exist.
    fn name_new(&mut self, file: &File, path: &Path) -> io::Result<()> {
        let Some(temporary) = &self.temporary else { return link(file, path) };
        rename_new(temporary.path(), path)?;
        self.temporary = None;
        Ok(())
    }

    /// Gives the file a name that a regular file may have.
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
            output_target::check_replaceable(&found)?;
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

/// Returns whether the other method of naming the file would fail with the same error.
fn is_final(error: &io::Error) -> bool {
    use io::ErrorKind::{AlreadyExists, InvalidInput, IsADirectory, ReadOnlyFilesystem, StorageFull};
    matches!(error.kind(), AlreadyExists | InvalidInput | IsADirectory | ReadOnlyFilesystem | StorageFull)
}

fn link(file: &File, path: &Path) -> io::Result<()> {
    Ok(linkat(CWD, link_of(file), CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

/// Renames to a name that must not exist.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            // The file system cannot check and rename in one step: reserve the name with an empty file, which is
            // ours to replace.
            let holder = OpenOptions::new().write(true).create_new(true).mode(permissions::OWNER_ONLY).open(to)?;
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

    /// Returns a draft like one on a file system without unnamed files.
    pub(in super::super) fn named_draft(path: &Path, existing: Existing) -> (File, Draft) {
        let (file, temporary) = named(folder_of(path)).unwrap();
        (file, Draft { path: path.to_owned(), existing, temporary: Some(temporary) })
    }
}

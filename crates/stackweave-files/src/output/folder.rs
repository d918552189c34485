//! An output that is a folder of files.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::manifest::{self, Manifest};
use super::permissions;
use super::temporary::{folder_of, with_random_name};
use super::unfinished::UnfinishedFiles;
use super::{Created, Existing};

/// A folder that exists only when it is complete.
///
/// It replaces another folder only if that is empty, or an older export without additions, as the export's own
/// list proves. If it is dropped before [`OutputFolder::finish`], nothing remains of it, and an old folder is
/// unchanged.
#[derive(Debug)]
pub struct OutputFolder {
    /// The folder with its temporary name.
    part: Created,
    path: PathBuf,
    existing: Existing,
    files: Vec<PathBuf>,
    unfinished: UnfinishedFiles,
}

impl OutputFolder {
    /// Begins a folder. `inputs` are files that are needed: the folder must not contain them.
    pub fn create(path: &Path, existing: Existing, inputs: &[PathBuf]) -> io::Result<Self> {
        let path = resolve_target(path, existing, inputs)?;
        let mode = permissions::of_new_folders()?;
        let (part, _) = with_random_name(folder_of(&path), |part| Created::folder(part, mode))?;
        let unfinished = UnfinishedFiles::new();
        unfinished.add(part.clone());
        Ok(Self { part, path, existing, files: Vec::new(), unfinished })
    }

    /// Creates a file in the folder, with its parent folders.
    pub fn file(&mut self, inner: &Path) -> io::Result<File> {
        let plain = inner.components().all(|part| matches!(part, std::path::Component::Normal(_)));
        if !plain || inner.as_os_str().is_empty() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut folders: Vec<&Path> = inner.ancestors().skip(1).collect();
        folders.pop();
        for folder in folders.iter().rev() {
            let folder = self.part.path().join(folder);
            if !folder.is_dir() {
                let mode = permissions::of_new_folders()?;
                self.unfinished.create(|| Created::folder(&folder, mode).map(|created| ((), created)))?;
            }
        }
        let file = self.create_file(inner)?;
        self.files.push(inner.to_owned());
        Ok(file)
    }

    fn create_file(&self, inner: &Path) -> io::Result<File> {
        let path = self.part.path().join(inner);
        let file = self.unfinished.create(|| {
            let file = OpenOptions::new().write(true).create_new(true).mode(permissions::OWNER_ONLY).open(&path)?;
            let created = Created::file(&path, &file)?;
            Ok((file, created))
        })?;
        permissions::apply(&file, None)?;
        Ok(file)
    }

    /// Syncs all files to the disk, adds the list of them, and names the folder. Returns the size of the list.
    pub fn finish(self) -> io::Result<u64> {
        let mut list = Manifest::default();
        for inner in &self.files {
            let file = File::open(self.part.path().join(inner))?;
            file.sync_all()?;
            list.0.insert(inner.clone(), file.metadata()?.len());
        }
        let mut file = self.create_file(Path::new(manifest::NAME))?;
        let mut text = Vec::new();
        list.write(&mut text)?;
        file.write_all(&text)?;
        file.sync_all()?;
        let part = self.part.path();
        match self.existing {
            Existing::Replace if fs::symlink_metadata(&self.path).is_ok() => replace(part, &self.path)?,
            _ => rename_folder(part, &self.path)?,
        }
        Ok(text.len() as u64)
    }
}

impl Drop for OutputFolder {
    fn drop(&mut self) {
        self.unfinished.discard();
    }
}

/// Returns the path of the folder. Fails if no folder may be created or replaced there.
fn resolve_target(path: &Path, existing: Existing, inputs: &[PathBuf]) -> io::Result<PathBuf> {
    let refuse = |kind, sentence| Err(io::Error::new(kind, sentence));
    let Ok(found) = fs::metadata(path) else {
        return match (fs::symlink_metadata(path), path.file_name()) {
            (Ok(_), _) => refuse(io::ErrorKind::InvalidInput, "it is a link to a missing file: name a new folder"),
            (Err(error), Some(_)) if error.kind() == io::ErrorKind::NotFound => Ok(path.to_owned()),
            (Err(error), _) => Err(error),
        };
    };
    if !found.is_dir() {
        return refuse(
            io::ErrorKind::NotADirectory,
            "it is not a folder, but the output in this format is one: name a new folder",
        );
    }
    if existing == Existing::Keep {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let path = fs::canonicalize(path)?;
    if path.parent().is_none() || std::env::current_dir().is_ok_and(|current| current.starts_with(&path)) {
        return refuse(io::ErrorKind::InvalidInput, "it is the working folder, or contains it: name a new folder");
    }
    let is_around = |input: &PathBuf| fs::canonicalize(input).is_ok_and(|input| input.starts_with(&path));
    if inputs.iter().any(is_around) {
        return refuse(io::ErrorKind::InvalidInput, "it contains a recording that is read: name a new folder");
    }
    if !is_empty(&path)? {
        Manifest::of_whole_folder(&path)?;
    }
    Ok(path)
}

fn is_empty(folder: &Path) -> io::Result<bool> {
    Ok(fs::read_dir(folder)?.next().is_none())
}

/// Replaces another folder by a complete one, and deletes the old one's known content afterwards.
fn replace(part: &Path, path: &Path) -> io::Result<()> {
    if is_empty(path)? {
        // The system itself replaces only an empty folder.
        return fs::rename(part, path);
    }
    Manifest::of_whole_folder(path)?;
    let aside = exchange(part, path)?;
    // Another program may have added something at the last moment.
    match Manifest::of_whole_folder(&aside) {
        Ok(list) => {
            list.remove(&aside);
            Ok(())
        }
        Err(error) => {
            let back = exchange(&aside, path)?;
            fs::rename(back, part)?;
            Err(error)
        }
    }
}

/// Swaps two folders. Returns the new path of the folder that was at `path`.
fn exchange(part: &Path, path: &Path) -> io::Result<PathBuf> {
    if renameat_with(CWD, part, CWD, path, RenameFlags::EXCHANGE).is_ok() {
        return Ok(part.to_owned());
    }
    // The file system cannot swap.
    let ((), aside) = with_random_name(folder_of(path), |aside| rename_folder(path, aside))?;
    match rename_folder(part, path) {
        Ok(()) => Ok(aside),
        Err(error) => {
            rename_folder(&aside, path)?;
            Err(error)
        }
    }
}

/// Renames a folder to a name that must not exist.
fn rename_folder(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS | rustix::io::Errno::NOTSUP) => {
            if fs::symlink_metadata(to).is_ok() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            // A folder never replaces a file, or a folder with content.
            fs::rename(from, to)
        }
        renamed => Ok(renamed?),
    }
}

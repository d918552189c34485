//! The file of a recording.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use stackweave_files::output::{Created, Draft, Existing, OpenedOutput};

use super::own_file::OwnFile;

/// Appends whole blocks to the file: either all parts of a call or nothing.
#[derive(Debug)]
pub(super) struct FileSink {
    file: OwnFile,
    path: PathBuf,
    length: u64,
    /// The unnamed file. None: it already has its name, or it is a pipe or a device.
    draft: Option<Draft>,
    /// Whether the file can be truncated, unlike a pipe or a device.
    can_truncate: bool,
}

impl FileSink {
    /// Creates the file, with `start` in it. It has no name until [`FileSink::publish`], so that no other process sees it without a
    /// start, and an older file stays until there is a newer one. A device, a FIFO or a socket is opened.
    pub(super) fn create(path: &Path, existing: Existing, start: &[u8]) -> io::Result<Self> {
        match Draft::open(path, existing)? {
            OpenedOutput::Stream(stream) => Self::of(stream, path, None),
            OpenedOutput::Draft(file, draft) => {
                let mut sink = Self::of(file, path, Some(draft))?;
                sink.append(&[start])?;
                Ok(sink)
            }
        }
    }

    fn of(file: File, path: &Path, draft: Option<Draft>) -> io::Result<Self> {
        let can_truncate = draft.is_some();
        Ok(Self { file: OwnFile::new(file)?, path: path.to_owned(), length: 0, draft, can_truncate })
    }

    /// Gives the file this name. Returns the proof that it was created here; `None` if it was only opened.
    pub(super) fn publish(&mut self, path: &Path, existing: Existing) -> io::Result<Option<Created>> {
        let Some(draft) = &mut self.draft else { return Ok(None) };
        let published = draft.publish_as(self.file.get()?, path, existing)?;
        path.clone_into(&mut self.path);
        if let Some(copy) = published.copy {
            self.file = OwnFile::new(copy)?;
        }
        self.draft = None;
        Ok(Some(published.created))
    }

    /// Appends all parts, or, after an error, none of them: the file is truncated to its previous length.
    pub(super) fn append(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        for part in parts {
            if let Err(error) = self.file.write_all(part, &self.path) {
                if self.can_truncate {
                    // If this fails, too, a reader finds the next block after the incomplete one.
                    let _ = self.file.truncate(self.length, &self.path);
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn created(path: &Path, existing: Existing, start: &[u8]) -> io::Result<FileSink> {
        let mut sink = FileSink::create(path, existing, start)?;
        sink.publish(path, existing)?;
        Ok(sink)
    }

    struct SinkFolder(PathBuf);

    impl SinkFolder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("stackweave-sink-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for SinkFolder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_file_is_created_once_and_grows() {
        let folder = SinkFolder::new("made");
        let path = folder.0.join("out.swv");
        let mut sink = created(&path, Existing::Keep, b"start").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"start");
        sink.append(&[b" one", b" two"]).unwrap();
        assert_eq!((fs::read(&path).unwrap(), sink.length()), (b"start one two".to_vec(), 13));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let again = created(&path, Existing::Keep, b"start").unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        created(&path, Existing::Replace, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    #[test]
    fn the_old_file_stays_until_the_new_one_is_published() {
        let folder = SinkFolder::new("stays");
        let path = folder.0.join("out.swv");
        fs::write(&path, b"old").unwrap();
        drop(FileSink::create(&path, Existing::Replace, b"start").unwrap());
        let mut sink = FileSink::create(&path, Existing::Replace, b"start").unwrap();
        sink.append(&[b" one"]).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        let proof = sink.publish(&path, Existing::Replace).unwrap().unwrap();
        sink.append(&[b" two"]).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"start one two");
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
        assert!(proof.discard() && !path.exists());
    }

    #[test]
    fn a_missing_folder_is_reported_as_missing() {
        let folder = SinkFolder::new("missing");
        let error = FileSink::create(&folder.0.join("no/out.swv"), Existing::Keep, b"").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0);
    }

    #[test]
    fn a_full_device_is_reported_as_full() {
        let mut sink = FileSink::create(Path::new("/dev/full"), Existing::Keep, b"start").unwrap();
        assert_eq!(sink.append(&[b"more"]).unwrap_err().raw_os_error(), Some(libc::ENOSPC));
        assert_eq!(sink.length(), 0);
    }
}

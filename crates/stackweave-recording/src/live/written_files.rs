//! The files that a recording has created. Only these may be replaced by a later dump, or discarded.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use stackweave_files::output::Created;

#[derive(Debug, Default)]
pub(super) struct WrittenFiles(Mutex<Vec<WrittenFile>>);

#[derive(Debug)]
struct WrittenFile {
    /// The requested path.
    requested: PathBuf,
    /// The actual path, which may have a number.
    path: PathBuf,
    /// None: a device, a FIFO or a socket.
    created: Option<Created>,
}

impl WrittenFiles {
    pub(super) fn add(&self, requested: &Path, path: &Path, created: Option<Created>) {
        let mut all = self.all();
        all.retain(|known| known.requested != requested);
        all.push(WrittenFile { requested: requested.to_owned(), path: path.to_owned(), created });
    }

    /// Returns the actual path for a requested one.
    pub(super) fn path(&self, requested: &Path) -> Option<PathBuf> {
        self.all().iter().find(|known| known.requested == requested).map(|known| known.path.clone())
    }

    /// Returns the actual path for a requested one, if it is still the file that this recording created.
    pub(super) fn own_path(&self, requested: &Path) -> Option<PathBuf> {
        let is_own =
            |known: &&WrittenFile| known.requested == requested && known.created.as_ref().is_some_and(Created::exists);
        self.all().iter().find(is_own).map(|known| known.path.clone())
    }

    /// Removes all files that were created.
    pub(super) fn discard(&self) {
        for created in self.all().drain(..).filter_map(|known| known.created) {
            created.discard();
        }
    }

    fn all(&self) -> MutexGuard<'_, Vec<WrittenFile>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

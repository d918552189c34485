//! The files that a recording has created: they alone may be replaced by a later dump, or discarded.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use stackweave_files::output::Created;

#[derive(Debug, Default)]
pub(super) struct WrittenFiles(Mutex<Vec<Written>>);

#[derive(Debug)]
struct Written {
    /// The path that was asked for.
    wanted: PathBuf,
    /// The path that it got: it may have a number.
    path: PathBuf,
    /// None: a device, a FIFO or a socket.
    created: Option<Created>,
}

impl WrittenFiles {
    pub(super) fn add(&self, wanted: &Path, path: &Path, created: Option<Created>) {
        let mut all = self.all();
        all.retain(|known| known.wanted != wanted);
        all.push(Written { wanted: wanted.to_owned(), path: path.to_owned(), created });
    }

    /// Returns the path of what was written for this one.
    pub(super) fn path(&self, wanted: &Path) -> Option<PathBuf> {
        self.all().iter().find(|known| known.wanted == wanted).map(|known| known.path.clone())
    }

    /// Returns the path of what was written for this one, if it is still the file that this recording has created.
    pub(super) fn own_path(&self, wanted: &Path) -> Option<PathBuf> {
        let is_own = |known: &&Written| known.wanted == wanted && known.created.as_ref().is_some_and(Created::is_there);
        self.all().iter().find(is_own).map(|known| known.path.clone())
    }

    /// Removes all that was created.
    pub(super) fn discard(&self) {
        for created in self.all().drain(..).filter_map(|known| known.created) {
            created.discard();
        }
    }

    fn all(&self) -> MutexGuard<'_, Vec<Written>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! A temporary folder for a test, which is removed when the test ends.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// A temporary folder. Dropping it removes it with its contents.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Creates a folder with a unique name.
    ///
    /// # Panics
    /// When the folder cannot be created. The other methods panic, too, when the disk fails.
    #[expect(clippy::new_without_default, reason = "it is created on a disk, not from nothing")]
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("stackweave-test-{}-{number}", process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a folder can be made");
        Self(path)
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the path that a file with this name has or would have in the folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Creates or replaces the file with this name, with its parent folders, and returns its path.
    #[expect(clippy::missing_panics_doc, reason = "as for `new`")]
    pub fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.file(name);
        fs::create_dir_all(path.parent().unwrap_or(&self.0)).expect("a folder can be made");
        fs::write(&path, bytes).expect("a file can be written");
        path
    }

    /// Returns the names of its entries.
    pub fn names(&self) -> Vec<String> {
        let name = |path: PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.paths().into_iter().map(name).collect()
    }

    /// Returns the paths of its entries, sorted by name.
    #[expect(clippy::missing_panics_doc, reason = "as for `new`")]
    pub fn paths(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.0).expect("the folder is there");
        let mut paths: Vec<PathBuf> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
        paths.sort();
        paths
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

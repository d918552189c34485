//! A folder of its own for a test, gone when the test ends.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// An empty folder, which is removed with all that is in it.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// A folder that nobody else has.
    ///
    /// # Panics
    /// When it can't be made; so do the others where the disk fails.
    #[expect(clippy::new_without_default, reason = "it is made on a disk, not of nothing")]
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("stackweave-test-{}-{number}", process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a folder can be made");
        Self(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Where a file of that name would be in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A file of that name, written anew, with the folders around it.
    #[expect(clippy::missing_panics_doc, reason = "as for `new`")]
    pub fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.file(name);
        fs::create_dir_all(path.parent().unwrap_or(&self.0)).expect("a folder can be made");
        fs::write(&path, bytes).expect("a file can be written");
        path
    }

    /// The names of what is in it.
    pub fn names(&self) -> Vec<String> {
        let name = |path: PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.paths().into_iter().map(name).collect()
    }

    /// What is in it, by name.
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

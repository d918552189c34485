//! Where fixtures are built: one folder each, built once, and again when what it is built from changes.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use super::Skipped;

/// What the recipes are: a changed recipe builds anew.
const RECIPES: [&str; 2] = [include_str!("library.rs"), include_str!("variants.rs")];

/// The folder that holds all built fixtures.
pub fn root() -> PathBuf {
    Path::new(env!("OUT_DIR")).join("symbols")
}

/// The folder with the sources of the fixtures.
///
/// # Panics
/// When it is not there.
pub fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/symbols").canonicalize().expect("the sources are there")
}

/// The folder `name`, filled by `recipe` unless it was filled from the same `inputs` before.
///
/// Test processes run at once: a lock makes sure that only one builds, and that the others wait.
///
/// # Panics
/// When the folder cannot be made or an input cannot be read.
pub fn built(
    name: &str,
    inputs: &[PathBuf],
    recipe: impl FnOnce(&Path) -> Result<(), Skipped>,
) -> Result<PathBuf, Skipped> {
    let (root, folder) = (root(), root().join(name));
    fs::create_dir_all(&root).expect("the output folder can be written");
    let lock = File::create(root.join(format!("{name}.lock"))).expect("the output folder can be written");
    // SAFETY: the descriptor is open. The lock goes when the file is closed.
    assert_eq!(unsafe { libc::flock(lock.as_raw_fd(), libc::LOCK_EX) }, 0, "a local file can be locked");

    let stamp = root.join(format!("{name}.stamp"));
    let wanted = hash_of(inputs);
    if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(folder);
    }
    let _ = fs::remove_file(&stamp);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the output folder can be written");
    recipe(&folder)?;
    fs::write(&stamp, wanted).expect("the output folder can be written");
    Ok(folder)
}

fn hash_of(inputs: &[PathBuf]) -> String {
    let mut hasher = DefaultHasher::new();
    RECIPES.hash(&mut hasher);
    for input in inputs {
        input.hash(&mut hasher);
        fs::read(input).expect("the inputs of a fixture can be read").hash(&mut hasher);
    }
    format!("{:016x}", hasher.finish())
}

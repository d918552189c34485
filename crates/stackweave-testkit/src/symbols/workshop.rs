//! Builds fixtures: each in its folder, once, and again when its inputs change.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use super::Skipped;

/// The sources of the recipes: a changed recipe causes a new build.
const RECIPES: [&str; 2] = [include_str!("library.rs"), include_str!("variants.rs")];

/// Returns the folder that holds all built fixtures.
pub fn root() -> PathBuf {
    Path::new(env!("OUT_DIR")).join("symbols")
}

/// Returns the folder with the sources of the fixtures.
///
/// # Panics
/// When the folder does not exist.
pub fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/symbols").canonicalize().expect("the sources are there")
}

/// Returns the folder `name`. Calls `recipe` to fill it unless it was filled from the same `inputs` before.
///
/// Test processes run in parallel: a lock lets one process build while the others wait.
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
    // SAFETY: the descriptor is open. Closing the file releases the lock.
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

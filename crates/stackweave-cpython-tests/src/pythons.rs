//! The interpreters of this machine, and what they run here.

use std::path::{Path, PathBuf};

pub use stackweave_testkit::pythons::{MINORS, MORE, Python, pythons, refused_pythons};

/// The shared form of this crate, beside the test that runs.
///
/// # Panics
/// When the system does not say where the test is.
pub fn shared_library() -> PathBuf {
    let test = std::env::current_exe().expect("a process knows its executable");
    test.with_file_name("libstackweave_cpython_tests.so")
}

/// A script of the tests.
pub fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("python").join(name)
}

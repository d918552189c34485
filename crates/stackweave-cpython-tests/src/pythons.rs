//! The interpreters of this machine, and the scripts that they run here.

use std::path::{Path, PathBuf};

pub use stackweave_testkit::pythons::{MINORS, MORE, Python, pythons, refused_pythons};

/// Returns the shared library of this crate, beside the running test.
///
/// # Panics
/// Panics if the system does not provide the path of the test.
pub fn shared_library() -> PathBuf {
    let test = std::env::current_exe().expect("a process knows its executable");
    test.with_file_name("libstackweave_cpython_tests.so")
}

/// Returns the path of a script of the tests.
pub fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("python").join(name)
}

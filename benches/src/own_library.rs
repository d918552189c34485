//! The library of this crate, which another process loads.

use std::env;
use std::path::PathBuf;

/// Returns its path. cargo puts the library of a program that it runs among the dependencies.
pub(crate) fn find() -> Option<PathBuf> {
    let program = env::current_exe().ok()?;
    let library = PathBuf::from("deps").join(concat!("lib", env!("CARGO_CRATE_NAME"), ".so"));
    Some(program.with_file_name(library)).filter(|path| path.exists())
}

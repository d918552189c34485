//! The biggest library that is installed: torch's, or else one that a Debian system is likely to have.

use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::peers::unwind_tables::UnwindTables;
use crate::peers::{shared_library, torch};

/// Returns the tables of the biggest library that can be loaded. The library stays loaded.
pub(super) fn biggest() -> Option<UnwindTables> {
    let loaded: Vec<String> = match torch::library().filter(|path| is_loadable(path)) {
        Some(path) => vec![path.to_owned()],
        None => usual_names().into_iter().filter(|name| is_loadable(name)).collect(),
    };
    let names = loaded.iter().filter_map(|path| Path::new(path).file_name()).collect::<Vec<_>>();
    UnwindTables::of_this_process()
        .into_iter()
        .filter(|tables| file_name(tables).is_some_and(|name| names.contains(&name)))
        .max_by_key(mebibytes)
}

/// Returns the size of the library's mapping.
pub(super) fn mebibytes(tables: &UnwindTables) -> u64 {
    (tables.image.end - tables.image.start) >> 20
}

pub(super) fn file_name(tables: &UnwindTables) -> Option<&'static OsStr> {
    Path::new(OsStr::from_bytes(tables.file.to_bytes())).file_name()
}

fn is_loadable(name: &str) -> bool {
    CString::new(name).is_ok_and(|name| shared_library::open(&name).is_ok())
}

fn usual_names() -> Vec<String> {
    let mut names = vec!["libcrypto.so.3".to_owned(), "libstdc++.so.6".to_owned()];
    names.extend((11..18).map(|version| format!("libLLVM-{version}.so.1")));
    names.extend((18..25).map(|version| format!("libLLVM.so.{version}.1")));
    names.extend((9..16).map(|version| format!("libpython3.{version}.so.1.0")));
    names
}

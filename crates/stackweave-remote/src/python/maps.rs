//! The files that a process has mapped as code.

use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use stackweave_files::open_regular;

use crate::maps::{self, Mapping};

/// Returns the first mapping of code of each file.
pub(super) fn code_mappings(process: u32) -> io::Result<Vec<Mapping>> {
    let mut mappings = maps::parse(&fs::read(format!("/proc/{process}/maps"))?);
    mappings.retain(|mapping| mapping.is_executable && mapping.is_of_file());
    mappings.dedup_by(|mapping, before| mapping.path == before.path);
    Ok(mappings)
}

impl Mapping {
    /// Returns whether the file name is that of an interpreter.
    pub(super) fn is_named_python(&self) -> bool {
        self.path.file_name().is_some_and(|name| name.as_bytes().windows(6).any(|window| window == b"python"))
    }

    /// Opens the file: by its path as the process sees it, or the mapping itself, if the file has been replaced or
    /// removed.
    pub(super) fn open(&self, process: u32) -> Option<File> {
        let inside = self.path.strip_prefix("/").ok().filter(|_| !self.is_deleted);
        let by_name =
            inside.and_then(|path| open_regular(&Path::new(&format!("/proc/{process}/root")).join(path)).ok());
        by_name.or_else(|| self.open_mapping(process)).or_else(|| self.open_executable(process))
    }

    /// Opens the mapping, which only some users may do.
    fn open_mapping(&self, process: u32) -> Option<File> {
        open_regular(Path::new(&format!("/proc/{process}/map_files/{:x}-{:x}", self.start, self.end))).ok()
    }

    fn open_executable(&self, process: u32) -> Option<File> {
        let link = format!("/proc/{process}/exe");
        let path = fs::read_link(&link).ok()?;
        let path = path.as_os_str().as_bytes();
        let is_it = path.strip_suffix(maps::DELETED).unwrap_or(path) == self.path.as_os_str().as_bytes();
        is_it.then(|| open_regular(Path::new(&link)).ok()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpreters_are_recognised_by_their_names() {
        let is_python = |line: &[u8]| maps::parse(line)[0].is_named_python();
        assert!(is_python(b"1000-2000 r-xp 00020000 fe:00 1234      /usr/bin/my python3.11"));
        assert!(!is_python(b"1000-2000 r-xp 0 fe:00 1 /python/libz.so (deleted)"));
    }

    #[test]
    fn the_tests_own_executable_is_found_and_opened() {
        let executable = std::env::current_exe().unwrap();
        let mappings = code_mappings(std::process::id()).unwrap();
        let own = mappings.iter().find(|mapping| mapping.path == executable).unwrap();
        assert!(own.open(std::process::id()).is_some() && own.open_executable(std::process::id()).is_some());
        let is_first = |path: &Path| mappings.iter().filter(|mapping| mapping.path == path).count() == 1;
        assert!(mappings.iter().all(|mapping| mapping.is_executable && is_first(&mapping.path)), "{mappings:?}");
    }
}

//! What files a process has mapped as code.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// A part of a file, mapped as code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CodeMapping {
    pub(super) start: u64,
    pub(super) end: u64,
    /// Where in the file it begins.
    pub(super) offset: u64,
    /// As that process sees it.
    pub(super) path: PathBuf,
}

/// The first mapping of code of each file.
pub(super) fn code_mappings(process: u32) -> io::Result<Vec<CodeMapping>> {
    let maps = fs::read(format!("/proc/{process}/maps"))?;
    let mut found: Vec<CodeMapping> = Vec::new();
    for mapping in maps.split(|byte| *byte == b'\n').filter_map(parse) {
        if found.last().is_none_or(|last| last.path != mapping.path) {
            found.push(mapping);
        }
    }
    Ok(found)
}

/// A line of `/proc/PID/maps`, if it is a mapping of code from a file.
fn parse(line: &[u8]) -> Option<CodeMapping> {
    let mut fields = line.splitn(6, |byte| *byte == b' ');
    let mut field = || fields.next().and_then(|field| std::str::from_utf8(field).ok());
    let (start, end) = field()?.split_once('-')?;
    let permissions = field()?;
    let offset = field()?;
    let path = fields.nth(2)?.trim_ascii_start();
    if !permissions.contains('x') || !path.starts_with(b"/") {
        return None;
    }
    let number = |text| u64::from_str_radix(text, 16).ok();
    let path = PathBuf::from(OsString::from_vec(unescape(path)));
    Some(CodeMapping { start: number(start)?, end: number(end)?, offset: number(offset)?, path })
}

/// The kernel writes a line's end in a name in octal.
fn unescape(path: &[u8]) -> Vec<u8> {
    const LINE_END: &[u8] = b"\\012";
    let mut plain = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((first, after)) = rest.split_first() {
        if let Some(after) = rest.strip_prefix(LINE_END) {
            plain.push(b'\n');
            rest = after;
        } else {
            plain.push(*first);
            rest = after;
        }
    }
    plain
}

impl CodeMapping {
    /// Whether the name is that of an interpreter.
    pub(super) fn is_named_python(&self) -> bool {
        self.path.file_name().is_some_and(|name| name.as_bytes().windows(6).any(|window| window == b"python"))
    }

    /// The file: as that process sees it, or the mapping itself, if the file has been replaced or removed.
    pub(super) fn open(&self, process: u32) -> Option<File> {
        let is_deleted = self.path.as_os_str().as_bytes().ends_with(b" (deleted)");
        let inside = self.path.strip_prefix("/").ok().filter(|_| !is_deleted);
        let by_name = inside.and_then(|path| File::open(Path::new(&format!("/proc/{process}/root")).join(path)).ok());
        by_name.or_else(|| self.open_mapping(process)).or_else(|| self.open_executable(process))
    }

    /// Only some users may.
    fn open_mapping(&self, process: u32) -> Option<File> {
        File::open(format!("/proc/{process}/map_files/{:x}-{:x}", self.start, self.end)).ok()
    }

    fn open_executable(&self, process: u32) -> Option<File> {
        let link = format!("/proc/{process}/exe");
        let is_it = fs::read_link(&link).is_ok_and(|path| path == self.path);
        is_it.then(|| File::open(link).ok()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_of_code_are_read() {
        let mapping = |line: &str| parse(line.as_bytes());
        let found = mapping("5581f0a00000-5581f0c00000 r-xp 00020000 fe:00 1234      /usr/bin/my python3.11").unwrap();
        assert_eq!((found.start, found.end, found.offset), (0x5581_f0a0_0000, 0x5581_f0c0_0000, 0x20000));
        assert_eq!(found.path, Path::new("/usr/bin/my python3.11"));
        assert!(found.is_named_python());
        let odd = mapping("1000-2000 r-xp 0 fe:00 1 /odd\\012name (deleted)").unwrap();
        assert_eq!(odd.path, Path::new("/odd\nname (deleted)"));
        assert!(!odd.is_named_python());
        for other in [
            "1000-2000 r--p 00000000 fe:00 1 /usr/bin/python3.11",
            "1000-2000 r-xp 00000000 00:00 0 [vdso]",
            "1000-2000 r-xp 00000000 00:00 0",
            "1000 r-xp 00000000 00:00 0 /a",
            "",
        ] {
            assert_eq!(mapping(other), None, "{other}");
        }
    }

    #[test]
    fn the_own_executable_is_found_and_opened() {
        let executable = std::env::current_exe().unwrap();
        let mappings = code_mappings(std::process::id()).unwrap();
        let own = mappings.iter().find(|mapping| mapping.path == executable).unwrap();
        assert!(own.open(std::process::id()).is_some() && own.open_executable(std::process::id()).is_some());
    }
}

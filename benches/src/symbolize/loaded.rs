//! The files that a process has mapped, from its list of mappings.

use std::fs;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSegment};
use stackweave_files::MappedFile;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LoadedFile {
    pub(super) path: PathBuf,
    pub(super) start: u64,
    pub(super) end: u64,
    /// The address in memory minus the address in the file.
    pub(super) bias: u64,
}

/// Returns the ELF files that this process has mapped.
pub(super) fn here() -> Vec<LoadedFile> {
    of(&fs::read_to_string("/proc/self/maps").unwrap_or_default())
}

/// Returns the ELF files in the `/proc/PID/maps` of a process on this machine.
pub(super) fn of(maps: &str) -> Vec<LoadedFile> {
    let mut files = ranges(maps);
    files.retain_mut(|file| match lowest_stated(&file.path) {
        Some(stated) => {
            file.bias = file.start.wrapping_sub(stated);
            true
        }
        None => false,
    });
    files
}

/// Returns each file with the range from its first to its last mapping.
fn ranges(maps: &str) -> Vec<LoadedFile> {
    let mut files = Vec::<LoadedFile>::new();
    for (start, end, path) in maps.lines().filter_map(mapping) {
        match files.iter_mut().find(|file| file.path == path) {
            Some(file) => file.end = file.end.max(end),
            None => files.push(LoadedFile { path: path.to_owned(), start, end, bias: 0 }),
        }
    }
    files
}

fn mapping(line: &str) -> Option<(u64, u64, &Path)> {
    let path = &line[line.find('/')?..];
    let (start, end) = line.split(' ').next()?.split_once('-')?;
    Some((u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?, Path::new(path)))
}

/// Returns the page address of the file's first segment.
fn lowest_stated(path: &Path) -> Option<u64> {
    let file = MappedFile::open(path).ok()?;
    let elf = object::File::parse(&*file).ok()?;
    elf.segments().map(|segment| segment.address() & !0xfff).min()
}

#[cfg(test)]
mod tests {
    use std::env;

    use super::*;

    #[test]
    fn a_file_reaches_from_its_first_to_its_last_mapping() {
        let maps = "7f0000000000-7f0000001000 r--p 00000000 fe:00 12   /lib/a b.so\n\
                    7f0000001000-7f0000009000 r-xp 00001000 fe:00 12   /lib/a b.so\n\
                    7f0000009000-7f000000a000 rw-p 00000000 00:00 0 \n\
                    7f000000b000-7f000000c000 r-xp 00000000 00:00 0    [vdso]\n";
        let file = LoadedFile { path: "/lib/a b.so".into(), start: 0x7f00_0000_0000, end: 0x7f00_0000_9000, bias: 0 };
        assert_eq!(ranges(maps), [file]);
        assert_eq!(of(maps), []);
    }

    #[test]
    fn this_program_is_among_its_own_files() {
        let here = here();
        let own = env::current_exe().ok().and_then(|path| here.iter().find(|file| file.path == path));
        let function = this_program_is_among_its_own_files as fn() as usize as u64;
        assert!(own.is_some_and(|file| file.start <= function && function < file.end && file.bias <= file.start));
    }
}

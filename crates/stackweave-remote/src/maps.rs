//! The mappings of a process.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// One line of `/proc/PID/maps`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) is_executable: bool,
    /// The offset in its file.
    pub(crate) offset: u64,
    /// The inode of its file; 0 for anonymous memory.
    pub(crate) inode: u64,
    /// The path as the kernel writes it, without the mark of a deleted file; `[vdso]` and the like for the
    /// kernel's mappings.
    pub(crate) path: PathBuf,
    /// Whether the file was deleted.
    pub(crate) is_deleted: bool,
}

impl Mapping {
    pub(crate) fn is_of_file(&self) -> bool {
        self.inode != 0 && self.path.is_absolute()
    }

    pub(crate) fn is_vdso(&self) -> bool {
        self.path.as_os_str() == "[vdso]"
    }
}

/// The suffix that the kernel appends to the path of a deleted file.
pub(crate) const DELETED: &[u8] = b" (deleted)";

/// Returns the mappings that `maps` lists, by address. Skips malformed lines.
pub(crate) fn parse(maps: &[u8]) -> Vec<Mapping> {
    maps.split(|byte| *byte == b'\n').filter_map(mapping).collect()
}

fn mapping(line: &[u8]) -> Option<Mapping> {
    let mut rest = line;
    let mut words = [&[][..]; 5];
    for word in &mut words {
        let end = rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len());
        (*word, rest) = rest.split_at(end);
        rest = rest.get(1..).unwrap_or_default();
    }
    let [range, rights, offset, _, inode] = words;
    let (start, end) = str::from_utf8(range).ok()?.split_once('-')?;
    let hexadecimal = |digits: &str| u64::from_str_radix(digits, 16).ok();
    let path = rest.trim_ascii_start();
    let whole = path.strip_suffix(DELETED);
    Some(Mapping {
        start: hexadecimal(start)?,
        end: hexadecimal(end)?,
        is_executable: rights.get(2) == Some(&b'x'),
        offset: hexadecimal(str::from_utf8(offset).ok()?)?,
        inode: str::from_utf8(inode).ok()?.parse().ok()?,
        path: OsStr::from_bytes(&unescaped(whole.unwrap_or(path))).into(),
        is_deleted: whole.is_some(),
    })
}

/// Replaces `\012` by the line end that it represents in a path.
fn unescaped(path: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((byte, after)) = rest.split_first() {
        if let Some(after) = rest.strip_prefix(b"\\012") {
            plain.push(b'\n');
            rest = after;
        } else {
            plain.push(*byte);
            rest = after;
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_unusual_paths_are_parsed() {
        let maps = parse(
            b"7f01c000-7f01d000 r-xp 00002000 08:01 123   /srv/a b (deleted)\n\
              7ffd000-7ffe000 r-xp 00000000 00:00 0       [vdso]\n\
              1000-2000 rw-p 00000000 00:00 0 \n\
              2000-3000 rw-p 00000000 08:01 7 /srv/a\\012b\nnonsense\n",
        );
        assert_eq!(maps.len(), 4);
        assert_eq!(
            (maps[0].start, maps[0].end, maps[0].offset, maps[0].inode),
            (0x7f01_c000, 0x7f01_d000, 0x2000, 123)
        );
        assert_eq!(
            (maps[0].path.as_path(), maps[0].is_deleted, maps[0].is_executable),
            ("/srv/a b".as_ref(), true, true)
        );
        assert!(maps[1].is_vdso() && !maps[1].is_of_file());
        assert!(!maps[2].is_of_file() && !maps[2].is_executable && maps[2].path.as_os_str().is_empty());
        assert_eq!(maps[3].path.as_os_str(), "/srv/a\nb");
    }
}

//! Links from a module to its debug file, and the paths where that file may be. This module does not read files.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use stackweave_core::BuildId;

/// The contents of `.gnu_debuglink`: the debug file's name, without folders, and the CRC-32 of its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DebugLink {
    pub(crate) name: PathBuf,
    pub(crate) crc: u32,
}

impl DebugLink {
    /// Parses the section of a little-endian file: a name, its terminator, padding to 4 bytes, a CRC.
    pub(crate) fn parse(section: &[u8]) -> Option<Self> {
        let (name, _) = split_at_terminator(section)?;
        let crc_at = (name.len() + 1).next_multiple_of(4);
        let crc = u32::from_le_bytes(section.get(crc_at..crc_at + 4)?.try_into().ok()?);
        let name = PathBuf::from(OsStr::from_bytes(name));
        let mut components = name.components();
        let is_name = matches!((components.next(), components.next()), (Some(Component::Normal(_)), None));
        is_name.then_some(Self { name, crc })
    }

    /// Returns whether `file`, the bytes of a debug file, has the link's checksum.
    pub(crate) fn matches(&self, file: &[u8]) -> bool {
        crc32(file) == self.crc
    }
}

/// The contents of `.gnu_debugaltlink`: the file to which `dwz` moved shared debug information, and its build id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AltLink {
    pub(crate) path: PathBuf,
    pub(crate) build_id: BuildId,
}

impl AltLink {
    /// Parses the section: a path, its terminator, and the build id up to the end.
    pub(crate) fn parse(section: &[u8]) -> Option<Self> {
        let (path, id) = split_at_terminator(section)?;
        Some(Self { path: PathBuf::from(OsStr::from_bytes(path)), build_id: BuildId::new(id)? })
    }
}

/// Returns the CRC-32 that `.gnu_debuglink` uses: the same as zlib's.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

/// Returns the paths where the debug file of `module` may be, in gdb's order: by build id, beside the module, in
/// `.debug` beside it, then in each debug folder under the module's own folder.
///
/// `module` should contain no symbolic links: the path under a debug folder is that of the real folder.
pub(crate) fn debug_file_candidates(
    module: &Path,
    build_id: Option<&BuildId>,
    link: Option<&DebugLink>,
    debug_folders: &[PathBuf],
) -> Vec<PathBuf> {
    let mut found = Vec::new();
    if let Some(id) = build_id {
        found.extend(by_build_id(id, debug_folders));
    }
    if let (Some(link), Some(folder)) = (link, module.parent()) {
        found.push(folder.join(&link.name));
        found.push(folder.join(".debug").join(&link.name));
        found.extend(debug_folders.iter().map(|debug| under(debug, folder).join(&link.name)));
    }
    found.retain(|path| path != module);
    found
}

/// Returns the paths where the file may be to which `holder`, a module or its debug file, links with
/// `.gnu_debugaltlink`: the path itself (relative to the holder), the same path below `.dwz` of each debug folder,
/// then by build id.
pub(crate) fn alt_file_candidates(holder: &Path, link: &AltLink, debug_folders: &[PathBuf]) -> Vec<PathBuf> {
    let folder = holder.parent().unwrap_or(Path::new(""));
    let mut wanted = vec![folder.join(&link.path)];
    let mut components = link.path.components();
    if components.by_ref().any(|component| component.as_os_str() == ".dwz") {
        let below = components.as_path();
        wanted.extend(debug_folders.iter().map(|debug| debug.join(".dwz").join(below)));
    }
    wanted.extend(by_build_id(&link.build_id, debug_folders));
    let mut found = Vec::with_capacity(wanted.len());
    for path in wanted {
        if path != holder && !found.contains(&path) {
            found.push(path);
        }
    }
    found
}

/// Returns `DIR/.build-id/xx/rest.debug` for each debug folder.
fn by_build_id(id: &BuildId, debug_folders: &[PathBuf]) -> Vec<PathBuf> {
    let text = id.to_string();
    let (first, rest) = text.split_at(2);
    if rest.is_empty() {
        return Vec::new();
    }
    let relative = Path::new(".build-id").join(first).join(format!("{rest}.debug"));
    debug_folders.iter().map(|debug| debug.join(&relative)).collect()
}

/// Returns the path of `folder` with `root` as the root folder.
fn under(root: &Path, folder: &Path) -> PathBuf {
    root.join(folder.strip_prefix("/").unwrap_or(folder))
}

fn split_at_terminator(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|&byte| byte == 0)?;
    (end > 0).then(|| (&bytes[..end], &bytes[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders() -> Vec<PathBuf> {
        vec!["/usr/lib/debug".into(), "/opt/debug".into()]
    }

    fn paths(paths: &[&str]) -> Vec<PathBuf> {
        paths.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn the_crc_equals_zlibs() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
    }

    #[test]
    fn a_link_has_a_name_padding_and_a_crc() {
        let link = DebugLink::parse(b"a.debug\0\x26\x39\xf4\xcb").unwrap();
        assert_eq!(link, DebugLink { name: "a.debug".into(), crc: 0xcbf4_3926 });
        assert!(link.matches(b"123456789"));
        assert!(!link.matches(b"12345678"));
        let padded = DebugLink::parse(b"ab.debug\0\0\0\0\x01\0\0\0").unwrap();
        assert_eq!((padded.name.to_str(), padded.crc), (Some("ab.debug"), 1));
    }

    #[test]
    fn a_malformed_link_is_none() {
        for section in
            [b"".as_slice(), b"\0", b"a.debug", b"a.debug\0", b"a.debug\0\x01\x02\x03", b"\0\0\0\0\x01\0\0\0"]
        {
            assert_eq!(DebugLink::parse(section), None, "{section:?}");
        }
        for section in [b"../x\0\0\0\0\x01\0\0\0".as_slice(), b"/et\0\x01\0\0\0", b"..\0\0\x01\0\0\0"] {
            assert_eq!(DebugLink::parse(section), None, "{section:?}");
        }
    }

    #[test]
    fn an_alt_link_has_a_path_and_a_build_id() {
        let link = AltLink::parse(b"../.dwz/x.debug\0\xab\xcd\xef").unwrap();
        assert_eq!(link.path, Path::new("../.dwz/x.debug"));
        assert_eq!(link.build_id.to_string(), "abcdef");
        for section in [b"".as_slice(), b"path", b"path\0", b"\0\xab"] {
            assert_eq!(AltLink::parse(section), None, "{section:?}");
        }
    }

    #[test]
    fn candidates_are_in_gdbs_order() {
        let id = BuildId::new(&[0xab, 0xcd, 0xef]).unwrap();
        let link = DebugLink { name: "libx.debug".into(), crc: 0 };
        let found = debug_file_candidates(Path::new("/usr/lib/libx.so"), Some(&id), Some(&link), &folders());
        let expected = [
            "/usr/lib/debug/.build-id/ab/cdef.debug",
            "/opt/debug/.build-id/ab/cdef.debug",
            "/usr/lib/libx.debug",
            "/usr/lib/.debug/libx.debug",
            "/usr/lib/debug/usr/lib/libx.debug",
            "/opt/debug/usr/lib/libx.debug",
        ];
        assert_eq!(found, paths(&expected));
    }

    #[test]
    fn a_module_is_not_its_own_debug_file() {
        let link = DebugLink { name: "libx.so".into(), crc: 0 };
        let found = debug_file_candidates(Path::new("/usr/lib/libx.so"), None, Some(&link), &[]);
        assert_eq!(found, paths(&["/usr/lib/.debug/libx.so"]));
    }

    #[test]
    fn without_id_and_link_there_are_no_candidates() {
        assert!(debug_file_candidates(Path::new("/usr/lib/libx.so"), None, None, &folders()).is_empty());
        let short = BuildId::new(&[0xab]).unwrap();
        assert!(debug_file_candidates(Path::new("/usr/lib/libx.so"), Some(&short), None, &folders()).is_empty());
    }

    #[test]
    fn an_alt_file_is_searched_beside_its_holder_and_below_dwz() {
        let link = AltLink {
            path: "/usr/lib/debug/.dwz/x86_64-linux-gnu/x.debug".into(),
            build_id: BuildId::new(&[1, 2]).unwrap(),
        };
        let holder = Path::new("/usr/lib/debug/.build-id/ab/cd.debug");
        let expected = [
            "/usr/lib/debug/.dwz/x86_64-linux-gnu/x.debug",
            "/opt/debug/.dwz/x86_64-linux-gnu/x.debug",
            "/usr/lib/debug/.build-id/01/02.debug",
            "/opt/debug/.build-id/01/02.debug",
        ];
        assert_eq!(alt_file_candidates(holder, &link, &folders()), paths(&expected));
        let relative = AltLink { path: "../x.debug".into(), build_id: link.build_id.clone() };
        let found = alt_file_candidates(holder, &relative, &[]);
        assert_eq!(found, paths(&["/usr/lib/debug/.build-id/ab/../x.debug"]));
    }
}

//! Decides which files are read as sources, and reads them.
//!
//! A recording is untrusted, and can contain any file names. The contents of a page are passed on with it. So a name is
//! followed only to a file that is certainly the source of a program that this user can run.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use stackweave_files::open_regular_unlinked;

/// Larger files are left out.
pub(super) const MAX_SIZE: u64 = 1 << 20;
/// The maximum number of symbolic links to a file.
const MAX_LINKS: usize = 40;

/// The suffixes of source files.
const SUFFIXES: [&str; 32] = [
    "py", "pyw", "pyi", "pyx", "pxd", "pxi", "c", "h", "cc", "hh", "cpp", "hpp", "cxx", "hxx", "inc", "inl", "ipp",
    "tcc", "cu", "cuh", "m", "mm", "s", "rs", "go", "swift", "f", "f90", "java", "kt", "lua", "ts",
];

/// The file systems of the kernel: they have no sources, and links to open files of the reader.
const KERNEL_FOLDERS: [&str; 3] = ["/proc", "/dev", "/sys"];

/// Returns the text of a source file, its path without links, and its metadata. `user` is the reader.
pub(super) fn read(path: &Path, user: u32) -> Option<(String, PathBuf, Metadata)> {
    let end = end_of(path);
    if !path.is_absolute() || end.as_ref().is_some_and(|end| !SUFFIXES.contains(&end.as_str())) {
        return None;
    }
    let real = resolve(path, user)?;
    // A link with the name of a source may point to a secret.
    if end_of(&real) != end {
        return None;
    }
    let file = open_regular_unlinked(&real).ok()?;
    let metadata = file.metadata().ok()?;
    if metadata.len() > MAX_SIZE || !is_for(&metadata, user) {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(MAX_SIZE + 1).read_to_end(&mut bytes).ok()?;
    let is_script = end.is_some() || metadata.mode() & 0o111 != 0 && bytes.starts_with(b"#!");
    let is_text = !bytes.contains(&0) && bytes.len() as u64 <= MAX_SIZE;
    (is_script && is_text).then(|| (String::from_utf8_lossy(&bytes).into_owned(), real, metadata))
}

fn end_of(path: &Path) -> Option<String> {
    path.extension().map(|end| end.to_string_lossy().to_ascii_lowercase())
}

/// Returns whether a file is the user's own, or readable for everyone. Root can read private files of others.
fn is_for(metadata: &Metadata, user: u32) -> bool {
    metadata.uid() == user || metadata.mode() & 0o004 != 0
}

/// Resolves the links of a path, step by step. `None` if a step leads to a file system of the kernel, or if a link
/// belongs to another user: only the user and root may decide what is read.
fn resolve(path: &Path, user: u32) -> Option<PathBuf> {
    let mut left = names(path)?;
    let (mut real, mut links) = (PathBuf::from("/"), 0);
    while let Some(name) = left.pop_front() {
        if name == ".." {
            real.pop();
            continue;
        }
        real.push(name);
        if KERNEL_FOLDERS.iter().any(|folder| real.starts_with(folder)) {
            return None;
        }
        let metadata = fs::symlink_metadata(&real).ok()?;
        if !metadata.is_symlink() {
            continue;
        }
        links += 1;
        if links > MAX_LINKS || ![0, user].contains(&metadata.uid()) {
            return None;
        }
        let target = fs::read_link(&real).ok()?;
        real.pop();
        if target.is_absolute() {
            real = PathBuf::from("/");
        }
        let mut through = names(&target)?;
        through.append(&mut left);
        left = through;
    }
    Some(real)
}

fn names(path: &Path) -> Option<VecDeque<OsString>> {
    let name = |component: Component<'_>| match component {
        Component::RootDir | Component::CurDir => None,
        Component::ParentDir => Some(Some("..".into())),
        Component::Normal(name) => Some(Some(name.to_owned())),
        Component::Prefix(_) => Some(None),
    };
    path.components().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use stackweave_recording::RecordingOrigin;
    use stackweave_testkit::folder::Folder;

    use super::*;

    fn text(path: &Path) -> Option<String> {
        read(path, RecordingOrigin::here().uid).map(|(text, _, _)| text)
    }

    #[test]
    fn only_sources_are_read() {
        let folder = Folder::new();
        let read = |name: &str, bytes: &[u8]| text(&folder.write(name, bytes));
        assert_eq!(read("a.py", b"x = 1\n").as_deref(), Some("x = 1\n"));
        assert_eq!(read("latin.py", b"# coding: latin-1\n\xe9").as_deref(), Some("# coding: latin-1\n\u{fffd}"));
        assert_eq!(read("id_rsa", b"secret"), None);
        assert_eq!(read("key.pem", b"#!secret"), None);
        assert_eq!(read("results.ipynb", b"{\"outputs\": [\"secret\"]}"), None);
        assert_eq!(read("binary.c", b"a\0b"), None);
        assert_eq!(read("large.py", &vec![b'x'; (MAX_SIZE + 1).try_into().unwrap_or(usize::MAX)]), None);
        assert!(text(folder.path()).is_none() && text(Path::new("<string>")).is_none());
        assert!(text(Path::new("/dev/zero")).is_none() && text(Path::new("a.py")).is_none());
    }

    #[test]
    fn a_script_without_a_suffix_must_be_executable() {
        let folder = Folder::new();
        let script = folder.write("script", b"#!/bin/python\nx");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(text(&script), None);
        fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(text(&script).as_deref(), Some("#!/bin/python\nx"));
    }

    #[test]
    fn links_are_followed_only_to_sources() {
        let folder = Folder::new();
        let real = folder.write("real/a.py", b"x = 1");
        folder.write("id_rsa", b"secret");
        symlink("real", folder.file("folder")).unwrap();
        symlink("../id_rsa", folder.file("real/key.py")).unwrap();
        symlink("a.py", folder.file("real/b.py")).unwrap();
        symlink("loop.py", folder.file("loop.py")).unwrap();
        let through = folder.file("folder/../folder/b.py");
        let (text_read, found, _) = read(&through, RecordingOrigin::here().uid).unwrap();
        assert_eq!((text_read.as_str(), found), ("x = 1", real.canonicalize().unwrap()));
        assert_eq!(text(&folder.file("real/key.py")), None);
        assert_eq!(text(&folder.file("loop.py")), None);
    }

    #[test]
    fn file_systems_of_the_kernel_are_not_read() {
        let folder = Folder::new();
        let file = folder.write("settings.py", b"SECRET_KEY = 1");
        assert!(text(&file).is_some());
        let root = PathBuf::from(format!("/proc/self/root{}", file.display()));
        assert!(root.exists() && text(&root).is_none());
        symlink("/proc/self/root", folder.file("way")).unwrap();
        let way = PathBuf::from(format!("{}{}", folder.file("way").display(), file.display()));
        assert!(way.exists() && text(&way).is_none());
        assert_eq!(text(&PathBuf::from(format!("/tmp/../proc/self/root{}", file.display()))), None);
    }

    #[test]
    fn links_and_private_files_of_other_users_are_not_read() {
        let folder = Folder::new();
        let file = folder.write("a.py", b"x = 1");
        symlink("a.py", folder.file("link.py")).unwrap();
        let other = RecordingOrigin::here().uid + 1;
        assert!(read(&file, other).is_some() && text(&folder.file("link.py")).is_some());
        // For another user, a link of this one is not trusted, unless this one is root.
        assert_eq!(read(&folder.file("link.py"), other).is_some(), RecordingOrigin::here().uid == 0);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(read(&file, other).is_none() && text(&file).is_some());
    }
}

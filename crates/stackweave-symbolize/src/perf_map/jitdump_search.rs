//! Finds the jitdump that a process writes.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::pid_in_container;

/// Returns the paths where the jitdump of process `pid` may be, in order of preference: its mappings, then the
/// usual paths.
pub(super) fn candidates(pid: u32) -> Vec<PathBuf> {
    let maps = std::fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    let mut found = mapped(&String::from_utf8_lossy(&maps));
    let folders = Folders {
        dump: std::env::var_os("JITDUMPDIR").map(PathBuf::from),
        home: std::env::var_os("HOME").map(PathBuf::from),
        current: PathBuf::from(format!("/proc/{pid}/cwd")),
    };
    found.extend(usual_places(pid, &folders));
    if let Some(inner) = pid_in_container(pid) {
        found.push(format!("/proc/{pid}/root/tmp/jit-{inner}.dump").into());
    }
    found
}

struct Folders {
    dump: Option<PathBuf>,
    home: Option<PathBuf>,
    current: PathBuf,
}

fn usual_places(pid: u32, folders: &Folders) -> Vec<PathBuf> {
    let name = format!("jit-{pid}.dump");
    let mut found = Vec::new();
    for folder in [folders.dump.as_deref(), folders.home.as_deref()].into_iter().flatten() {
        found.extend(in_session_folders(&folder.join(".debug/jit"), &name));
    }
    found.extend([folders.current.join(&name), Path::new("/tmp").join(&name)]);
    found
}

/// Returns the files with this name in `folder` and in its subfolders, which belong to one run each; newest first.
fn in_session_folders(folder: &Path, name: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let below = entries.filter_map(|entry| Some(entry.ok()?.path().join(name)));
    let written = |path: PathBuf| Some((path.metadata().ok()?.modified().ok()?, path));
    let mut found: Vec<(SystemTime, PathBuf)> = below.chain([folder.join(name)]).filter_map(written).collect();
    found.sort_by(|one, other| other.cmp(one));
    found.into_iter().map(|(_, path)| path).collect()
}

/// Returns the jitdumps in `/proc/PID/maps`: a process maps its own as executable, so that `perf` finds it.
fn mapped(maps: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for line in maps.lines() {
        let Some(slash) = line.find('/') else { continue };
        let (fields, path) = line.split_at(slash);
        let is_executable = fields.split_whitespace().nth(1).is_some_and(|rights| rights.contains('x'));
        let path = PathBuf::from(path);
        if is_executable && path.file_name().is_some_and(is_dump_name) && !found.contains(&path) {
            found.push(path);
        }
    }
    found
}

/// Returns whether this is `jit-PID.dump`. The pid may be from a different namespace.
fn is_dump_name(name: &OsStr) -> bool {
    let pid = name.to_str().and_then(|name| name.strip_prefix("jit-")?.strip_suffix(".dump"));
    pid.is_some_and(|pid| !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_folder::TestFolder;

    #[test]
    fn a_dump_that_is_mapped_as_executable_is_found() {
        let maps = "\
            55d0a000-55d0b000 r-xp 00000000 08:01 17 /usr/bin/python3\n\
            7f01000-7f02000 r--p 00000000 08:01 18 /tmp/jit-7.dump\n\
            7f02000-7f03000 r-xp 00000000 08:01 19 /a folder/jit-12.dump\n\
            7f02000-7f03000 r-xp 00000000 08:01 19 /a folder/jit-12.dump\n\
            7f03000-7f04000 r-xp 00000000 08:01 20 /tmp/jit-x.dump\n\
            7f04000-7f05000 r-xp 00000000 00:00 0\n\
            7f05000-7f06000 r-xp 00000000 00:00 0 [vdso]\n";
        assert_eq!(mapped(maps), [PathBuf::from("/a folder/jit-12.dump")]);
        assert!(mapped("").is_empty());
        assert!(mapped("/\n//\n x /jit-1.dump").is_empty());
    }

    #[test]
    fn usual_paths_are_in_order_and_the_newest_run_is_first() {
        let folder = TestFolder::new();
        let home = folder.path().join("home");
        for run in ["java-1", "java-2"] {
            let folder = home.join(".debug/jit").join(run);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("jit-42.dump"), run).unwrap();
        }
        let older = std::fs::File::options().write(true).open(home.join(".debug/jit/java-1/jit-42.dump")).unwrap();
        older.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        let folders = Folders { dump: None, home: Some(home.clone()), current: "/proc/42/cwd".into() };
        let expected = [
            home.join(".debug/jit/java-2/jit-42.dump"),
            home.join(".debug/jit/java-1/jit-42.dump"),
            "/proc/42/cwd/jit-42.dump".into(),
            "/tmp/jit-42.dump".into(),
        ];
        assert_eq!(usual_places(42, &folders), expected);
    }

    #[test]
    fn a_missing_process_has_only_usual_paths() {
        assert!(candidates(u32::MAX).contains(&format!("/tmp/jit-{}.dump", u32::MAX).into()));
    }
}

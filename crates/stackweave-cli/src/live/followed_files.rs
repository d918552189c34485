//! The files of a recording: that of the program, and those of the processes that it forks.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use stackweave_recording::file::ProcessStart;
use stackweave_recording::read::{FileChange, Follower};
use stackweave_recording::{OpenError, ProcessRecording};

use super::figures::ProcessCounts;
use crate::failure::Failure;

/// The suffix of recordings.
const SUFFIX: &str = ".swv";
/// A file that has not grown for this time is considered complete: an active program writes five times per second.
const STILL: Duration = Duration::from_millis(1200);

/// All files of a recording that grows.
#[derive(Debug)]
pub(super) struct Files {
    path: PathBuf,
    /// The device and inode of an older file that the recording will replace, and that is not shown.
    old: Option<(u64, u64)>,
    pub(super) followed: Vec<Followed>,
    /// The last remark about one of the files.
    pub(super) remark: Option<String>,
}

/// A file, with the figures of each process in it.
#[derive(Debug)]
pub(super) struct Followed {
    follower: Follower,
    pub(super) figures: Vec<ProcessCounts>,
    pub(super) bytes: u64,
    /// The time at which the file grew last.
    grown: Instant,
}

impl Files {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), old: None, followed: Vec::new(), remark: None }
    }

    /// Ignores the file with this device and inode, and waits for the one that replaces it.
    pub(super) fn instead_of(path: &Path, old: Option<(u64, u64)>) -> Self {
        Self { old, ..Self::new(path) }
    }

    /// Reads what was written since the last call.
    pub(super) fn read_new(&mut self) -> Result<(), Failure> {
        self.open_new()?;
        let mut index = 0;
        while let Some(file) = self.followed.get_mut(index) {
            let look = file.follower.update().map_err(Failure::new)?;
            if let Some(changed) = look.changed {
                // The path now has another file, or none.
                self.reopen(index, changed)?;
                continue;
            }
            index += 1;
            if look.new_bytes > 0 {
                file.grown = Instant::now();
            }
            file.bytes = look.file_bytes;
            let known = file.figures.len();
            file.figures.extend(file.follower.processes()[known..].iter().map(ProcessCounts::new));
        }
        Ok(())
    }

    /// Returns every process with its figures.
    pub(super) fn processes(&self) -> impl Iterator<Item = (&ProcessRecording, &ProcessCounts)> {
        self.followed.iter().flat_map(|file| file.follower.processes().iter().zip(&file.figures))
    }

    /// Returns the figures of the process with this start, if one of the files still has it.
    pub(super) fn figures_of(&mut self, start: &ProcessStart) -> Option<&mut ProcessCounts> {
        let mut all = self.followed.iter_mut().flat_map(Followed::processes_mut);
        all.find(|(process, _)| process.start() == start).map(|(_, figures)| figures)
    }

    fn open_new(&mut self) -> Result<(), Failure> {
        if self.followed.is_empty() {
            if self.old.is_some() && identity(&self.path) == self.old {
                return Ok(());
            }
            match Follower::open(&self.path) {
                Ok(follower) => self.followed.push(Followed::new(follower)),
                Err(OpenError::NotFound(_)) => {}
                Err(OpenError::NotAFile(path)) if path.is_dir() => {
                    let path = path.display();
                    return Err(Failure::new(format!("{path} is a folder; live follows one file that grows")));
                }
                Err(error) => return Err(Failure::new(error)),
            }
            return Ok(());
        }
        let Some(first) = self.first_start() else { return Ok(()) };
        for path in forked(&self.path) {
            let is_known = self.followed.iter().any(|file| file.follower.path() == path);
            if is_known {
                continue;
            }
            // A file that can't be read yet is tried again.
            let Ok(mut follower) = Follower::open(&path) else { continue };
            let is_of_run = |process: &ProcessRecording| is_same_run(process.start(), &first);
            if follower.update().is_ok() && follower.processes().first().is_some_and(is_of_run) {
                self.followed.push(Followed::new(follower));
            }
        }
        Ok(())
    }

    /// Returns the start of the program's own recording.
    fn first_start(&self) -> Option<ProcessStart> {
        Some(self.followed.first()?.follower.processes().first()?.start().clone())
    }

    fn reopen(&mut self, index: usize, changed: FileChange) -> Result<(), Failure> {
        let path = self.followed[index].follower.path().to_owned();
        let change = match changed {
            FileChange::Cut => "was truncated",
            FileChange::Replaced => "was replaced",
        };
        self.remark = Some(format!("{} {change}: it is read from the start again.", path.display()));
        if index == 0 {
            self.followed.clear();
            return self.open_new();
        }
        self.followed.remove(index);
        Ok(())
    }
}

impl Followed {
    fn new(follower: Follower) -> Self {
        Self { follower, figures: Vec::new(), bytes: 0, grown: Instant::now() }
    }

    /// Returns whether the file has not grown for so long that it is complete.
    pub(super) fn is_still(&self) -> bool {
        self.grown.elapsed() >= STILL
    }

    /// Returns every process with its figures.
    pub(super) fn processes_mut(&mut self) -> impl Iterator<Item = (&ProcessRecording, &mut ProcessCounts)> {
        self.follower.processes().iter().zip(&mut self.figures)
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|data| (data.dev(), data.ino()))
}

/// Returns whether a process belongs to the same run as the first one; without a recorded parent, older ones do not.
fn is_same_run(start: &ProcessStart, first: &ProcessStart) -> bool {
    match (start.run(), first.run()) {
        (Some(run), Some(first)) => run == first,
        _ => start.started_wall_ns >= first.started_wall_ns,
    }
}

/// Finds `out.<pid>.swv` beside `out.swv`.
fn forked(path: &Path) -> Vec<PathBuf> {
    let Some(stem) = path.file_name().and_then(|name| name.to_str()?.strip_suffix(SUFFIX)) else { return Vec::new() };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let is_forked = |name: &str| {
        let number = name.strip_prefix(stem).and_then(|rest| rest.strip_prefix('.')?.strip_suffix(SUFFIX));
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_str().is_some_and(is_forked))
        .map(|entry| path.with_file_name(entry.file_name()))
        .collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use stackweave_recording::file::Encoder;
    use stackweave_store::StackTable;
    use stackweave_testkit::folder::Folder;

    use super::*;

    #[test]
    fn an_older_file_is_neither_shown_nor_changed() {
        let folder = Folder::new();
        let path = folder.write("out.swv", b"old");
        let mut files = Files::instead_of(&path, identity(&path));
        files.read_new().unwrap();
        assert!(files.followed.is_empty());
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        std::fs::rename(folder.write("new.swv", b""), &path).unwrap();
        files.read_new().unwrap();
        assert_eq!(files.followed.len(), 1);
    }

    #[test]
    fn files_of_forked_processes_have_numbers() {
        let folder = Folder::new();
        for name in ["out.swv", "out.12.swv", "out.7.swv", "out.x1.swv", "out.12.txt", "other.3.swv", "out..swv"] {
            folder.write(name, b"");
        }
        let names =
            |path: &Path| forked(path).iter().map(|path| path.file_name().unwrap().to_owned()).collect::<Vec<_>>();
        assert_eq!(names(&folder.path().join("out.swv")), ["out.12.swv", "out.7.swv"]);
        assert!(names(&folder.path().join("out")).is_empty());
    }

    #[test]
    fn a_missing_file_is_awaited_and_a_file_of_another_kind_is_refused() {
        let folder = Folder::new();
        let path = folder.path().join("out.swv");
        let mut files = Files::new(&path);
        files.read_new().unwrap();
        assert!(files.followed.is_empty());
        std::fs::write(&path, b"").unwrap();
        files.read_new().unwrap();
        assert_eq!((files.followed.len(), files.processes().count()), (1, 0));
        let other = folder.write("other.swv", b"ncalls tottime");
        assert!(Files::new(&other).read_new().is_err());
        let message = Files::new(folder.path()).read_new().unwrap_err().to_string();
        assert!(message.ends_with(" is a folder; live follows one file that grows"), "{message}");
    }

    #[test]
    fn processes_are_found_by_their_start_until_the_file_is_replaced() {
        static STACKS: StackTable = StackTable::new();
        let folder = Folder::new();
        let [first, child, second] = [(1, 10), (2, 20), (1, 30)].map(|(pid, started_wall_ns)| ProcessStart {
            pid,
            started_wall_ns,
            ..ProcessStart::default()
        });
        let begun = |start: &ProcessStart| {
            let mut bytes = Vec::new();
            Encoder::new(&STACKS).start(start, &mut bytes);
            bytes
        };
        let path = folder.write("out.swv", &begun(&first));
        let mut files = Files::new(&path);
        files.read_new().unwrap();
        folder.write("out.2.swv", &begun(&child));
        files.read_new().unwrap();
        let found = |files: &mut Files| [&first, &child, &second].map(|start| files.figures_of(start).is_some());
        assert_eq!(found(&mut files), [true, true, false]);
        std::fs::rename(folder.write("new.swv", &begun(&second)), &path).unwrap();
        files.read_new().unwrap();
        files.read_new().unwrap();
        assert_eq!(found(&mut files), [false, false, true]);
        assert!(files.remark.is_some_and(|remark| remark.contains("was replaced")));
    }
}

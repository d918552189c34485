//! What `/proc` tells of a process and of its threads.

use std::fs;
use std::path::PathBuf;

use crate::refusal::{CantRead, Guard};

/// A process that can be looked at, as far as `/proc` knows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process {
    pub(crate) number: u32,
}

/// A thread as the kernel knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) number: u32,
    pub(crate) name: String,
    pub(crate) state: char,
}

impl Process {
    /// The process with this number, which may also be that of one of its threads.
    pub(crate) fn find(number: u32) -> Result<Self, CantRead> {
        let status = fs::read(format!("/proc/{number}/status")).map_err(|_| CantRead::NoProcess(number))?;
        let status = String::from_utf8_lossy(&status);
        let number = field(&status, "Tgid").and_then(|group| group.parse().ok()).unwrap_or(number);
        if number == std::process::id() {
            return Err(CantRead::Own(number));
        }
        if matches!(field(&status, "State").and_then(|state| state.chars().next()), Some('Z' | 'X')) {
            return Err(CantRead::Ended(number));
        }
        // Only programs have memory of their own.
        if field(&status, "VmSize").is_none() {
            return Err(CantRead::Kernel(number));
        }
        let process = Self { number };
        match process.is_narrow() {
            Some(true) => Err(CantRead::Narrow(number)),
            _ => Ok(process),
        }
    }

    /// Its threads, by number. None once it is gone.
    pub(crate) fn tasks(self) -> Vec<u32> {
        let entries = fs::read_dir(self.file("task")).into_iter().flatten().flatten();
        let mut tasks: Vec<u32> =
            entries.filter_map(|entry| entry.file_name().to_str().and_then(|name| name.parse().ok())).collect();
        tasks.sort_unstable();
        tasks
    }

    /// One of its threads; `None` once it has ended.
    pub(crate) fn task(self, number: u32) -> Option<Task> {
        let stat = fs::read(self.file(&format!("task/{number}/stat"))).ok()?;
        let stat = String::from_utf8_lossy(&stat);
        // The name stands in brackets, and may hold any character, brackets too.
        let (head, rest) = stat.rsplit_once(')')?;
        let (_, name) = head.split_once('(')?;
        Some(Task { number, name: name.to_owned(), state: rest.trim_start().chars().next()? })
    }

    /// The words that it was started with.
    pub(crate) fn command_line(self) -> Vec<String> {
        let words = fs::read(self.file("cmdline")).unwrap_or_default();
        let words = words.strip_suffix(b"\0").unwrap_or(&words);
        if words.is_empty() {
            return Vec::new();
        }
        words.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
    }

    /// Why the system refused to let it be traced.
    pub(crate) fn refusal(self, error: i32) -> CantRead {
        let process = self.number;
        match error {
            libc::ESRCH => CantRead::NoProcess(process),
            libc::EPERM | libc::EACCES => match self.tracer() {
                Some(by) => CantRead::Traced { process, by },
                None => CantRead::NotAllowed { process, by: self.guard() },
            },
            _ => CantRead::System { process, said: std::io::Error::from_raw_os_error(error).to_string() },
        }
    }

    /// Who traces it.
    fn tracer(self) -> Option<u32> {
        let status = fs::read(self.file("status")).ok()?;
        field(&String::from_utf8_lossy(&status), "TracerPid")?.parse().ok().filter(|tracer| *tracer != 0)
    }

    fn guard(self) -> Guard {
        let own = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let other = fs::read(self.file("status")).unwrap_or_default();
        let other = String::from_utf8_lossy(&other);
        let user = |status: &str| field(status, "Uid").and_then(|ids| ids.split_whitespace().nth(1).map(str::to_owned));
        let is_root = user(&own).as_deref() == Some("0");
        let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok();
        let scope: u8 = scope.and_then(|scope| scope.trim().parse().ok()).unwrap_or(0);
        let capabilities = field(&own, "CapEff").and_then(|set| u64::from_str_radix(set, 16).ok()).unwrap_or(0);
        let namespace = |file| fs::read_link(file).ok();
        let own_namespace = namespace(PathBuf::from("/proc/self/ns/user"));
        let is_elsewhere = namespace(self.file("ns/user")).is_some_and(|other| Some(other) != own_namespace);
        let asker = match (is_root, capabilities >> SYS_PTRACE & 1 == 1) {
            (true, true) => Asker::Root,
            (true, false) => Asker::LimitedRoot,
            (false, _) => Asker::User,
        };
        Facts { asker, is_own: user(&own) == user(&other), is_elsewhere, scope }.guard()
    }

    /// Whether its program is for 32-bit processors.
    fn is_narrow(self) -> Option<bool> {
        use std::io::Read as _;
        let mut head = [0; 5];
        stackweave_files::open_regular(&self.file("exe")).ok()?.read_exact(&mut head).ok()?;
        Some(head.starts_with(b"\x7fELF") && head[4] == 1)
    }

    /// A file of `/proc` about it.
    pub(crate) fn file(self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{name}", self.number))
    }
}

/// Who wants to look into a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asker {
    Root,
    /// Root without the capability to trace any process.
    LimitedRoot,
    User,
}

/// What decides who may look into a process.
#[derive(Clone, Copy, Debug)]
struct Facts {
    asker: Asker,
    /// Whether the process is of the same user.
    is_own: bool,
    /// Whether it is known to be in another user namespace.
    is_elsewhere: bool,
    /// Yama's.
    scope: u8,
}

impl Facts {
    /// Who forbade it.
    fn guard(self) -> Guard {
        let Self { asker, is_own, is_elsewhere, scope } = self;
        match scope {
            _ if asker == Asker::LimitedRoot => Guard::Container,
            3.. => Guard::Yama(scope),
            _ if is_elsewhere => Guard::Namespace,
            _ if asker == Asker::Root => Guard::OtherForRoot,
            _ if !is_own => Guard::Owner,
            1 | 2 => Guard::Yama(scope),
            _ => Guard::Other,
        }
    }
}

/// The number of the capability to trace any process.
const SYS_PTRACE: u32 = 19;

/// What a file such as `/proc/self/status` has under this name.
fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_the_way_fits_who_asks() {
        let root = Facts { asker: Asker::Root, is_own: true, is_elsewhere: false, scope: 0 };
        let user = Facts { asker: Asker::User, ..root };
        for (facts, expected) in [
            (root, Guard::OtherForRoot),
            (Facts { is_own: false, scope: 1, ..root }, Guard::OtherForRoot),
            (Facts { asker: Asker::LimitedRoot, ..root }, Guard::Container),
            (Facts { is_elsewhere: true, ..root }, Guard::Namespace),
            (Facts { scope: 3, ..root }, Guard::Yama(3)),
            (user, Guard::Other),
            (Facts { is_own: false, ..user }, Guard::Owner),
            (Facts { is_elsewhere: true, is_own: false, ..user }, Guard::Namespace),
            (Facts { scope: 1, ..user }, Guard::Yama(1)),
            (Facts { scope: 2, ..user }, Guard::Yama(2)),
        ] {
            assert_eq!(facts.guard(), expected, "{facts:?}");
        }
    }

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let status = "Name:\tcat\nState:\tS (sleeping)\nTgid:\t12\nNStgid:\t12\t1\n";
        assert_eq!(field(status, "State"), Some("S (sleeping)"));
        assert_eq!(field(status, "Tgid"), Some("12"));
        assert_eq!(field(status, "gid"), None);
    }

    #[test]
    fn this_process_the_kernels_and_none_are_told_apart() {
        let own = std::process::id();
        assert_eq!(Process::find(own).unwrap_err(), CantRead::Own(own));
        assert_eq!(Process::find(u32::MAX).unwrap_err(), CantRead::NoProcess(u32::MAX));
        let task = Process { number: own }.task(own).unwrap();
        assert_eq!((task.number, task.name.is_empty()), (own, false));
        assert!(Process { number: own }.tasks().contains(&own));
    }
}

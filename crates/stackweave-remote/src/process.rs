//! Reads the facts that `/proc` reports about a process and its threads.

use std::fs;
use std::path::PathBuf;

use crate::error::{AccessRestriction, InspectionError};

/// A process in `/proc`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process {
    pub(crate) number: u32,
}

/// A thread as the kernel describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) number: u32,
    pub(crate) name: String,
    pub(crate) state: char,
}

impl Process {
    /// Finds the process with this id, which may also be the id of one of its threads.
    pub(crate) fn find(number: u32) -> Result<Self, InspectionError> {
        let status = fs::read(format!("/proc/{number}/status")).map_err(|_| InspectionError::NoProcess(number))?;
        let status = String::from_utf8_lossy(&status);
        let number = field(&status, "Tgid").and_then(|group| group.parse().ok()).unwrap_or(number);
        if number == std::process::id() {
            return Err(InspectionError::Own(number));
        }
        if matches!(field(&status, "State").and_then(|state| state.chars().next()), Some('Z' | 'X')) {
            return Err(InspectionError::Ended(number));
        }
        // Only programs have their own memory.
        if field(&status, "VmSize").is_none() {
            return Err(InspectionError::Kernel(number));
        }
        let process = Self { number };
        match process.is_32_bit() {
            Some(true) => Err(InspectionError::Program32Bit(number)),
            _ => Ok(process),
        }
    }

    /// Returns the ids of its threads, sorted. There are none after it has ended.
    pub(crate) fn tasks(self) -> Vec<u32> {
        let entries = fs::read_dir(self.file("task")).into_iter().flatten().flatten();
        let mut tasks: Vec<u32> =
            entries.filter_map(|entry| entry.file_name().to_str().and_then(|name| name.parse().ok())).collect();
        tasks.sort_unstable();
        tasks
    }

    /// Returns one of its threads; `None` after it has ended.
    pub(crate) fn task(self, number: u32) -> Option<Task> {
        let stat = fs::read(self.file(&format!("task/{number}/stat"))).ok()?;
        let stat = String::from_utf8_lossy(&stat);
        // The name is in parentheses, and may contain any characters, including parentheses.
        let (head, rest) = stat.rsplit_once(')')?;
        let (_, name) = head.split_once('(')?;
        Some(Task { number, name: name.to_owned(), state: rest.trim_start().chars().next()? })
    }

    /// Returns its command line.
    pub(crate) fn command_line(self) -> Vec<String> {
        let words = fs::read(self.file("cmdline")).unwrap_or_default();
        let words = words.strip_suffix(b"\0").unwrap_or(&words);
        if words.is_empty() {
            return Vec::new();
        }
        words.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
    }

    /// Returns why the system refused to trace it.
    pub(crate) fn trace_error(self, error: i32) -> InspectionError {
        let process = self.number;
        match error {
            libc::ESRCH => InspectionError::NoProcess(process),
            libc::EPERM | libc::EACCES => match self.tracer() {
                Some(by) => InspectionError::Traced { process, by },
                None => InspectionError::NotAllowed { process, by: self.restriction() },
            },
            _ => InspectionError::System { process, reason: std::io::Error::from_raw_os_error(error).to_string() },
        }
    }

    /// Returns the id of its tracer.
    fn tracer(self) -> Option<u32> {
        let status = fs::read(self.file("status")).ok()?;
        field(&String::from_utf8_lossy(&status), "TracerPid")?.parse().ok().filter(|tracer| *tracer != 0)
    }

    fn restriction(self) -> AccessRestriction {
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
        let is_in_other_namespace = namespace(self.file("ns/user")).is_some_and(|other| Some(other) != own_namespace);
        let inspector = match (is_root, capabilities >> SYS_PTRACE & 1 == 1) {
            (true, true) => Inspector::Root,
            (true, false) => Inspector::LimitedRoot,
            (false, _) => Inspector::User,
        };
        AccessFacts { inspector, is_own: user(&own) == user(&other), is_in_other_namespace, scope }.restriction()
    }

    /// Returns whether it runs a 32-bit program.
    fn is_32_bit(self) -> Option<bool> {
        use std::io::Read as _;
        let mut head = [0; 5];
        stackweave_files::open_regular(&self.file("exe")).ok()?.read_exact(&mut head).ok()?;
        Some(head.starts_with(b"\x7fELF") && head[4] == 1)
    }

    /// Returns the path of a file in its `/proc` folder.
    pub(crate) fn file(self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{name}", self.number))
    }
}

/// The user who inspects a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Inspector {
    Root,
    /// Root without the capability to trace any process.
    LimitedRoot,
    User,
}

/// The facts that determine whether a process may be inspected.
#[derive(Clone, Copy, Debug)]
struct AccessFacts {
    inspector: Inspector,
    /// Whether the process belongs to the same user.
    is_own: bool,
    /// Whether it is known to be in a different user namespace.
    is_in_other_namespace: bool,
    /// The value of Yama's `ptrace_scope`.
    scope: u8,
}

impl AccessFacts {
    /// Returns what forbids the inspection.
    fn restriction(self) -> AccessRestriction {
        let Self { inspector, is_own, is_in_other_namespace, scope } = self;
        match scope {
            _ if inspector == Inspector::LimitedRoot => AccessRestriction::Container,
            3.. => AccessRestriction::Yama(scope),
            _ if is_in_other_namespace => AccessRestriction::Namespace,
            _ if inspector == Inspector::Root => AccessRestriction::OtherForRoot,
            _ if !is_own => AccessRestriction::Owner,
            1 | 2 => AccessRestriction::Yama(scope),
            _ => AccessRestriction::Other,
        }
    }
}

/// The number of the capability to trace any process.
const SYS_PTRACE: u32 = 19;

/// Returns a field of a file such as `/proc/self/status`.
fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_restriction_matches_the_inspecting_user() {
        let root = AccessFacts { inspector: Inspector::Root, is_own: true, is_in_other_namespace: false, scope: 0 };
        let user = AccessFacts { inspector: Inspector::User, ..root };
        for (facts, expected) in [
            (root, AccessRestriction::OtherForRoot),
            (AccessFacts { is_own: false, scope: 1, ..root }, AccessRestriction::OtherForRoot),
            (AccessFacts { inspector: Inspector::LimitedRoot, ..root }, AccessRestriction::Container),
            (AccessFacts { is_in_other_namespace: true, ..root }, AccessRestriction::Namespace),
            (AccessFacts { scope: 3, ..root }, AccessRestriction::Yama(3)),
            (user, AccessRestriction::Other),
            (AccessFacts { is_own: false, ..user }, AccessRestriction::Owner),
            (AccessFacts { is_in_other_namespace: true, is_own: false, ..user }, AccessRestriction::Namespace),
            (AccessFacts { scope: 1, ..user }, AccessRestriction::Yama(1)),
            (AccessFacts { scope: 2, ..user }, AccessRestriction::Yama(2)),
        ] {
            assert_eq!(facts.restriction(), expected, "{facts:?}");
        }
    }

    #[test]
    fn fields_are_found_by_their_full_name() {
        let status = "Name:\tcat\nState:\tS (sleeping)\nTgid:\t12\nNStgid:\t12\t1\n";
        assert_eq!(field(status, "State"), Some("S (sleeping)"));
        assert_eq!(field(status, "Tgid"), Some("12"));
        assert_eq!(field(status, "gid"), None);
    }

    #[test]
    fn this_process_kernel_threads_and_missing_processes_are_distinguished() {
        let own = std::process::id();
        assert_eq!(Process::find(own).unwrap_err(), InspectionError::Own(own));
        assert_eq!(Process::find(u32::MAX).unwrap_err(), InspectionError::NoProcess(u32::MAX));
        let task = Process { number: own }.task(own).unwrap();
        assert_eq!((task.number, task.name.is_empty()), (own, false));
        assert!(Process { number: own }.tasks().contains(&own));
    }
}

//! The threads of this process, as the kernel lists them. Async-signal-safe.

use core::ffi::c_int;

use crate::platform::raw_files::{Path, RawFile, SCRATCH};

/// Returns the id of the calling thread.
pub(crate) fn own() -> c_int {
    // SAFETY: `gettid` has no preconditions.
    unsafe { libc::syscall(libc::SYS_gettid) as c_int }
}

/// Sends a signal to one thread of this process. With signal 0, only checks that the thread exists.
pub(crate) fn send(process: c_int, task: c_int, signal: c_int) -> bool {
    // SAFETY: takes only numbers. Callers that pass a signal have made sure that it has a handler.
    unsafe { libc::syscall(libc::SYS_tgkill, process, task, signal) == 0 }
}

/// Returns whether a thread of this process has this id.
pub(crate) fn exists(process: c_int, task: c_int) -> bool {
    send(process, task, 0)
}

/// The offsets of the name and of the length in a `struct linux_dirent64`.
const NAME: usize = 19;
const LENGTH: usize = 16;

/// Calls `each` with each thread. Fails with an error number if they cannot be listed.
pub(crate) fn for_each(scratch: &mut [u8; SCRATCH], mut each: impl FnMut(c_int)) -> Result<(), c_int> {
    let mut folder = RawFile::open(c"/proc/self/task")?;
    loop {
        let mut entries = folder.read_entries(scratch)?;
        if entries.is_empty() {
            return Ok(());
        }
        while let Some(length) = entries.get(LENGTH..LENGTH + 2) {
            let length = usize::from(u16::from_ne_bytes([length[0], length[1]]));
            let name = entries.get(NAME..length).unwrap_or_default();
            if let Some(task) = number(name) {
                each(task);
            }
            entries = entries.get(length.max(NAME)..).unwrap_or_default();
        }
    }
}

/// Parses a decimal number up to the first other byte.
fn number(text: &[u8]) -> Option<c_int> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    str::from_utf8(&text[..digits]).ok()?.parse().ok()
}

/// The kernel's status of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskStatus {
    /// `R`, `S`, `D`, `T` and so on.
    pub(crate) state: u8,
    /// Whether it blocks the signal.
    pub(crate) is_blocked: bool,
    /// Whether the signal is pending.
    pub(crate) is_pending: bool,
}

impl TaskStatus {
    /// Reads the status; `None` if there is no such thread.
    pub(crate) fn of(task: c_int, signal: c_int) -> Option<Self> {
        let mut buffer = [0; 2048];
        let text = read(task, "status", &mut buffer)?;
        let bit = 1_u64 << (signal - 1);
        let has = |field| hexadecimal(field_of(text, field)).is_some_and(|signals| signals & bit != 0);
        let state = field_of(text, b"\nState:\t").first().copied()?;
        if matches!(state, b'Z' | b'X') {
            return None;
        }
        Some(Self { state, is_blocked: has(b"\nSigBlk:\t"), is_pending: has(b"\nSigPnd:\t") })
    }
}

fn field_of<'a>(text: &'a [u8], name: &[u8]) -> &'a [u8] {
    let start = text.windows(name.len()).position(|window| window == name);
    start.and_then(|start| text.get(start + name.len()..)).unwrap_or_default()
}

fn hexadecimal(text: &[u8]) -> Option<u64> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    u64::from_str_radix(str::from_utf8(&text[..digits]).ok()?, 16).ok()
}

/// Returns the name of a thread, at most 15 bytes.
pub(crate) fn name(task: c_int, buffer: &mut [u8; 64]) -> &str {
    let name = read(task, "comm", buffer).unwrap_or_default();
    let name = name.strip_suffix(b"\n").unwrap_or(name);
    str::from_utf8(name).unwrap_or("?")
}

fn read<'a>(task: c_int, file: &str, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    let path = Path::new(format_args!("/proc/self/task/{task}/{file}"))?;
    let length = RawFile::open(path.as_c_str()?).ok()?.read(buffer).ok()?;
    buffer.get(..length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_lists_this_thread_and_its_blocked_signals() {
        let mut tasks = Vec::new();
        for_each(&mut [0; SCRATCH], |task| tasks.push(task)).unwrap();
        assert!(tasks.contains(&own()) && !tasks.contains(&0));
        let status = TaskStatus::of(own(), libc::SIGUSR2).unwrap();
        assert_eq!(status, TaskStatus { state: b'R', is_blocked: false, is_pending: false });
        // SAFETY: a set of the right size, blocked on this thread only.
        unsafe {
            let mut set: libc::sigset_t = core::mem::zeroed();
            libc::sigaddset(&raw mut set, libc::SIGUSR2);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, core::ptr::null_mut());
            assert!(TaskStatus::of(own(), libc::SIGUSR2).unwrap().is_blocked);
            libc::raise(libc::SIGUSR2);
            assert!(TaskStatus::of(own(), libc::SIGUSR2).unwrap().is_pending);
            assert!(!TaskStatus::of(own(), libc::SIGUSR1).unwrap().is_blocked);
            let mut taken = 0;
            libc::sigwait(&raw const set, &raw mut taken);
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, core::ptr::null_mut());
        }
        assert_eq!(TaskStatus::of(c_int::MAX, libc::SIGUSR2), None);
    }

    #[test]
    fn names_are_those_of_the_threads() {
        let named = std::thread::Builder::new().name("a name".into()).spawn(|| {
            assert_eq!(name(own(), &mut [0; 64]), "a name");
        });
        named.unwrap().join().unwrap();
    }
}

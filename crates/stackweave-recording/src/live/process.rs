//! The description of the process in its recording's Start, from the system.

use std::{env, fs, process};

use super::options::RecorderOptions;
use crate::clock::{Clock, ClockPoint};
use crate::file::{ProcessStart, RecordingMode};
use crate::origin::RecordingOrigin;

const COMMAND_LINE: &str = "/proc/self/cmdline";

/// Returns the Start of this process's recording.
pub(super) fn start(
    options: &RecorderOptions,
    clock: &Clock,
    first: &ClockPoint,
    forked_from: Option<u32>,
) -> ProcessStart {
    let executable = env::current_exe().map(|path| path.to_string_lossy().into_owned());
    let when_full = format!("{:?}", options.when_full).to_lowercase();
    let mut values = vec![
        ("memory".to_owned(), options.memory.to_string()),
        ("when-full".to_owned(), when_full),
        ("flush-every-us".to_owned(), options.flush_every.as_micros().to_string()),
    ];
    values.extend(options.run.map(|run| (ProcessStart::RUN.to_owned(), format!("{run:016x}"))));
    values.extend(options.extra.iter().map(|(name, value)| (name.clone(), value.clone())));
    let origin = RecordingOrigin::here();
    ProcessStart {
        pid: process::id(),
        parent_pid: std::os::unix::process::parent_id(),
        host: origin.host,
        boot_id: origin.boot_id,
        machine: origin.machine,
        uid: Some(origin.uid),
        executable: executable.unwrap_or_default(),
        command_line: command_line(),
        python: options.python.clone(),
        stackweave_version: env!("CARGO_PKG_VERSION").to_owned(),
        started_wall_ns: first.wall_ns,
        started_monotonic_ns: first.monotonic_ns,
        clock: clock.source(),
        ticks_per_second: clock.ticks_per_second(),
        thread: 0,
        forked_from,
        mode: if options.ring.is_some() { RecordingMode::Ring } else { RecordingMode::Whole },
        options: values,
    }
}

/// Returns the system's name of a thread of this process; `None` if the thread has ended.
pub(super) fn thread_name(tid: u32) -> Option<String> {
    let name = fs::read(format!("/proc/self/task/{tid}/comm")).ok()?;
    Some(String::from_utf8_lossy(&name).trim_end_matches('\n').to_owned())
}

fn command_line() -> Vec<String> {
    let bytes = fs::read(COMMAND_LINE).unwrap_or_default();
    let arguments = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
    if arguments.is_empty() {
        return Vec::new();
    }
    arguments.split(|byte| *byte == 0).map(|argument| String::from_utf8_lossy(argument).into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_describes_this_process() {
        let (clock, first) = Clock::start();
        let mut options = RecorderOptions::new("x.swv");
        options.extra.insert("task".to_owned(), "test".to_owned());
        let start = start(&options, &clock, &first, Some(7));
        assert_eq!((start.pid, start.forked_from, start.mode), (process::id(), Some(7), RecordingMode::Whole));
        let arguments: Vec<String> = env::args().collect();
        assert_eq!(start.command_line, arguments);
        assert!(RecordingOrigin::here().has_made(&start) && start.ticks_per_second > 0);
        assert!(start.options.contains(&("task".to_owned(), "test".to_owned())));
    }

    #[test]
    fn threads_have_the_names_of_the_system() {
        let named = std::thread::Builder::new().name("some worker".to_owned());
        // SAFETY: has no conditions.
        let thread = named.spawn(|| thread_name(unsafe { libc::gettid() }.unsigned_abs())).unwrap();
        assert_eq!(thread.join().unwrap().as_deref(), Some("some worker"));
        assert_eq!(thread_name(u32::MAX), None);
    }
}

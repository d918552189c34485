//! The options of a recording.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::clock::ClockSource;

/// The options and the destination of a recording.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "the options are independent")]
pub struct RecorderOptions {
    /// The file. The files of forked children are beside it: `out.swv` and `out.4242.swv`.
    pub path: PathBuf,
    /// The maximum size of full buffers that wait for the writer, of all threads together. Each recording thread has 64 KiB in
    /// addition.
    pub memory: usize,
    /// The behaviour when they are full.
    pub when_full: WhenFull,
    /// Keep only the last events, in memory, until they are dumped.
    pub ring: Option<RingLimits>,
    /// In ring mode: dump when the recording stops, or the process exits.
    pub dump_at_exit: bool,
    /// The interval at which everything is written to the file: the maximum that `kill -9` can lose.
    pub flush_every: Duration,
    /// Whether a forked child is recorded, too, to its own file.
    pub follow_forks: bool,
    /// Whether programs that this one starts can join the recording by
    /// [`Recorder::from_environment`](super::Recorder::from_environment).
    pub subprocesses: bool,
    /// Whether threads wait for a buffer outside of the process's [`Waiter`](super::Waiter): a thread that records in the middle of
    /// an allocation can't release an interpreter's lock.
    pub bypass_waiter: bool,
    /// Whether SIGTERM and SIGHUP, where they have their default action, first complete and close the recording.
    /// `STACKWEAVE_SIGNALS=off` in the environment disables this for all recordings of a process.
    pub handle_signals: bool,
    /// Whether an existing file may be replaced. It stays until the new one takes its name.
    pub overwrite: bool,
    /// Whether the name gets a number if it exists: `out-2.swv`, `out-3.swv`. For names that the user has not chosen.
    pub numbered: bool,
    /// Whether the file gets its name only by [`Recorder::publish`](super::Recorder::publish): for callers with further steps that may
    /// fail, and should then leave no file, and an older file unchanged.
    pub named_later: bool,
    /// The run of a program that the recording belongs to. It is common to forked children and started programs, and distinguishes
    /// their files from those of earlier runs. `None`: a new one.
    pub run: Option<u64>,
    /// The clock of the events; `None`: the best clock of this machine. With [`ClockSource::Monotonic`] a tick is a nanosecond, for
    /// callers that give their own times ([`Recorder::record_at`](super::Recorder::record_at)). Started programs choose separately.
    pub clock: Option<ClockSource>,
    /// The version of Python in this process.
    pub python: Option<String>,
    /// Further values for the recording's header.
    pub extra: BTreeMap<String, String>,
}

/// The behaviour of a thread that has an event to record while no buffer is free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WhenFull {
    /// It waits for the writer.
    #[default]
    Block,
    /// It continues, and the event is lost, which is counted.
    Drop,
}

/// The limits of a flight recorder. Events that exceed either limit are dropped, oldest first.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RingLimits {
    /// The maximum size of the events, as in a file; their definitions may take 64 KiB in addition.
    pub bytes: Option<u64>,
    /// The maximum age of the events in seconds.
    pub seconds: Option<f64>,
}

const MEBIBYTE: usize = 1 << 20;
/// Separates the values and the path in the environment variable.
const SEPARATOR: u8 = b';';

impl RecorderOptions {
    /// Returns options that record to this file, wait for a slow disk, and follow forks.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            memory: 64 * MEBIBYTE,
            when_full: WhenFull::Block,
            ring: None,
            dump_at_exit: false,
            flush_every: Duration::from_millis(200),
            follow_forks: true,
            subprocesses: false,
            bypass_waiter: false,
            handle_signals: true,
            overwrite: false,
            numbered: false,
            named_later: false,
            run: None,
            clock: None,
            python: None,
            extra: BTreeMap::new(),
        }
    }

    /// Returns the maximum sleep of the writer: the requested interval, within limits.
    pub(super) fn flush_interval(&self) -> Duration {
        self.flush_every.clamp(Duration::from_micros(50), Duration::from_secs(86_400))
    }

    /// Returns the options as text for programs that this one starts.
    pub(super) fn to_environment(&self) -> OsString {
        let ring = self.ring.unwrap_or_default();
        let drops = self.when_full == WhenFull::Drop;
        let flags = [self.ring.is_some(), self.dump_at_exit, self.follow_forks, drops, self.bypass_waiter];
        let mut text: Vec<u8> = flags.iter().map(|flag| if *flag { b'1' } else { b'0' }).collect();
        let numbers = [
            self.memory as u64,
            u64::try_from(self.flush_every.as_micros()).unwrap_or(u64::MAX),
            ring.bytes.unwrap_or(u64::MAX),
            ring.seconds.map_or(u64::MAX, f64::to_bits),
            self.run.unwrap_or(u64::MAX),
        ];
        for number in numbers {
            text.push(SEPARATOR);
            text.extend_from_slice(number.to_string().as_bytes());
        }
        text.push(SEPARATOR);
        text.extend_from_slice(self.path.as_os_str().as_bytes());
        OsString::from_vec(text)
    }

    /// Parses [`RecorderOptions::to_environment`]; returns `None` for other text.
    pub(super) fn from_environment(text: &OsStr) -> Option<Self> {
        let mut parts = text.as_bytes().splitn(7, |byte| *byte == SEPARATOR);
        let flags = parts.next()?;
        let &[is_ring, dump_at_exit, follow_forks, drops, bypass_waiter] = flags else { return None };
        let mut number = || str::from_utf8(parts.next()?).ok()?.parse::<u64>().ok();
        let (memory, flush, bytes, seconds, run) = (number()?, number()?, number()?, number()?, number()?);
        let given = |value: u64| (value != u64::MAX).then_some(value);
        let ring = RingLimits { bytes: given(bytes), seconds: given(seconds).map(f64::from_bits) };
        Some(Self {
            memory: usize::try_from(memory).ok()?,
            when_full: if drops == b'1' { WhenFull::Drop } else { WhenFull::Block },
            ring: (is_ring == b'1').then_some(ring),
            dump_at_exit: dump_at_exit == b'1',
            flush_every: Duration::from_micros(flush),
            follow_forks: follow_forks == b'1',
            subprocesses: true,
            bypass_waiter: bypass_waiter == b'1',
            run: given(run),
            ..Self::new(OsStr::from_bytes(parts.next()?))
        })
    }
}

/// Returns the path beside `path` that is the given choice of this process: `out.swv`, `out.4242.swv`, `out.4242-2.swv`.
pub(super) fn path_of_process(path: &Path, pid: u32, attempt: u32) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{pid}"));
    if attempt > 1 {
        name.push(format!("-{attempt}"));
    }
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_round_trip_through_the_environment() {
        let mut options = RecorderOptions {
            subprocesses: true,
            memory: 12_345,
            when_full: WhenFull::Drop,
            follow_forks: false,
            flush_every: Duration::from_micros(77),
            run: Some(0xfeed),
            ..RecorderOptions::new(OsStr::from_bytes(b"/data;1/\xff out.swv"))
        };
        assert_eq!(RecorderOptions::from_environment(&options.to_environment()), Some(options.clone()));
        options.ring = Some(RingLimits { bytes: Some(9), seconds: Some(1.5) });
        options.dump_at_exit = true;
        options.bypass_waiter = true;
        assert_eq!(RecorderOptions::from_environment(&options.to_environment()), Some(options.clone()));
        options.ring = Some(RingLimits { bytes: None, seconds: None });
        assert_eq!(RecorderOptions::from_environment(&options.to_environment()), Some(options));
        for other in ["", "00000", "00000;1;2;3;4;5", "00;1;2;3;4;5;p", "00000;1;x;3;4;5;p", "00000;1;2;3;4;p"] {
            assert_eq!(RecorderOptions::from_environment(OsStr::new(other)), None, "{other}");
        }
    }

    #[test]
    fn each_process_has_a_file_beside_the_first() {
        let beside = |path: &str, attempt| path_of_process(Path::new(path), 42, attempt).display().to_string();
        assert_eq!(beside("/data/out.swv", 1), "/data/out.42.swv");
        assert_eq!(beside("out", 2), "out.42-2");
        assert_eq!(beside("a.b.swv", 1), "a.b.42.swv");
    }
}

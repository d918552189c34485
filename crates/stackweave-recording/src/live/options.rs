//! How to record.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::clock::ClockSource;

/// How to record, and where to.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
pub struct Options {
    /// The file. Those of forked children lie beside it: `out.swv` and `out.4242.swv`.
    pub path: PathBuf,
    /// How many bytes of full buffers may wait for the writer, all threads together. Each thread that records has
    /// 64 KiB beyond that.
    pub memory: usize,
    /// What happens when they are full.
    pub when_full: WhenFull,
    /// Keep the last events only, in memory, until they are dumped.
    pub ring: Option<Ring>,
    /// In ring mode, dump when the recording stops, or the process exits.
    pub dump_at_exit: bool,
    /// How often all that was recorded goes to the file: what `kill -9` can lose.
    pub flush_every: Duration,
    /// Whether a forked child is recorded too, in a file of its own.
    pub follow_forks: bool,
    /// Whether programs that this one starts shall record too, if they ask by
    /// [`Recorder::from_environment`](super::Recorder::from_environment).
    pub subprocesses: bool,
    /// Whether threads that wait for room do so where they are, and not inside the process's
    /// [`Waiter`](super::Waiter): who records in the middle of an allocation can't give an interpreter's lock away.
    pub waits_plainly: bool,
    /// Whether SIGTERM and SIGHUP, where they have their default action, first have the recording written and closed.
    /// The environment variable `STACKWEAVE_SIGNALS=off` says no for all recordings of a process.
    pub handle_signals: bool,
    /// Whether a file that is there already may be replaced. It stays until the new one takes its name.
    pub overwrite: bool,
    /// Whether the name gets a number if a file has it already: `out-2.swv`, `out-3.swv`. For names that nobody has chosen.
    pub numbered: bool,
    /// Whether the file gets its name only by [`Recorder::publish`](super::Recorder::publish): for who has more to begin, and wants to
    /// leave nothing, and an older file as it was, if that fails.
    pub named_later: bool,
    /// Which run of a program the recording belongs to. It is the same in forked children and in programs that are started from
    /// there, and tells their files from those of earlier runs. `None`: a new one.
    pub run: Option<u64>,
    /// Whose ticks events get; `None`: the best clock of this machine. With [`ClockSource::Monotonic`] a tick is a nanosecond, for
    /// who gives times of its own ([`Recorder::record_at`](super::Recorder::record_at)). Programs that are started choose for themselves.
    pub clock: Option<ClockSource>,
    /// The version of Python in this process.
    pub python: Option<String>,
    /// What else the recording should say about itself.
    pub extra: BTreeMap<String, String>,
}

/// What a thread does that has an event to record, and no room for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WhenFull {
    /// It waits for the writer.
    #[default]
    Block,
    /// It goes on, and the event is lost; lost events are counted.
    Drop,
}

/// How much a flight recorder keeps; what passes either limit is dropped, oldest first.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ring {
    /// So many bytes of events, as they would be in the file; with what they refer to, 64 KiB more.
    pub bytes: Option<u64>,
    /// The events of so many seconds.
    pub seconds: Option<f64>,
}

const MEBIBYTE: usize = 1 << 20;
/// Splits the settings from each other and from the path in the environment.
const SEPARATOR: u8 = b';';

impl Options {
    /// Records to this file, waits for a slow disk, and follows forks.
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
            waits_plainly: false,
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

    /// How long the writer sleeps at most: as long as was asked for, within reason.
    pub(super) fn flush_interval(&self) -> Duration {
        self.flush_every.clamp(Duration::from_micros(50), Duration::from_secs(86_400))
    }

    /// What a program that is started from here needs to know.
    pub(super) fn to_environment(&self) -> OsString {
        let ring = self.ring.unwrap_or_default();
        let drops = self.when_full == WhenFull::Drop;
        let flags = [self.ring.is_some(), self.dump_at_exit, self.follow_forks, drops, self.waits_plainly];
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

    /// The inverse of [`Options::to_environment`]; `None` if it is something else.
    pub(super) fn from_environment(text: &OsStr) -> Option<Self> {
        let mut parts = text.as_bytes().splitn(7, |byte| *byte == SEPARATOR);
        let flags = parts.next()?;
        let &[is_ring, dump_at_exit, follow_forks, drops, waits_plainly] = flags else { return None };
        let mut number = || str::from_utf8(parts.next()?).ok()?.parse::<u64>().ok();
        let (memory, flush, bytes, seconds, run) = (number()?, number()?, number()?, number()?, number()?);
        let given = |value: u64| (value != u64::MAX).then_some(value);
        let ring = Ring { bytes: given(bytes), seconds: given(seconds).map(f64::from_bits) };
        Some(Self {
            memory: usize::try_from(memory).ok()?,
            when_full: if drops == b'1' { WhenFull::Drop } else { WhenFull::Block },
            ring: (is_ring == b'1').then_some(ring),
            dump_at_exit: dump_at_exit == b'1',
            flush_every: Duration::from_micros(flush),
            follow_forks: follow_forks == b'1',
            subprocesses: true,
            waits_plainly: waits_plainly == b'1',
            run: given(run),
            ..Self::new(OsStr::from_bytes(parts.next()?))
        })
    }
}

/// The file beside `path` that is the `attempt`th choice of this process: `out.swv`, `out.4242.swv`, `out.4242-2.swv`.
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
    fn options_pass_through_the_environment() {
        let mut options = Options {
            subprocesses: true,
            memory: 12_345,
            when_full: WhenFull::Drop,
            follow_forks: false,
            flush_every: Duration::from_micros(77),
            run: Some(0xfeed),
            ..Options::new(OsStr::from_bytes(b"/data;1/\xff out.swv"))
        };
        assert_eq!(Options::from_environment(&options.to_environment()), Some(options.clone()));
        options.ring = Some(Ring { bytes: Some(9), seconds: Some(1.5) });
        options.dump_at_exit = true;
        options.waits_plainly = true;
        assert_eq!(Options::from_environment(&options.to_environment()), Some(options.clone()));
        options.ring = Some(Ring { bytes: None, seconds: None });
        assert_eq!(Options::from_environment(&options.to_environment()), Some(options));
        for other in ["", "00000", "00000;1;2;3;4;5", "00;1;2;3;4;5;p", "00000;1;x;3;4;5;p", "00000;1;2;3;4;p"] {
            assert_eq!(Options::from_environment(OsStr::new(other)), None, "{other}");
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

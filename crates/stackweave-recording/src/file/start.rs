//! The Start of a section, which describes its process.

use super::error::BlockError;
use super::varint::{Cursor, put, put_bytes, zigzag};
use crate::clock::ClockSource;

/// The description of a recorded process. Unknown text is empty, an unknown number 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessStart {
    /// The process id.
    pub pid: u32,
    /// The process id of its parent.
    pub parent_pid: u32,
    /// The name of the machine.
    pub host: String,
    /// Identifies one boot of the machine.
    pub boot_id: String,
    /// Identifies the machine across boots.
    pub machine: String,
    /// The effective user id of the process; `None` if it was not recorded.
    pub uid: Option<u32>,
    /// The path of its executable.
    pub executable: String,
    /// Its arguments, with the program's name first.
    pub command_line: Vec<String>,
    /// The version of Python in it, if there is one.
    pub python: Option<String>,
    /// The version of Stackweave that made the recording.
    pub stackweave_version: String,
    /// The wall clock at 0 ticks, in nanoseconds since 1970.
    pub started_wall_ns: i64,
    /// `CLOCK_MONOTONIC` at 0 ticks.
    pub started_monotonic_ns: u64,
    /// The clock that the ticks are of.
    pub clock: ClockSource,
    /// The approximate number of ticks per second; the clock points give a more exact rate.
    pub ticks_per_second: u64,
    /// The number of the thread that started the recording.
    pub thread: u32,
    /// The process that this one was forked from, if that one was being recorded.
    pub forked_from: Option<u32>,
    /// Whether all events are kept.
    pub mode: RecordingMode,
    /// Further options of the recorder or its user: names and values.
    pub options: Vec<(String, String)>,
}

/// Whether a recording keeps all of its events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum RecordingMode {
    /// It keeps all events.
    #[default]
    Whole = 1,
    /// It keeps only the last events.
    Ring = 2,
}

impl Default for ProcessStart {
    fn default() -> Self {
        Self {
            pid: 0,
            parent_pid: 0,
            host: String::new(),
            boot_id: String::new(),
            machine: String::new(),
            uid: None,
            executable: String::new(),
            command_line: Vec::new(),
            python: None,
            stackweave_version: String::new(),
            started_wall_ns: 0,
            started_monotonic_ns: 0,
            clock: ClockSource::Monotonic,
            ticks_per_second: 0,
            thread: 0,
            forked_from: None,
            mode: RecordingMode::Whole,
            options: Vec::new(),
        }
    }
}

/// The tags of the values. Readers skip unknown tags.
mod tag {
    pub(super) const PID: u64 = 1;
    pub(super) const PARENT_PID: u64 = 2;
    pub(super) const HOST: u64 = 3;
    pub(super) const BOOT_ID: u64 = 4;
    pub(super) const EXECUTABLE: u64 = 5;
    pub(super) const ARGUMENT: u64 = 6;
    pub(super) const PYTHON: u64 = 7;
    pub(super) const STACKWEAVE_VERSION: u64 = 8;
    pub(super) const STARTED_WALL_NS: u64 = 9;
    pub(super) const STARTED_MONOTONIC_NS: u64 = 10;
    pub(super) const CLOCK: u64 = 11;
    pub(super) const TICKS_PER_SECOND: u64 = 12;
    pub(super) const THREAD: u64 = 13;
    pub(super) const FORKED_FROM: u64 = 14;
    pub(super) const MODE: u64 = 15;
    pub(super) const OPTION: u64 = 16;
    pub(super) const UID: u64 = 17;
    pub(super) const MACHINE: u64 = 18;
}

impl ProcessStart {
    /// The name of the option that all processes of one run have in common.
    pub const RUN: &'static str = "run";
    /// The name of the option with the folder of the Python package that made the recording.
    pub const PACKAGE: &'static str = "package";

    /// Returns the run that the recording belongs to: that of the program and of all processes that it started.
    pub fn run(&self) -> Option<&str> {
        self.option(Self::RUN)
    }

    /// Returns the folder of the Python package that made the recording.
    pub fn package(&self) -> Option<&str> {
        self.option(Self::PACKAGE)
    }

    fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns the payload of a Start block. Values that are empty or 0 are left out.
    pub fn payload(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut number = |tag: u64, number: u64| {
            if number != 0 {
                put_number(&mut out, tag, number);
            }
        };
        number(tag::PID, self.pid.into());
        number(tag::PARENT_PID, self.parent_pid.into());
        number(tag::STARTED_WALL_NS, zigzag(self.started_wall_ns));
        number(tag::STARTED_MONOTONIC_NS, self.started_monotonic_ns);
        number(tag::CLOCK, self.clock as u64);
        number(tag::TICKS_PER_SECOND, self.ticks_per_second);
        number(tag::THREAD, self.thread.into());
        number(tag::MODE, self.mode as u64);
        if let Some(pid) = self.forked_from {
            put_number(&mut out, tag::FORKED_FROM, pid.into());
        }
        // The user id of root is 0, and must be written.
        if let Some(uid) = self.uid {
            put_number(&mut out, tag::UID, uid.into());
        }
        let texts = [
            (tag::HOST, &self.host),
            (tag::BOOT_ID, &self.boot_id),
            (tag::MACHINE, &self.machine),
            (tag::EXECUTABLE, &self.executable),
            (tag::STACKWEAVE_VERSION, &self.stackweave_version),
        ];
        for (tag, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
            put_text(&mut out, tag, text);
        }
        for argument in &self.command_line {
            put_text(&mut out, tag::ARGUMENT, argument);
        }
        if let Some(python) = &self.python {
            put_text(&mut out, tag::PYTHON, python);
        }
        for (name, value) in &self.options {
            let mut option = Vec::new();
            put_bytes(&mut option, name.as_bytes());
            put_bytes(&mut option, value.as_bytes());
            put(&mut out, tag::OPTION);
            put_bytes(&mut out, &option);
        }
        out
    }

    /// Reads the payload of a Start block.
    pub fn parse(payload: &[u8]) -> Result<Self, BlockError> {
        let mut start = Self::default();
        let mut rest = Cursor::new(payload);
        while !rest.is_empty() {
            let tag = rest.varint()?;
            start.take(tag, rest.bytes()?)?;
        }
        Ok(start)
    }

    fn take(&mut self, tag: u64, value: &[u8]) -> Result<(), BlockError> {
        let text = || String::from_utf8_lossy(value).into_owned();
        let mut inner = Cursor::new(value);
        match tag {
            tag::PID => self.pid = inner.small()?,
            tag::PARENT_PID => self.parent_pid = inner.small()?,
            tag::HOST => self.host = text(),
            tag::BOOT_ID => self.boot_id = text(),
            tag::EXECUTABLE => self.executable = text(),
            tag::ARGUMENT => self.command_line.push(text()),
            tag::PYTHON => self.python = Some(text()),
            tag::STACKWEAVE_VERSION => self.stackweave_version = text(),
            tag::STARTED_WALL_NS => self.started_wall_ns = inner.signed()?,
            tag::STARTED_MONOTONIC_NS => self.started_monotonic_ns = inner.varint()?,
            tag::CLOCK => {
                let sources = [ClockSource::Tsc, ClockSource::Monotonic];
                let number = inner.varint()?;
                let source = sources.into_iter().find(|source| *source as u64 == number);
                self.clock = source.ok_or(BlockError::Contradiction)?;
            }
            tag::TICKS_PER_SECOND => self.ticks_per_second = inner.varint()?,
            tag::THREAD => self.thread = inner.small()?,
            tag::FORKED_FROM => self.forked_from = Some(inner.small()?),
            tag::MODE => {
                self.mode = if inner.varint()? == RecordingMode::Ring as u64 {
                    RecordingMode::Ring
                } else {
                    RecordingMode::Whole
                }
            }
            tag::UID => self.uid = Some(inner.small()?),
            tag::MACHINE => self.machine = text(),
            tag::OPTION => self.options.push((inner.text()?, inner.text()?)),
            _ => {}
        }
        Ok(())
    }
}

fn put_text(out: &mut Vec<u8>, tag: u64, text: &str) {
    put(out, tag);
    put_bytes(out, text.as_bytes());
}

fn put_number(out: &mut Vec<u8>, tag: u64, number: u64) {
    let mut value = Vec::with_capacity(10);
    put(&mut value, number);
    put(out, tag);
    put_bytes(out, &value);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> ProcessStart {
        ProcessStart {
            pid: 4242,
            parent_pid: 1,
            host: "build-7".into(),
            boot_id: "b0".into(),
            machine: "m0".into(),
            uid: Some(0),
            executable: "/usr/bin/python3".into(),
            command_line: vec!["python3".into(), String::new(), "train.py".into()],
            python: Some("3.13.0".into()),
            stackweave_version: "0.1.0".into(),
            started_wall_ns: -5,
            started_monotonic_ns: u64::MAX,
            clock: ClockSource::Tsc,
            ticks_per_second: 2_400_000_000,
            thread: 1,
            forked_from: Some(4000),
            mode: RecordingMode::Ring,
            options: vec![("memory".into(), "64".into()), ("memory".into(), String::new())],
        }
    }

    #[test]
    fn starts_round_trip() {
        for start in [full(), ProcessStart::default()] {
            assert_eq!(ProcessStart::parse(&start.payload()), Ok(start));
        }
    }

    #[test]
    fn unknown_tags_are_skipped() {
        let mut payload = full().payload();
        put_text(&mut payload, 99, "from the future");
        assert_eq!(ProcessStart::parse(&payload), Ok(full()));
    }

    #[test]
    fn a_truncated_start_is_rejected_or_incomplete() {
        let payload = full().payload();
        for len in 0..payload.len() {
            assert_ne!(ProcessStart::parse(&payload[..len]), Ok(full()), "{len}");
        }
    }
}

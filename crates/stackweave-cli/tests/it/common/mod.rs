//! What the tests of the command share: recordings in a folder, and how the command is run there.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use stackweave_core::{NoNames, RawFrame};
use stackweave_recording::{Options, Recorder};
use stackweave_store::{StackTable, label};
use stackweave_testkit::folder::Folder;

pub static STACKS: StackTable = StackTable::new();

pub fn frame(name: &str) -> RawFrame {
    label(name, "train.py", 7).unwrap()
}

/// A recording in which `epoch` calls `load` that many times, and `step` once.
pub fn record(path: &Path, loads: usize) {
    let recorder = Recorder::start(Options::new(path), &STACKS, Arc::new(NoNames)).unwrap();
    recorder.name_thread("trainer");
    recorder.begin(frame("epoch"));
    for _ in 0..loads {
        recorder.begin(frame("load"));
        recorder.end();
    }
    recorder.begin(frame("step"));
    recorder.allocate(0x1000, 4096, STACKS.intern(&[frame("grow"), frame("step")]));
    recorder.end();
    recorder.end();
    assert_eq!(recorder.stop().error, None);
}

pub struct Recorded {
    folder: Folder,
}

impl Recorded {
    pub fn new() -> Self {
        Self { folder: Folder::new() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn with(self, name: &str, loads: usize) -> Self {
        record(&self.path(name), loads);
        self
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stackweave"));
        command.args(arguments).current_dir(self.folder.path()).output().unwrap()
    }

    /// What a command that succeeds says, on both streams.
    pub fn said(&self, arguments: &[&str]) -> (String, String) {
        let output = self.run(arguments);
        let texts = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{texts:?}");
        texts
    }

    /// The one sentence of a command that fails.
    pub fn failure(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), String::new()));
        let said = text(&output.stderr);
        assert_eq!(said.lines().count(), 1, "{said}");
        said.trim_end().to_owned()
    }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The words of the line that holds `name`.
pub fn line<'a>(said: &'a str, name: &str) -> Vec<&'a str> {
    let found = said.lines().find(|line| line.contains(name));
    found.unwrap_or_else(|| panic!("no {name} in\n{said}")).split_whitespace().collect()
}

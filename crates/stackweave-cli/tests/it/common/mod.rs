//! Shared parts of the command's tests: recordings in a folder, and the command run there.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use stackweave_core::{NoNames, RawFrame};
use stackweave_recording::{Recorder, RecorderOptions};
use stackweave_store::{StackTable, label};
use stackweave_testkit::folder::Folder;

pub static STACKS: StackTable = StackTable::new();

pub fn frame(name: &str) -> RawFrame {
    label(name, "train.py", 7).unwrap()
}

/// Records `epoch` calling `load` that many times, and `step` once.
pub fn record(path: &Path, loads: usize) {
    let recorder = Recorder::start(RecorderOptions::new(path), &STACKS, Arc::new(NoNames)).unwrap();
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

    /// Runs a command that succeeds, and returns both output streams.
    pub fn printed(&self, arguments: &[&str]) -> (String, String) {
        let output = self.run(arguments);
        let texts = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{texts:?}");
        texts
    }

    /// Runs a command that fails, and returns its one sentence.
    pub fn failure(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), String::new()));
        let printed = text(&output.stderr);
        assert_eq!(printed.lines().count(), 1, "{printed}");
        printed.trim_end().to_owned()
    }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Returns the words of the line that contains `name`.
pub fn line<'a>(printed: &'a str, name: &str) -> Vec<&'a str> {
    let found = printed.lines().find(|line| line.contains(name));
    found.unwrap_or_else(|| panic!("no {name} in\n{printed}")).split_whitespace().collect()
}

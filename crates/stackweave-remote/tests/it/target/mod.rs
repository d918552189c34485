//! A process to inspect, which ends with the test.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use stackweave_remote::{InspectionOptions, ProcessStacks, ThreadStack, stacks_of};
use stackweave_testkit::folder::Folder;

/// The compiled program.
pub(crate) struct Program {
    folder: Folder,
}

impl Program {
    pub(crate) fn build() -> Self {
        let folder = Folder::new();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/target/target.c");
        let built = Command::new("cc")
            .args(["-O2", "-g", "-Wall", "-Werror", "-o"])
            .arg(folder.file("target"))
            .arg(source)
            .arg("-lpthread")
            .output()
            .expect("a C compiler runs");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        Self { folder }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.file("target")
    }

    /// Starts it, and waits until it reports that it is ready.
    pub(crate) fn start(&self, what: &str) -> Target {
        Target::start(Command::new(self.path()).arg(what))
    }
}

/// The running process.
pub(crate) struct Target {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Target {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the target starts");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let mut target = Self { input: child.stdin.take(), child, output };
        assert_eq!(target.line(), "there");
        target
    }

    /// Waits until all its threads sleep.
    pub(crate) fn settled(self) -> Self {
        self.wait_for('S');
        self
    }

    /// Waits until all its threads are in the state with this letter in `/proc`.
    pub(crate) fn wait_for(&self, state: char) {
        let end = Instant::now() + Duration::from_secs(20);
        let exists = |task: std::io::Result<std::fs::DirEntry>| {
            let stat = std::fs::read_to_string(task.expect("a task").path().join("stat")).unwrap_or_default();
            stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with(state))
        };
        while !std::fs::read_dir(format!("/proc/{}/task", self.number())).expect("it runs").all(exists) {
            assert!(Instant::now() < end, "its threads do not all come to {state}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    pub(crate) fn number(&self) -> u32 {
        self.child.id()
    }

    /// Returns the next line of its output.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it writes text");
        line.trim_end().to_owned()
    }

    pub(crate) fn stacks(&self) -> ProcessStacks {
        stacks_of(self.number(), &options()).expect("it can be read")
    }

    pub(crate) fn send(&self, signal: i32) {
        // SAFETY: a signal to a child that has not been waited for.
        assert_eq!(unsafe { libc::kill(self.number().cast_signed(), signal) }, 0);
    }

    pub(crate) fn send_with_value(&self, signal: i32) {
        let value = libc::sigval { sival_ptr: std::ptr::null_mut() };
        // SAFETY: a queued signal to a child that has not been waited for.
        assert_eq!(unsafe { libc::sigqueue(self.number().cast_signed(), signal, value) }, 0);
    }

    /// Lets it end, and returns its exit status and output.
    pub(crate) fn finish(mut self) -> (ExitStatus, String) {
        if let Some(mut input) = self.input.take() {
            let _ = input.write_all(b"x");
        }
        let mut text = String::new();
        let _ = self.output.read_to_string(&mut text);
        (self.child.wait().expect("it ends"), text)
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns options without the debug files of system libraries, which a debug build takes long to read.
pub(crate) fn options() -> InspectionOptions {
    let mut options = InspectionOptions::default();
    options.symbolize.debug_folders.clear();
    options
}

/// Returns the names of a thread's frames, innermost first.
pub(crate) fn names(thread: &ThreadStack) -> Vec<&str> {
    thread.frames.iter().map(|frame| &*frame.name).collect()
}

/// Returns the thread that has a frame with this name.
pub(crate) fn thread_in<'a>(stacks: &'a ProcessStacks, function: &str) -> &'a ThreadStack {
    let found = stacks.threads.iter().find(|thread| names(thread).contains(&function));
    found.unwrap_or_else(|| panic!("no thread is in {function}: {stacks:#?}"))
}

//! A Python program that prints a line about itself and then continues until the test is over.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use stackweave_remote::{PythonProcess, PythonThread, RemotePythonFrame};
use stackweave_testkit::pythons::Python;

/// The system ends a program that runs longer.
const LIMIT_SECONDS: u32 = 120;

/// The program, which ends with the test.
pub(crate) struct Program {
    child: Child,
    /// Its description of itself.
    pub(crate) described: Value,
}

impl Program {
    /// Starts the script with this name and waits for its line. Returns `None` if it reports that it cannot run
    /// here.
    pub(crate) fn start(python: &Python, script: &str) -> Option<Self> {
        Self::run(Command::new(&python.executable), script)
    }

    /// Starts the script with this command.
    pub(crate) fn run(mut command: Command, script: &str) -> Option<Self> {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/python").join(script);
        command.arg(path).stdout(Stdio::piped()).stdin(Stdio::null());
        // SAFETY: `alarm` is async-signal-safe; the timer outlives the exec and ends the child by SIGALRM.
        unsafe {
            command.pre_exec(|| {
                libc::alarm(LIMIT_SECONDS);
                Ok(())
            });
        }
        let mut program = Self { child: command.spawn().expect("the interpreter starts"), described: Value::Null };
        let mut line = String::new();
        BufReader::new(program.child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
        program.described = serde_json::from_str(&line).expect("the line is JSON");
        (!program.described.is_null()).then_some(program)
    }

    /// Returns its process id.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Returns its interpreter.
    pub(crate) fn python(&self) -> PythonProcess {
        PythonProcess::find(self.process()).expect("it runs Python")
    }

    /// Stops all its threads, and waits until they have stopped.
    pub(crate) fn stop(&self) {
        self.signal(libc::SIGSTOP);
        while !self.states().iter().all(|state| *state == 'T') {
            std::thread::yield_now();
        }
    }

    /// Resumes its threads.
    pub(crate) fn resume(&self) {
        self.signal(libc::SIGCONT);
    }

    fn signal(&self, signal: i32) {
        let process = i32::try_from(self.process()).expect("the number of a process");
        // SAFETY: the process is a child that has not been waited for.
        assert_eq!(unsafe { libc::kill(process, signal) }, 0);
    }

    fn states(&self) -> Vec<char> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.process())).expect("it lives");
        let stat = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("stat")).ok());
        stat.filter_map(|stat| stat.rsplit_once(") ")?.1.chars().next()).collect()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a frame in the form in which the scripts describe it.
pub(crate) fn described(frame: &RemotePythonFrame) -> Value {
    let position = frame.position;
    serde_json::json!([
        &*frame.name,
        frame.qualname.as_deref(),
        &*frame.filename,
        frame.first_line,
        position.line,
        position.end_line,
        position.column,
        position.end_column,
    ])
}

/// Returns the thread with this `threading.get_ident`.
pub(crate) fn thread(threads: &[PythonThread], ident: u64) -> &PythonThread {
    threads.iter().find(|thread| thread.pthread == ident).expect("the thread is found")
}

/// Returns the names of the thread's frames.
pub(crate) fn names(thread: &PythonThread) -> Vec<&str> {
    thread.frames.iter().map(|frame| &*frame.name).collect()
}

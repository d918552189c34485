//! The example host in each installed Python: correct stacks, no deadlock, no leak.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use stackweave_testkit::pythons::{Python, pythons};
use stackweave_testkit::{child, in_each_python};

use crate::common::{example, library_folder, make_cpp_host, run};

/// Returns the duration of the stress test, which `STACKWEAVE_STRESS_SECONDS` sets.
fn seconds() -> u32 {
    std::env::var("STACKWEAVE_STRESS_SECONDS").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(2)
}

/// Returns a command that runs a script of the host with both libraries.
fn script(python: &Python, name: &str, host: &Path) -> Command {
    let mut command = Command::new(&python.executable);
    command.arg("-B").arg(example("cpp-host").join(name)).arg(library_folder().join("libstackweave.so"));
    command.arg(host);
    command
}

in_each_python!(each_stack_is_the_stack_that_its_thread_expects, check_stacks);

fn check_stacks(python: &Python) {
    let host = make_cpp_host(&["libhost.so"]).join("libhost.so");
    let mut command = script(python, "drive.py", &host);
    let output = child::run_for(command.arg(seconds().to_string()), 120 + 4 * seconds());
    let text = child::text(&output);
    assert!(output.status.success() && text.contains("all correct"), "{}: {text}", python.version);
    println!("{}: {}", python.version, text.lines().last().unwrap_or_default());
}

in_each_python!(captures_and_drops_never_wait_for_the_gil, check_no_waits);

fn check_no_waits(python: &Python) {
    let host = make_cpp_host(&["libhost.so"]).join("libhost.so");
    for (thread, action) in [("python", "capture"), ("python", "drop"), ("native", "capture"), ("native", "drop")] {
        let mut command = script(python, "deadlock.py", &host);
        let text = run(command.args(["stackweave", thread, action]));
        assert_eq!(text, "meeting\ndone\n", "{}", python.version);
    }
}

/// Shows that the test above can fail: with a recorder that takes the GIL, the same threads deadlock in any Python.
#[test]
fn a_recorder_that_takes_the_gil_deadlocks() {
    let host = make_cpp_host(&["libhost.so"]).join("libhost.so");
    let pythons = pythons();
    let Some(python) = pythons.last() else { return };
    for action in ["capture", "drop"] {
        let mut command = script(python, "deadlock.py", &host);
        let mut child = command.args(["gil", "native", action]).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        assert_eq!(lines.next().and_then(Result::ok).as_deref(), Some("meeting"), "{}", python.version);
        // The deadlocked program must never end.
        thread::sleep(Duration::from_secs(2));
        assert!(child.try_wait().expect("a child").is_none(), "{} ended", python.version);
        child.kill().and_then(|()| child.wait()).expect("a child");
        assert!(lines.next().is_none(), "{}", python.version);
    }
}

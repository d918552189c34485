//! The example host inside every Python found: right stacks, no deadlock, no leak.

mod common;

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

use common::{example, library_folder, make_cpp_host, run};
use stackweave_testkit::child;
use stackweave_testkit::pythons::{Python, pythons};

/// `STACKWEAVE_STRESS_SECONDS` makes the stress test as long as one likes.
fn seconds() -> u32 {
    std::env::var("STACKWEAVE_STRESS_SECONDS").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(2)
}

/// A command that runs a script of the host with both libraries.
fn script(python: &Python, name: &str, host: &Path) -> Command {
    let mut command = Command::new(&python.executable);
    command.arg("-B").arg(example("cpp-host").join(name)).arg(library_folder().join("libstackweave.so"));
    command.arg(host);
    command
}

#[test]
fn every_stack_is_what_its_thread_knows() {
    let host = make_cpp_host(&["libhost.so"]).join("libhost.so");
    for python in pythons() {
        let mut command = script(&python, "drive.py", &host);
        let output = child::run_for(command.arg(seconds().to_string()), 120 + 4 * seconds());
        let text = child::text(&output);
        assert!(output.status.success() && text.contains("all right"), "{}: {text}", python.version);
        println!("{}: {}", python.version, text.lines().last().unwrap_or_default());
    }
}

#[test]
fn captures_and_drops_never_wait_for_the_gil() {
    let host = make_cpp_host(&["libhost.so"]).join("libhost.so");
    for python in pythons() {
        for (thread, action) in [("python", "capture"), ("python", "drop"), ("native", "capture"), ("native", "drop")] {
            let mut command = script(&python, "deadlock.py", &host);
            let text = run(command.args(["stackweave", thread, action]));
            assert_eq!(text, "meeting\ndone\n", "{}", python.version);
        }
    }
}

/// That the test above can fail: with a recorder that takes the GIL the same threads wait for each other.
#[test]
fn a_recorder_that_takes_the_gil_waits_for_ever() {
    let host = make_cpp_host(&["libhost.so"]).join("libhost.so");
    for python in pythons() {
        for action in ["capture", "drop"] {
            let mut command = script(&python, "deadlock.py", &host);
            let output = child::run_for(command.args(["gil", "native", action]), 3);
            let text = String::from_utf8_lossy(&output.stdout);
            assert_eq!(text, "meeting\n", "{}", python.version);
            assert_eq!(output.status.signal(), Some(libc::SIGALRM), "{}: {:?}", python.version, output.status);
        }
    }
}

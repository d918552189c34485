//! The frames of each installed interpreter, compared with what Python itself reports.

use std::process::Command;

use stackweave_cpython_tests::pythons::{Python, refused_pythons, script, shared_library};
use stackweave_testkit::{child, in_each_python};

const SECONDS: u32 = 300;

fn run(python: &Python, name: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(&python.executable);
    command.arg("-B").arg(script(name)).arg(shared_library()).args(arguments);
    let output = child::run_for(&mut command, SECONDS);
    let text = child::text(&output);
    assert!(output.status.success(), "{} ({}): {text}", python.version, python.executable.display());
    assert!(!text.contains("Traceback"), "{}: {text}", python.version);
    text
}

in_each_python!(walks_equal_what_python_reports, check_walks);

fn check_walks(python: &Python) {
    let text = run(python, "run_cases.py", &[]);
    println!("{}: {}", python.version, text.replace('\n', "; "));
    assert!(text.contains("cases 50 "), "{}: {text}", python.version);
    assert!(text.contains("shutdown: 2 frames, interpreter is shutting down"), "{}: {text}", python.version);
    assert!(text.contains("at exit: 0 frames, interpreter "), "{}: {text}", python.version);
}

in_each_python!(a_daemon_thread_walks_while_the_interpreter_shuts_down, check_daemon);

fn check_daemon(python: &Python) {
    for _ in 0..5 {
        run(python, "daemon_at_shutdown.py", &[]);
    }
}

#[test]
fn a_refused_interpreter_provides_its_frames_by_the_public_api() {
    let refused = refused_pythons();
    for python in &refused {
        let reason = python.refusal.as_deref().unwrap_or_default();
        println!("{}: {}", python.version, run(python, "fallback_cases.py", &[reason]));
    }
    if refused.is_empty() {
        println!("skipped: no Python 3.9, free-threaded or debug build is installed");
    }
}

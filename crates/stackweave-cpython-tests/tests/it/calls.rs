//! Compares the calls that each mechanism records in each installed interpreter with those that Python itself reports.

use std::process::{Command, Output};

use stackweave_cpython_tests::pythons::{Python, refused_pythons, script, shared_library};
use stackweave_testkit::{child, in_each_python};

const SECONDS: u32 = 300;
const MECHANISMS: [&str; 3] = ["1", "2", "3"];

fn run(python: &Python, name: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(&python.executable);
    command.arg("-B").arg(script(name)).arg(shared_library()).args(arguments);
    child::run_for(&mut command, SECONDS)
}

in_each_python!(recorded_calls_are_those_that_python_reports, check_calls);

fn check_calls(python: &Python) {
    let output = run(python, "run_call_cases.py", &[]);
    let text = child::text(&output);
    println!("{}: {}", python.version, text.replace('\n', "; "));
    assert!(output.status.success(), "{} ({}): {text}", python.version, python.executable.display());
    assert!(text.contains("cases 59"), "{}: {text}", python.version);
}

in_each_python!(an_interpreter_shuts_down_while_calls_are_recorded, check_shutdown);

fn check_shutdown(python: &Python) {
    for mechanism in MECHANISMS {
        let output = run(python, "calls_at_shutdown.py", &[mechanism]);
        let text = child::text(&output);
        let is_available = mechanism == "3" || (mechanism == "1") == (python.minor >= 12);
        let expected = if is_available { "recorded at the end" } else { "can't trace calls by" };
        assert!(text.contains(expected), "{} by {mechanism}: {text}", python.version);
        assert!(output.status.success(), "{} by {mechanism}: {text}", python.version);
    }
}

#[test]
fn an_interpreter_whose_frames_cant_be_read_reports_the_reason() {
    let refused = refused_pythons();
    for python in &refused {
        let output = run(python, "calls_refused.py", &[]);
        let text = child::text(&output);
        let reason = python.refusal.as_deref().unwrap_or_default();
        let expected = format!("calls can't be traced in this interpreter: {reason}\n");
        assert!(output.status.success() && text.contains(&expected), "{}: {text}", python.version);
    }
    if refused.is_empty() {
        println!("skipped: no Python 3.9, free-threaded or debug build is installed");
    }
}

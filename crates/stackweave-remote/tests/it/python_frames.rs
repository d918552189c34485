//! The frames that are read of another process are those that its interpreter reports.

use std::process::Command;

use stackweave_remote::{PythonProcess, PythonThread};
use stackweave_testkit::folder::Folder;
use stackweave_testkit::in_each_python;
use stackweave_testkit::pythons::{Python, pythons, refused_pythons};

use crate::program::{Program, described, names, thread};

in_each_python!(blocked_threads_have_the_frames_that_the_interpreter_says, check_blocked);

fn check_blocked(python: &Python) {
    let program = Program::start(python, "blocked_threads.py").expect("it can do its work");
    let process = program.python();
    assert!(python.version.starts_with(&process.version()), "{} {}", python.version, process.version());
    let threads = process.threads();
    let described = program.described.as_array().expect("a list of threads");
    // The thread that printed the description has since begun to wait.
    assert_eq!(threads.len(), described.len() + 1, "{python:?}");
    for expected in described {
        let thread = thread(&threads, expected["ident"].as_u64().expect("a number"));
        check_thread(python, thread, expected);
    }
}

fn check_thread(python: &Python, thread: &PythonThread, expected: &serde_json::Value) {
    let frames = expected["frames"].as_array().expect("a list of frames");
    let outermost = &frames[frames.len().saturating_sub(3)];
    assert_eq!(thread.problem, None, "{} {outermost}", python.version);
    for (index, (frame, expected)) in thread.frames.iter().zip(frames).enumerate() {
        assert_eq!(&described(frame), expected, "{} {index} of {outermost}", python.version);
        assert_ne!(frame.activation.0, 0, "{} {index} of {outermost}", python.version);
    }
    assert_eq!(thread.frames.len(), frames.len(), "{} {outermost}", python.version);
    assert!(thread.frames.is_sorted_by_key(|frame| frame.activation), "{} {outermost}", python.version);
    let task = (python.minor > 10).then(|| expected["task"].as_u64()).flatten();
    assert_eq!(thread.task.map(u64::from), task, "{}", python.version);
    assert!(!thread.has_gil, "{} {outermost}", python.version);
}

#[test]
fn builds_with_other_layouts_are_refused() {
    for python in refused_pythons() {
        let Some(program) = Program::start(&python, "minimal.py") else { continue };
        let refusal = PythonProcess::find(program.process()).expect_err("it is not readable").0;
        let is_older = refusal.starts_with("it runs a Python older than 3.10");
        assert!(Some(&refusal) == python.refusal.as_ref() || is_older && python.minor < 10, "{python:?}: {refusal}");
    }
}

#[test]
fn other_processes_have_no_python() {
    let process = std::process::id();
    let reason = PythonProcess::find(process).expect_err("no Python is linked").0;
    assert_eq!(reason, format!("no CPython was found in process {process}"));
    let reason = PythonProcess::find(u32::MAX >> 1).expect_err("there is no such process").0;
    assert!(reason.starts_with("the memory map of process"), "{reason}");
}

/// This happens after an upgrade of the package, and in a program that embeds the interpreter.
#[test]
fn an_interpreter_with_another_name_that_was_removed_is_found() {
    for python in pythons().iter().filter(|python| python.library.is_none()) {
        let bytes = std::fs::read(&python.executable).expect("it can be read");
        if !bytes.starts_with(b"\x7fELF") {
            continue;
        }
        let folder = Folder::new();
        let host = folder.path().join("host");
        std::fs::copy(&python.executable, &host).expect("it can be copied");
        let mut command = Command::new(&host);
        command.env("PYTHONHOME", &python.home);
        let program = Program::run(command, "minimal.py").expect("it can do its work");
        std::fs::remove_file(&host).expect("it can be removed");
        let threads = program.python().threads();
        assert_eq!(threads.iter().map(names).collect::<Vec<_>>(), [["<module>"]], "{}", python.version);
    }
}

//! Data of running threads is plausible, and correct once they are stopped.

use std::time::Duration;

use serde_json::Value;
use stackweave_remote::PythonThread;
use stackweave_testkit::in_each_python;
use stackweave_testkit::pythons::Python;
use stackweave_testkit::random::Random;

use crate::program::{Program, names, thread};

const SEED: u64 = 20_261_116;
const STOPS: usize = 60;

in_each_python!(threads_that_run_are_read_to_an_end, check_running);

fn check_running(python: &Python) {
    let program = Program::start(python, "busy_thread.py").expect("it can do its work");
    let process = program.python();
    let main = program.described["main"].as_u64().expect("a number");
    let mut whole = 0;
    for _ in 0..STOPS {
        let threads = process.threads();
        let blocked = thread(&threads, main);
        assert_eq!((names(blocked), &blocked.problem), (vec!["main", "<module>"], &None), "{}", python.version);
        let busy = other(&threads, main);
        whole += usize::from(busy.problem.is_none());
        for frame in &busy.frames {
            assert!(!program.described["functions"][&*frame.name].is_null(), "{} {}", python.version, frame.name);
        }
    }
    assert!(whole > 0, "{}: never whole", python.version);
}

in_each_python!(threads_that_are_stopped_anywhere_have_a_sensible_stack, check_stopped);

fn check_stopped(python: &Python) {
    let mut random = Random::new(SEED);
    println!("seed {SEED}");
    let program = Program::start(python, "busy_thread.py").expect("it can do its work");
    let process = program.python();
    let main = program.described["main"].as_u64().expect("a number");
    let mut problems = 0;
    for _ in 0..STOPS {
        program.stop();
        let threads = process.threads();
        program.resume();
        let busy = other(&threads, main);
        assert_eq!(thread(&threads, main).problem, None);
        // Up to 3.12, a loop that is being entered or left cannot be read.
        let has_lists = (11..=12).contains(&python.minor);
        match &busy.problem {
            Some(problem) if has_lists && problem.contains("entering or leaving") => problems += 1,
            problem => assert_eq!(problem, &None, "{}", python.version),
        }
        check_stack(&python.version, busy, &program.described["functions"]);
        // It does not hold the GIL while it writes its line.
        assert!(busy.has_gil || names(busy).first() == Some(&"busy"), "{}", python.version);
        assert!(!thread(&threads, main).has_gil, "{}", python.version);
        std::thread::sleep(Duration::from_micros(random.below(3000) as u64));
    }
    println!("{}: {problems} of {STOPS} between loops", python.version);
    assert!(problems < STOPS / 5, "{}: {problems}", python.version);
}

fn other(threads: &[PythonThread], main: u64) -> &PythonThread {
    threads.iter().find(|thread| thread.pthread != main).expect("the busy thread")
}

/// Checks that each function was called by one that calls it, and that its line belongs to it.
fn check_stack(version: &str, thread: &PythonThread, functions: &Value) {
    let names = names(thread);
    for (index, frame) in thread.frames.iter().enumerate() {
        let function = &functions[names[index]];
        let callers = function["callers"].as_array().expect("it is one of the functions");
        let is_called = names.get(index + 1).map_or(callers.is_empty(), |name| callers.iter().any(|may| may == name));
        assert!(is_called, "{version}: {index} of {names:?}");
        let line = u64::from(frame.position.line.or(frame.first_line).expect("a line"));
        let (first, last) = (function["first"].as_u64(), function["last"].as_u64());
        assert!(first <= Some(line) && Some(line) <= last, "{version}: line {line} of {}", names[index]);
    }
}

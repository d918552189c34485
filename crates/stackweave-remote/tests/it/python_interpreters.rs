//! Threads of several interpreters.

use stackweave_testkit::in_each_python;
use stackweave_testkit::pythons::Python;

use crate::program::{Program, names, thread};

in_each_python!(a_thread_has_the_frames_of_all_interpreters_it_is_in, check_interpreters);

fn check_interpreters(python: &Python) {
    let Some(program) = Program::start(python, "two_interpreters.py") else { return };
    let threads = program.python().threads();
    let number = |name: &str| program.described[name].as_u64().expect("a number");
    let (main, inside) = (thread(&threads, number("main")), thread(&threads, number("inside")));
    assert_eq!(threads.len(), 2, "{}", python.version);
    assert_eq!((names(main), &main.problem), (vec!["main", "<module>"], &None), "{}", python.version);
    let expected = ["waiting", "method", "<module>", "enter", "run", "_bootstrap_inner", "_bootstrap"];
    assert_eq!((names(inside), &inside.problem), (expected.to_vec(), &None), "{}", python.version);
    let names = [main, inside].map(|thread| thread.name.as_deref());
    assert_eq!(names, [Some("MainThread"), Some("Thread-1 (enter)")], "{}", python.version);
    let lines: Vec<_> = inside.frames.iter().take(3).filter_map(|frame| frame.position.line).collect();
    assert_eq!(lines, [4, 7, 8], "{}", python.version);
    assert!(inside.frames.iter().all(|frame| frame.activation.0 != 0), "{}", python.version);
    assert!(!main.has_gil && !inside.has_gil, "{}", python.version);
}

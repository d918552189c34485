//! Threads of another process have the names that its `threading` module assigns.

use stackweave_testkit::in_each_python;
use stackweave_testkit::pythons::Python;

use crate::program::{Program, thread};

in_each_python!(threads_have_the_names_that_the_interpreter_says, check_names);

fn check_names(python: &Python) {
    let program = Program::start(python, "named_threads.py").expect("it can do its work");
    let threads = program.python().threads();
    let described = program.described.as_object().expect("names by ident");
    assert_eq!(threads.len(), described.len(), "{}", python.version);
    for (ident, name) in described {
        let thread = thread(&threads, ident.parse().expect("a number"));
        assert_eq!(thread.name.as_deref(), name.as_str(), "{} {ident}", python.version);
    }
    assert_eq!(described.values().filter(|name| name.is_null()).count(), 1, "{}", python.version);
}

in_each_python!(the_main_thread_has_its_name_before_threading_is_there, check_main_thread);

fn check_main_thread(python: &Python) {
    let program = Program::start(python, "minimal.py").expect("it can do its work");
    let threads = program.python().threads();
    let names: Vec<_> = threads.iter().map(|thread| thread.name.as_deref()).collect();
    assert_eq!(names, [Some("MainThread")], "{}", python.version);
}

//! Tests the records of Python's allocators in each installed interpreter, with other allocators before and after the
//! hooks.

use std::process::Command;

use stackweave_cpython_tests::pythons::{Python, refused_pythons, script, shared_library};
use stackweave_testkit::{child, in_each_python};

const SECONDS: u32 = 300;

in_each_python!(recorded_blocks_are_those_that_python_allocates, check_blocks);

#[test]
fn recorded_blocks_are_those_that_a_refused_python_allocates() {
    refused_pythons().iter().filter(|python| python.minor >= 10).for_each(check_blocks);
}

fn check_blocks(python: &Python) {
    for below in ["", "malloc", "debug"] {
        let mut command = Command::new(&python.executable);
        command.arg("-B").arg(script("allocator_cases.py")).arg(shared_library()).env("PYTHONMALLOC", below);
        let output = child::run_for(&mut command, SECONDS);
        let text = child::text(&output);
        println!("{} {below}: {}", python.version, text.replace('\n', "; "));
        assert!(output.status.success(), "{} ({below}): {text}", python.version);
        assert!(text.contains("cases 12"), "{} ({below}): {text}", python.version);
    }
}

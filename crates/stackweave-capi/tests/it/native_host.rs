//! The example host in C++, without Python: every stack is what its worker knows it must be.

use std::process::{Command, Output};

use stackweave_testkit::child;

use crate::common::{make_cpp_host, run};

/// How often the host without a lock runs: its race may crash it before it is reported.
const RACES: usize = 20;

/// `STACKWEAVE_STRESS_SECONDS` makes the stress tests as long as one likes.
fn seconds() -> String {
    std::env::var("STACKWEAVE_STRESS_SECONDS").unwrap_or_else(|_| "2".into())
}

#[test]
fn workers_get_the_stacks_they_have() {
    let text = run(Command::new(make_cpp_host(&["native_host"]).join("native_host")).arg(seconds()));
    assert!(text.contains(" 254 distinct stacks, 0 wrong, 0 not whole"), "{text}");
}

/// The library itself is not instrumented: what is checked is the host, and the library's use of what both share.
#[test]
fn thread_sanitizer_has_nothing_to_say() {
    let build = make_cpp_host(&["native_host_tsan"]);
    let text = run(Command::new(build.join("native_host_tsan")).arg(seconds()));
    assert!(text.contains("0 wrong"), "{text}");
    // That it would say something: the same host without its lock.
    let racing = make_cpp_host(&["native_host_racing"]).join("native_host_racing");
    let mut outputs = (0..RACES).map(|_| child::run(Command::new(&racing).arg("1")));
    let is_found = |output: &Output| !output.status.success() && child::text(output).contains("data race");
    assert!(outputs.any(|output| is_found(&output)), "no data race was reported in {RACES} runs");
}

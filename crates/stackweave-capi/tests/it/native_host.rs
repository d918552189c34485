//! The example host in C++ without Python: each captured stack is the stack that its worker expects.

use std::process::{Command, Output};

use stackweave_testkit::child;

use crate::common::{make_cpp_host, run};

/// The number of runs of the host without a lock. A data race may crash it before the sanitizer reports the race.
const RACES: usize = 20;

/// Returns the duration of the stress tests, which `STACKWEAVE_STRESS_SECONDS` sets.
fn seconds() -> String {
    std::env::var("STACKWEAVE_STRESS_SECONDS").unwrap_or_else(|_| "2".into())
}

#[test]
fn workers_capture_the_stacks_that_they_expect() {
    let text = run(Command::new(make_cpp_host(&["native_host"]).join("native_host")).arg(seconds()));
    assert!(text.contains(" 254 distinct stacks, 0 wrong, 0 incomplete"), "{text}");
}

/// The library itself is not instrumented. This checks the host, and the library's use of memory that both share.
#[test]
fn thread_sanitizer_reports_no_data_race() {
    let build = make_cpp_host(&["native_host_tsan"]);
    let text = run(Command::new(build.join("native_host_tsan")).arg(seconds()));
    assert!(text.contains("0 wrong"), "{text}");
    // The sanitizer must report the race of the same host without its lock.
    let racing = make_cpp_host(&["native_host_racing"]).join("native_host_racing");
    let mut outputs = (0..RACES).map(|_| child::run(Command::new(&racing).arg("1")));
    let is_found = |output: &Output| !output.status.success() && child::text(output).contains("data race");
    assert!(outputs.any(|output| is_found(&output)), "no data race was reported in {RACES} runs");
}

//! The demo's own output, as a user sees it.

use std::process::Command;

/// Every function of ours on the way down, innermost first.
const WAY_DOWN: [&str; 7] = [
    "stackweave_demo::observe_stack",
    "stackweave_demo::sort::back_in_rust",
    "compare_in_c",
    "qsort",
    "sort_in_c",
    "stackweave_demo::sort::sort_through_c",
    "stackweave_demo::main",
];

#[test]
#[cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), ignore = "capture is unsupported here")]
fn demo_prints_the_whole_stack_in_order() {
    let output = Command::new(env!("CARGO_BIN_EXE_stackweave-demo")).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");

    let mut lines = text.lines();
    for function in WAY_DOWN {
        assert!(lines.any(|line| line.contains(function)), "{function} is missing or out of order:\n{text}");
    }
    for end in ["_start", "end of stack", "Stackweave", "glibc backtrace", "Both return the same stack."] {
        assert!(lines.any(|line| line.contains(end)), "{end} is missing or out of order:\n{text}");
    }
}

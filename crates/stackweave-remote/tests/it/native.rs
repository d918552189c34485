//! Compares native stacks of another process with gdb's, and with what the program is known to do.

use std::collections::BTreeMap;
use std::process::Command;

use stackweave_testkit::child;

use crate::target::{Program, names, thread_in};

/// Prints, for each thread, the addresses of its frames on the stack: without the frames that gdb adds for inlined
/// calls and for tail calls.
const GDB: &str = "python
import gdb
for thread in gdb.selected_inferior().threads():
    thread.switch()
    frame, places = gdb.newest_frame(), []
    while frame is not None:
        if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
            places.append(hex(frame.pc()))
        frame = frame.older()
    print('frames', thread.ptid[1], *places)
end
";

fn gdbs_frames(process: u32) -> Option<BTreeMap<u32, Vec<u64>>> {
    let folder = stackweave_testkit::folder::Folder::new();
    let script = folder.write("frames.gdb", GDB.as_bytes());
    let mut command = Command::new("gdb");
    command.args(["-nx", "-batch", "-p", &process.to_string(), "-ex", "set backtrace past-main on", "-x"]).arg(script);
    let output = command.env("DEBUGINFOD_URLS", "").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = |line: &str| {
        let mut words = line.strip_prefix("frames ")?.split(' ');
        let task = words.next()?.parse().ok()?;
        let address = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok();
        Some((task, words.filter_map(address).collect()))
    };
    let found: BTreeMap<u32, Vec<u64>> = text.lines().filter_map(line).collect();
    assert!(!found.is_empty(), "{}", child::text(&output));
    Some(found)
}

#[test]
fn frames_are_those_of_gdb() {
    let program = Program::build();
    let target = program.start("places").settled();
    let stacks = target.stacks();
    let Some(expected) = gdbs_frames(target.number()) else { return };
    assert_eq!(stacks.threads.len(), 6);
    for thread in &stacks.threads {
        let own = thread.frames.iter().filter(|frame| !frame.is_inlined);
        let addresses: Vec<u64> = own.filter_map(|frame| frame.address).collect();
        assert_eq!(addresses, expected[&thread.task], "{:#x?} {:?}", expected[&thread.task], names(thread));
        assert_eq!((thread.problem.as_deref(), thread.state), (None, 'S'));
    }
}

/// Asserts that `names` contains these names in this order, with or without others between them.
fn assert_order(names: &[&str], expected: &[&str]) {
    let mut rest = names.iter();
    assert!(expected.iter().all(|name| rest.any(|other| other == name)), "{expected:?} in {names:?}");
}

#[test]
fn frames_of_threads_have_names_and_lines() {
    let program = Program::build();
    let target = program.start("places").settled();
    let stacks = target.stacks();
    let of = |function| names(thread_in(&stacks, function));
    assert_eq!(
        of("in_deep_calls").iter().filter(|name| **name == "call_deep").count(),
        13,
        "{:?}",
        of("in_deep_calls")
    );
    assert_order(&of("in_deep_calls"), &["stand_still", "wait_here", "call_deep", "in_deep_calls"]);
    assert_order(&of("in_handler"), &["stand_still", "handler", "interrupt_itself", "call_deep", "in_handler"]);
    assert_order(
        &of("in_handler_on_other_stack"),
        &["stand_still", "handler", "crash", "call_deep", "in_handler_on_other_stack"],
    );
    assert_order(&of("in_callback"), &["stand_still", "compare", "in_callback"]);
    assert_order(&of("at_noreturn_end"), &["stand_still", "never_returns", "ends_with_a_call", "at_noreturn_end"]);
    assert_order(&names(&stacks.threads[0]), &["wait_in_many_places", "main", "_start"]);
    let handler = thread_in(&stacks, "in_handler").frames.iter().find(|frame| &*frame.name == "handler").unwrap();
    assert!(handler.filename.as_ref().unwrap().ends_with("target.c"), "{handler:?}");
    let source = include_str!("target/target.c");
    let line = 1 + source.lines().position(|line| line == "static void handler(int signal) {").unwrap();
    assert_eq!(handler.position.line.map(|line| line as usize), Some(line + 2));
    assert_eq!(handler.module.as_deref(), Some("target"));
    let inlined = thread_in(&stacks, "in_callback").frames.iter().find(|frame| &*frame.name == "stand_still").unwrap();
    assert!(!inlined.is_inlined);
}

#[test]
fn a_program_whose_file_was_deleted_keeps_its_names() {
    let program = Program::build();
    let target = program.start("places").settled();
    let before = target.stacks();
    std::fs::remove_file(program.path()).unwrap();
    let after = target.stacks();
    let all = |stacks: &stackweave_remote::ProcessStacks| -> Vec<Vec<String>> {
        stacks.threads.iter().map(|thread| names(thread).into_iter().map(str::to_owned).collect()).collect()
    };
    assert_eq!(all(&before), all(&after));
    let frame = |stacks: &stackweave_remote::ProcessStacks| thread_in(stacks, "in_callback").frames[1].clone();
    assert_eq!(frame(&before), frame(&after));
    assert_eq!(frame(&after).module.as_deref(), Some("target"));
}

#[test]
fn the_new_file_of_a_replaced_program_is_not_used() {
    let program = Program::build();
    let target = program.start("places").settled();
    let before = names(thread_in(&target.stacks(), "in_callback")).len();
    std::fs::remove_file(program.path()).unwrap();
    std::fs::copy("/proc/self/exe", program.path()).unwrap();
    let stacks = target.stacks();
    assert_eq!(names(thread_in(&stacks, "in_callback")).len(), before);
}

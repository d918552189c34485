//! Trees computed by hand, recorded with explicit times and read back: correct to the nanosecond.

use std::thread;

use stackweave_recording::timing::{AnomalyCounts, Outcome, Timing};
use stackweave_testkit::folder::Folder;

use super::{Table, event, events, frame, options, stop_and_read, timing, timing_with};

/// Records starts of these names, and ends where there is none, at these times.
fn record(timing: &Timing, steps: &[(u64, Option<&str>)]) {
    for (at, begins) in steps {
        match begins {
            Some(name) => _ = timing.at(*at).push(frame(name)),
            None => assert!(timing.at(*at).pop()),
        }
    }
}

#[test]
fn a_recursive_function() {
    let folder = Folder::new();
    let timing = timing(&folder);
    // fib(3): 100..200, of which fib(2) 110..160 with fib(1) 115..125 and fib(0) 130..133; fib(1) 170..177.
    let fib = Some("fib");
    let begins_and_ends = [
        (100, fib),
        (110, fib),
        (115, fib),
        (125, None),
        (130, fib),
        (133, None),
        (160, None),
        (170, fib),
        (177, None),
        (200, None),
    ];
    record(&timing, &begins_and_ends);
    // The edge from fib to fib is open from the first inner call on: 110..160 and 170..177.
    let expected = Table::new(&[("fib", [5, 1, 100, 100])], &[("fib", "fib", [4, 2, 57, 57])]);
    assert_eq!(stop_and_read(&timing), expected);
    assert_eq!(timing.anomalies(), AnomalyCounts::default());
}

#[test]
fn two_mutually_recursive_functions() {
    let folder = Folder::new();
    let timing = timing(&folder);
    let (even, odd) = (Some("even"), Some("odd"));
    let steps = [(0, even), (1, odd), (3, even), (6, odd), (10, None), (15, None), (21, None), (28, None)];
    record(&timing, &steps);
    let functions = [("even", [2, 1, 16, 28]), ("odd", [2, 1, 12, 20])];
    let callers = [("even", "odd", [2, 1, 12, 20]), ("odd", "even", [1, 1, 8, 12])];
    assert_eq!(stop_and_read(&timing), Table::new(&functions, &callers));
}

#[test]
fn a_failed_phase_has_its_time_and_its_reason() {
    let folder = Folder::new();
    let timing = timing(&folder);
    timing.at(1_000_000_007).push_run(frame("compile"), br#"{"id": 1}"#);
    timing.at(1_000_000_010).push_code(frame("forward"), 321, 2);
    timing.at(1_000_000_015).push_with(frame("helper"), br#"{"why": "inlined"}"#);
    assert!(timing.at(1_000_000_025).pop_with(Outcome::Failed, br#"{"error": "ValueError: no"}"#));
    assert!(timing.at(1_000_000_026).pop_with(Outcome::Failed, b""));
    assert!(timing.at(1_000_000_127).pop_with(Outcome::Done, br#"{"graphs": 1}"#));
    let expected = Table::new(
        &[("compile", [1, 1, 104, 120]), ("forward", [1, 1, 6, 16]), ("helper", [1, 1, 10, 10])],
        &[("compile", "forward", [1, 1, 6, 16]), ("forward", "helper", [1, 1, 10, 10])],
    );
    assert_eq!(stop_and_read(&timing), expected);
    let expected = [
        event("begin-run", 1_000_000_007, "compile", r#"{"id": 1}"#),
        event("begin-code", 1_000_000_010, "forward", ""),
        event("begin-with", 1_000_000_015, "helper", r#"{"why": "inlined"}"#),
        event("end-failed", 1_000_000_025, "", r#"{"error": "ValueError: no"}"#),
        event("end-failed", 1_000_000_026, "", ""),
        event("end-with", 1_000_000_127, "", r#"{"graphs": 1}"#),
    ];
    assert_eq!(events(&timing.recorder().path()), expected);
}

#[test]
fn a_phase_that_is_left_open_ends_with_the_phase_around_it() {
    let folder = Folder::new();
    let timing = timing(&folder);
    let outer = timing.at(10).push(frame("outer"));
    timing.at(20).push(frame("inner"));
    timing.at(25).push(frame("innermost"));
    assert!(timing.at(60).close(outer, Outcome::Done, b""));
    assert_eq!((timing.depth(), timing.anomalies().left_open), (0, 2));
    timing.at(70).push(frame("outer"));
    assert!(timing.at(75).pop());
    let expected = Table::new(
        &[("outer", [2, 2, 15, 55]), ("inner", [1, 1, 5, 40]), ("innermost", [1, 1, 35, 35])],
        &[("outer", "inner", [1, 1, 5, 40]), ("inner", "innermost", [1, 1, 35, 35])],
    );
    assert_eq!(stop_and_read(&timing), expected);
    let kinds: Vec<String> = events(&timing.recorder().path()).into_iter().map(|event| event.kind).collect();
    assert_eq!(kinds, ["begin", "begin", "begin", "end-left-open", "end-left-open", "end", "begin", "end"]);
}

#[test]
fn threads_have_separate_stacks() {
    let folder = Folder::new();
    let timing = timing(&folder);
    timing.at(0).push(frame("main"));
    thread::scope(|scope| {
        for thread in 0..4_u64 {
            let timing = &timing;
            scope.spawn(move || {
                assert_eq!((timing.depth(), timing.current()), (0, None));
                let start = 100 * thread;
                timing.at(start).push(frame("main"));
                timing.at(start + 10).push(frame("work"));
                assert!(timing.at(start + 10 + thread).pop() && timing.at(start + 50).pop());
                assert_eq!(timing.depth(), 0);
            });
        }
    });
    timing.with_open(|open| assert_eq!(open, [frame("main")]));
    assert!(timing.at(1_000).pop());
    // Main: 1,000 and four times 50, of which work has 0 + 1 + 2 + 3.
    let expected =
        Table::new(&[("main", [5, 5, 1_194, 1_200]), ("work", [4, 4, 6, 6])], &[("main", "work", [4, 4, 6, 6])]);
    assert_eq!(stop_and_read(&timing), expected);
}

#[test]
fn several_recordings_are_independent() {
    let folder = Folder::new();
    let [a, b, c] = ["a.swv", "b.swv", "c.swv"].map(|name| timing_with(options(folder.file(name))));
    let first = a.at(0).push(frame("a"));
    b.at(5).push(frame("b"));
    a.at(10).push(frame("a inside"));
    let third = c.at(12).push(frame("c"));
    assert!(b.at(15).pop() && a.at(30).pop());
    assert!(!b.at(31).close(first, Outcome::Done, b""), "the token is another recording's");
    assert_eq!((a.depth(), b.depth(), c.depth(), b.current(), a.current()), (1, 0, 1, None, Some(frame("a"))));
    assert!(c.at(40).close(third, Outcome::Done, b"") && a.at(50).close(first, Outcome::Done, b""));
    assert!(!b.at(60).pop());
    let of_a = Table::new(&[("a", [1, 1, 30, 50]), ("a inside", [1, 1, 20, 20])], &[("a", "a inside", [1, 1, 20, 20])]);
    assert_eq!(stop_and_read(&a), of_a);
    assert_eq!(stop_and_read(&b), Table::new(&[("b", [1, 1, 10, 10])], &[]));
    assert_eq!(stop_and_read(&c), Table::new(&[("c", [1, 1, 28, 28])], &[]));
    assert_eq!(b.anomalies(), AnomalyCounts { unmatched_pops: 1, lost_tokens: 1, ..AnomalyCounts::default() });
    assert_eq!((a.anomalies(), c.anomalies()), (AnomalyCounts::default(), AnomalyCounts::default()));
}

#[test]
fn a_thread_that_ends_ends_its_open_phases() {
    let folder = Folder::new();
    let timing = timing(&folder);
    thread::scope(|scope| {
        let ending = scope.spawn(|| {
            timing.at(10).push(frame("outer"));
            timing.at(30).push(frame("inner"));
            timing.at(33).push(frame("done"));
            timing.at(40).pop();
        });
        // A scope does not wait for the destructors of its threads.
        ending.join().unwrap();
    });
    assert_eq!(timing.anomalies(), AnomalyCounts { left_open: 2, ..AnomalyCounts::default() });
    let expected = Table::new(
        &[("outer", [1, 1, 20, 30]), ("inner", [1, 1, 3, 10]), ("done", [1, 1, 7, 7])],
        &[("outer", "inner", [1, 1, 3, 10]), ("inner", "done", [1, 1, 7, 7])],
    );
    assert_eq!(stop_and_read(&timing), expected);
}

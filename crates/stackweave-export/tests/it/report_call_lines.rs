//! The costs of lines by the calls that they make.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::Value;
use stackweave_export::{ExportOptions, Format, export};
use stackweave_profile::AggregateOptions;
use stackweave_recording::Recording;
use stackweave_tapes::{Tape, span};
use stackweave_testkit::folder::Folder;

use crate::common::report::Page;
use crate::common::traced::{Called, Traced, random_traced, traced};

/// Calls, their time, and the time that counts for the line; by caller, line and callee.
type Rows = BTreeMap<(String, u64, String), [u64; 3]>;

/// Returns an export as text, of a recording that may have lost events.
fn text(recording: &Recording, format: Format, range: Option<Range<u64>>) -> String {
    let part = AggregateOptions { range, ..AggregateOptions::default() };
    let options = ExportOptions { part, ..ExportOptions::default() };
    let folder = Folder::new();
    let path = folder.file("out");
    export(recording, format, &path, &options, (None, &mut |_| {})).unwrap();
    std::fs::read_to_string(path).unwrap()
}

/// Returns the rows of each thread.
fn rows(recording: &Recording, range: Option<Range<u64>>) -> BTreeMap<u64, Rows> {
    let page = Page::read(&text(recording, Format::Report, range));
    let names = page.functions();
    let name = |function: u64| names[usize::try_from(function).unwrap()].clone();
    let mut frames = page.columns(&page.head["frames"]);
    let (functions, lines) = (frames.plain(), frames.plain());
    let of_thread = |info: &Value| {
        let mut columns = page.columns(&info["block"]);
        let columns_of: [Vec<u64>; 5] = core::array::from_fn(|_| columns.plain());
        let [frame, called, calls, total, of_line] = columns_of;
        assert!(columns.is_at_end() && info["rows"] == frame.len());
        let mut rows = Rows::new();
        for row in 0..frame.len() {
            let at = usize::try_from(frame[row]).unwrap();
            let key = (name(functions[at]), lines[at], name(called[row]));
            assert!(rows.insert(key, [calls[row], total[row], of_line[row]]).is_none(), "a pair is there twice");
        }
        (info["thread"].as_u64().unwrap(), rows)
    };
    page.head["callLines"].as_array().unwrap().iter().map(of_thread).collect()
}

fn one_thread(tape: Tape) -> Rows {
    let mut threads = rows(&tape.recording(), None);
    assert_eq!(threads.keys().collect::<Vec<_>>(), [&0]);
    threads.remove(&0).unwrap()
}

fn row(from: &str, line: u64, called: &str, numbers: [u64; 3]) -> ((String, u64, String), [u64; 3]) {
    ((from.to_owned(), line, called.to_owned()), numbers)
}

/// Starts a process with one thread and with functions that begin at these lines of one file.
fn started<const N: usize>(functions: [(&str, u32); N]) -> (Tape, [u32; N]) {
    let mut tape = Tape::new();
    tape.declare();
    tape.thread(1, 1, "main");
    let functions = functions.map(|(name, line)| tape.python(name, "/app/a.py", line));
    (tape, functions)
}

/// Calls and returns: `Some((function, caller and its line))` or a return, each with its time.
type Step = (u64, Option<(u32, Option<(u32, u32)>)>);

fn play(tape: &mut Tape, thread: u32, steps: &[Step]) {
    for (ticks, step) in steps {
        match step {
            Some((function, caller)) => tape.call((thread, *ticks), Called(Tape::at(*function, 0), *caller)),
            None => tape.end((thread, *ticks)),
        }
    }
}

#[test]
fn a_line_has_its_calls_and_their_time() {
    let (mut tape, [main, work, leaf]) = started([("main", 2), ("work", 20), ("leaf", 40)]);
    let steps = [
        (100, Some((main, None))),
        (110, Some((work, Some((main, 6))))),
        (120, Some((leaf, Some((work, 22))))),
        (150, None),
        (160, Some((leaf, Some((work, 24))))),
        (165, None),
        (200, None),
        // Another function in the same line, and the first one from another line.
        (210, Some((leaf, Some((main, 6))))),
        (213, None),
        (220, Some((work, Some((main, 8))))),
        (221, None),
        (300, None),
    ];
    play(&mut tape, 1, &steps);
    let expected = [
        row("main", 6, "work", [1, 90, 90]),
        row("main", 6, "leaf", [1, 3, 3]),
        row("main", 8, "work", [1, 1, 1]),
        row("work", 22, "leaf", [1, 30, 30]),
        row("work", 24, "leaf", [1, 5, 5]),
    ];
    assert_eq!(one_thread(tape), Rows::from(expected));
}

/// Records `fib` three times nested, and once more.
fn recursion() -> Tape {
    let (mut tape, [main, fib]) = started([("main", 2), ("fib", 20)]);
    let inside = Some((fib, 22));
    let steps = [
        (0, Some((main, None))),
        (10, Some((fib, Some((main, 6))))),
        (20, Some((fib, inside))),
        (30, Some((fib, inside))),
        (50, None),
        (60, None),
        (70, Some((fib, inside))),
        (75, None),
        (100, None),
        (200, None),
    ];
    play(&mut tape, 1, &steps);
    tape
}

#[test]
fn the_time_of_nested_calls_is_counted_once() {
    let expected = [row("main", 6, "fib", [1, 90, 90]), row("fib", 22, "fib", [3, 45, 45])];
    assert_eq!(one_thread(recursion()), Rows::from(expected));
}

#[test]
fn only_the_time_in_the_selected_range_counts() {
    let recording = recursion().recording();
    let of = |range| rows(&recording, Some(range)).remove(&0).unwrap();
    let expected = |[calls, time]: [u64; 2], inside: [u64; 2]| {
        Rows::from([
            row("main", 6, "fib", [calls, time, time]),
            row("fib", 22, "fib", [inside[0], inside[1], inside[1]]),
        ])
    };
    assert_eq!(of(25..40), expected([1, 15], [2, 15]));
    assert_eq!(of(15..30), expected([1, 15], [1, 10]));
    assert_eq!(of(40..72), expected([1, 32], [3, 22]));
}

#[test]
fn a_line_of_several_functions_counts_no_time_twice() {
    // even() and odd() are in one line, and so are their calls: 20 belongs to both.
    let (mut tape, [main, even, odd]) = started([("main", 2), ("even", 20), ("odd", 20)]);
    let steps = [
        (0, Some((main, None))),
        (10, Some((even, Some((main, 4))))),
        (20, Some((odd, Some((even, 20))))),
        (30, Some((even, Some((odd, 20))))),
        (40, Some((odd, Some((even, 20))))),
        (50, None),
        (70, None),
        (90, None),
        (100, None),
        (110, None),
    ];
    play(&mut tape, 1, &steps);
    let expected =
        [row("main", 4, "even", [1, 90, 90]), row("even", 20, "odd", [2, 70, 70]), row("odd", 20, "even", [1, 40, 0])];
    assert_eq!(one_thread(tape), Rows::from(expected));
}

#[test]
fn a_generator_counts_where_it_is_resumed() {
    // The functions of the table at `traced`: main was open, and is no call; its line 6 called work and other.
    let expected = [
        row("main", 6, "work", [3, 310, 310]),
        row("main", 6, "other", [2, 170, 170]),
        row("work", 24, "builtins.len", [1, 20, 20]),
    ];
    assert_eq!(one_thread(traced()), Rows::from(expected));

    let (mut tape, [main, one, other]) = started([("main", 2), ("one", 20), ("other", 40)]);
    let generator = Tape::at(other, 0);
    tape.call((1, 0), Called(Tape::at(main, 0), None));
    tape.generator((1, 10), Called(generator, Some((main, 4))), 0x10);
    tape.pause((1, 15));
    tape.call((1, 20), Called(Tape::at(one, 0), Some((main, 6))));
    tape.resume((1, 30), Called(generator, Some((one, 22))), 0x10);
    tape.call((1, 31), Called(span("builtins.len"), Some((other, 44))));
    tape.end((1, 32));
    tape.end((1, 37));
    tape.end((1, 60));
    tape.end((1, 70));
    let expected = [
        row("main", 4, "other", [1, 5, 5]),
        row("main", 6, "one", [1, 40, 40]),
        row("one", 22, "other", [1, 7, 7]),
        row("other", 44, "builtins.len", [1, 1, 1]),
    ];
    assert_eq!(one_thread(tape), Rows::from(expected));
}

#[test]
fn spans_that_were_open_are_no_calls_and_have_time() {
    let (mut tape, [main, work]) = started([("main", 2), ("work", 20)]);
    tape.open((1, 100), Some(Called(Tape::at(main, 0), None)), 0);
    tape.open((1, 100), Some(Called(Tape::at(work, 0), Some((main, 6)))), 1);
    tape.call((1, 110), Called(span("builtins.len"), Some((work, 22))));
    tape.end((1, 120));
    tape.end((1, 150));
    tape.call((1, 160), Called(Tape::at(work, 0), Some((main, 6))));
    // Its end was not recorded: it was open at the last event.
    tape.call((1, 170), Called(span("builtins.len"), Some((work, 22))));
    let expected = [row("main", 6, "work", [1, 60, 60]), row("work", 22, "builtins.len", [2, 10, 10])];
    assert_eq!(one_thread(tape), Rows::from(expected));
}

#[test]
fn threads_are_counted_separately() {
    let (mut tape, [main, work]) = started([("main", 2), ("work", 20)]);
    tape.thread(2, 2, "worker");
    tape.thread(3, 3, "idle");
    let both = |until| [(10, Some((work, Some((main, 4))))), (until, None)];
    play(&mut tape, 1, &both(20));
    play(&mut tape, 2, &both(50));
    play(&mut tape, 3, &[(10, Some((work, None))), (30, None)]);
    let threads = rows(&tape.recording(), None);
    let expected = |time| Rows::from([row("main", 4, "work", [1, time, time])]);
    assert_eq!(threads, BTreeMap::from([(0, expected(10)), (1, expected(40))]));
}

/// Returns by tid and line how many spans were called from it, and how long any of them was open, from the markers of
/// another export.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "times are whole and small")]
fn by_markers(recording: &Recording) -> BTreeMap<(String, String), (u64, u64)> {
    let profile: Value = serde_json::from_str(&text(recording, Format::Firefox, None)).unwrap();
    let mut spans: BTreeMap<(String, String), Vec<(u64, u64)>> = BTreeMap::new();
    for thread in profile["threads"].as_array().unwrap() {
        let markers = &thread["markers"];
        for (row, data) in markers["data"].as_array().unwrap().iter().enumerate() {
            let Some(details) = data["details"].as_str() else { continue };
            let details: Value = serde_json::from_str(details).unwrap();
            let Some(line) = details["called from"].as_str().filter(|line| line.contains(".py:")) else { continue };
            let time = |column: &str| (markers[column][row].as_f64().unwrap() * 1e6).round() as u64;
            let tid = thread["tid"].to_string().replace('"', "");
            spans.entry((tid, line.to_owned())).or_default().push((time("startTime"), time("endTime")));
        }
    }
    let counted = |mut spans: Vec<(u64, u64)>| {
        spans.sort_unstable();
        let (mut open, mut until) = (0, 0);
        for (from, to) in &spans {
            open += to.max(&until) - from.max(&until);
            until = until.max(*to);
        }
        (spans.len() as u64, open)
    };
    spans.into_iter().map(|(key, spans)| (key, counted(spans))).collect()
}

#[test]
fn the_time_of_a_line_is_that_in_which_any_call_of_it_was_open() {
    for seed in 0..6 {
        let recording = random_traced(seed, 3000).recording();
        let mut lines: BTreeMap<(String, String), (u64, u64)> = BTreeMap::new();
        for (thread, rows) in rows(&recording, None) {
            for ((caller, line, _), [calls, total, of_line]) in rows {
                assert!(of_line <= total);
                let number: u32 = caller.trim_start_matches("Class.method").parse().unwrap();
                let line = format!("/app/f{}.py:{line}", number % 3);
                let sum = lines.entry(((thread + 1).to_string(), line)).or_default();
                *sum = (sum.0 + calls, sum.1 + of_line);
            }
        }
        assert!(lines.len() > 100);
        assert_eq!(lines, by_markers(&recording));
    }
}

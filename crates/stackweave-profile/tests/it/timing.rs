//! Phases compared with figures that were computed by hand, to the nanosecond.

use serde_json::json;
use stackweave_profile::timing::read_timing;
use stackweave_profile::{AggregateOptions, Filter, View};
use stackweave_recording::file::ProcessStart;
use stackweave_tapes::phases::{PhaseTape, code};
use stackweave_tapes::{Tape, span};

use crate::common::timing::{PhasesExt as _, check_equations, costs, edges, functions, name, phases, report, row};

fn pair(from: &str, to: &str, costs: crate::common::timing::Costs) -> (String, String, crate::common::timing::Costs) {
    (from.to_owned(), to.to_owned(), costs)
}

fn of(name: &str, costs: crate::common::timing::Costs) -> (String, crate::common::timing::Costs) {
    (name.to_owned(), costs)
}

#[test]
fn recursion_counts_time_once_and_calls_all() {
    let (mut tape, [main, fib]) = (PhaseTape::new(), ["main", "fib"].map(code));
    // main 0..100, fib 10..90, in it fib 20..80, in that fib 30..40 and fib 50..75.
    tape.push(0, main).push(10, fib).push(20, fib).push(30, fib).pop(40).push(50, fib).pop(75).pop(80).pop(90).pop(100);
    let report = tape.report();
    check_equations(&report);
    assert_eq!(functions(&report), [of("fib", (4, 1, 80, 80, 175)), of("main", (1, 1, 20, 100, 100))]);
    let expected = [pair("fib", "fib", (3, 1, 60, 60, 95)), pair("main", "fib", (1, 1, 20, 80, 80))];
    assert_eq!(edges(&report), expected);
}

#[test]
fn mutual_recursion_has_its_edges() {
    let (mut tape, [even, odd]) = (PhaseTape::new(), ["even", "odd"].map(code));
    // even 0..100 > odd 10..90 > even 20..70 > odd 30..60; then even 200..210 alone.
    tape.push(0, even).push(10, odd).push(20, even).push(30, odd).pop(60).pop(70).pop(90).pop(100);
    tape.push(200, even).pop(210);
    let report = tape.report();
    check_equations(&report);
    assert_eq!(functions(&report), [of("even", (3, 2, 50, 110, 160)), of("odd", (2, 1, 60, 80, 110))]);
    let expected = [pair("even", "odd", (2, 1, 60, 80, 110)), pair("odd", "even", (1, 1, 20, 50, 50))];
    assert_eq!(edges(&report), expected);
    assert_eq!(costs(row(&report, "even").outermost), (2, 2, 30, 110, 110));
}

#[test]
fn failures_and_phases_left_open_are_counted_by_function() {
    let (mut tape, [compile, parse, lower]) = (PhaseTape::new(), ["compile", "parse", "lower"].map(code));
    tape.push(0, compile).push(10, parse).fail(20, r#"{"error": "ValueError: no"}"#);
    tape.push(30, parse).push(35, lower).leave_open(50).fail(50, "").push(60, parse).pop(70).pop(80);
    tape.push(90, lower).push(92, lower);
    tape.unmatched(92, span("unmatched pop"), &[code("step"), code("main")]);
    let report = tape.report();
    check_equations(&report);
    assert_eq!(functions(&report)[2], of("parse", (3, 3, 25, 40, 40)));
    let anomalies = |name: &str| {
        let row = row(&report, name);
        (row.failed, row.left_open, row.unfinished)
    };
    assert_eq!([anomalies("compile"), anomalies("parse"), anomalies("lower")], [(0, 0, 0), (2, 0, 0), (0, 1, 2)]);
    assert_eq!(report.counts.unfinished, 2);
    let anomalies = &report.anomalies;
    assert_eq!((anomalies.unmatched_pops, anomalies.left_open, anomalies.unfinished), (1, 1, 2));
    assert_eq!(
        report.problems(),
        [
            "1 pop was left out, since nothing was open, the first at model.py:10 in step.",
            "1 phase left open when an outer phase ended: lower.",
            "2 phases without an end in the recording: lower 2 times.",
        ]
    );
}

#[test]
fn balanced_phases_have_no_problems() {
    let mut tape = PhaseTape::new();
    tape.push(0, code("a")).fail(5, "");
    assert!(tape.report().problems().is_empty());
}

#[test]
fn bytecode_and_inline_depth_are_read_from_all_events() {
    let (mut tape, [f, g, h]) = (PhaseTape::new(), ["f", "g", "h"].map(code));
    tape.push_code(0, f, 20, 0).push_code(100, f, 20, 3).pop(200).pop(600);
    tape.push_with(600, g, r#"{"bytecode_count": 7, "inline_depth": 2, "note": "x"}"#).pop(670);
    tape.push_with(700, h, r#"{"note": "x"}"#).pop(701);
    let report = tape.report();
    let code = |name: &str| {
        let row = row(&report, name);
        (row.bytecode_count, row.inline_depth.clone(), row.ns_per_bytecode())
    };
    assert_eq!(code("f"), (Some(20), Some(0..=3), Some(600.0 / 40.0)));
    assert_eq!(code("g"), (Some(7), Some(2..=2), Some(10.0)));
    assert_eq!(code("h"), (None, None, None));
}

#[test]
fn runs_have_attributes_and_their_phases() {
    let [forward, inline] = ["forward", "inline"].map(code);
    let [tracing, backend, lower] = ["tracing", "backend", "lower"].map(span);
    let mut tape = PhaseTape::new();
    tape.push(0, tracing).pop(5);
    tape.push_run(10, forward, r#"{"compile_id": "0/0", "attempts": 1}"#);
    tape.push(20, tracing).push(30, inline).push(40, tracing).pop(50).pop(60).pop(70);
    tape.push(100, backend).push(110, lower).fail(150, "").pop(160);
    tape.pop_with(210, r#"{"attempts": 2, "graphs": 1}"#);
    tape.push_run(300, forward, "").fail(310, r#"{"error": "Unsupported: x"}"#);
    let report = tape.report();
    check_equations(&report);
    let [first, second] = report.runs.as_slice() else { panic!("{:?}", report.runs) };
    assert_eq!((first.number, second.number, first.parent, second.parent), (1, 2, None, None));
    assert_eq!((name(&report, first.function), first.began_ns, first.duration_ns), ("forward".to_owned(), 10, 200));
    assert_eq!((first.failed, first.unfinished, second.failed, second.duration_ns), (false, false, true, 10));
    assert_eq!(json!(first.attributes), json!({"compile_id": "0/0", "attempts": 2, "graphs": 1}));
    assert_eq!(json!(second.attributes), json!({"error": "Unsupported: x"}));
    let expected = [("backend", 1, 60), ("tracing", 2, 50), ("lower", 1, 40)];
    assert_eq!(phases(&report, first), expected.map(|(name, calls, ns)| (name.to_owned(), calls, ns)));
    assert_eq!((first.phases_count, first.deepest, second.phases_count, second.deepest), (5, 3, 0, 0));
}

#[test]
fn nested_runs_have_rows_and_count_for_both() {
    let [outer, inner] = ["outer", "inner"].map(code);
    let [backend, lower, nested] = ["backend", "lower", "nested"].map(span);
    let mut tape = PhaseTape::new();
    tape.push_run(0, outer, "").push(10, lower).push(20, backend).push_run(30, nested, "");
    tape.push(35, lower).pop(40).push_run(50, inner, "").push(52, backend).pop(62).pop(70).pop(80);
    tape.pop(90).pop(95).pop(100);
    let report = tape.report();
    let about = |number: usize| {
        let run = &report.runs[number - 1];
        (name(&report, run.function), run.parent, run.phases_count, run.deepest)
    };
    assert_eq!(about(1), ("outer".to_owned(), None, 6, 5));
    assert_eq!(about(2), ("nested".to_owned(), Some(1), 3, 2));
    assert_eq!(about(3), ("inner".to_owned(), Some(2), 1, 1));
    let named = |number: usize| phases(&report, &report.runs[number - 1]);
    let of = |name: &str, calls, ns| (name.to_owned(), calls, ns);
    // Inside of the outermost run, lower was open all the time: its nested time counts once.
    assert_eq!(named(1), [of("lower", 2, 85), of("backend", 2, 70), of("nested", 1, 50)]);
    assert_eq!(named(2), [of("backend", 1, 10), of("lower", 1, 5)]);
    assert_eq!(named(3), [of("backend", 1, 10)]);
}

#[test]
fn unfinished_runs_and_runs_left_open_are_marked() {
    let [outer, inner, last] = ["outer", "inner", "last"].map(code);
    let mut tape = PhaseTape::new();
    tape.push(0, outer).push_run(10, inner, r#"{"id": 1}"#).leave_open(40).pop(40);
    tape.push_run(50, last, r#"{"id": 2}"#).push(60, span("lower")).pop(75);
    let report = tape.report();
    let row = |place: usize| {
        let run = &report.runs[place];
        (run.duration_ns, run.left_open, run.unfinished, run.failed, run.attributes["id"].as_u64().unwrap())
    };
    assert_eq!(row(0), (30, true, false, false, 1));
    assert_eq!(row(1), (25, false, true, false, 2));
    assert_eq!(phases(&report, &report.runs[1]), [("lower".to_owned(), 1, 15)]);
}

#[test]
fn threads_are_separate_and_can_be_selected() {
    let mut tape = PhaseTape::new();
    tape.tape.thread(1, 100, "main");
    tape.tape.thread(2, 200, "worker");
    let [a, b] = ["a", "b"].map(code);
    tape.on_thread(1).push_run(0, a, "").push(10, b);
    tape.on_thread(2).push_run(5, b, "").push(20, a).fail(30, "");
    tape.on_thread(1).pop(50).pop(60);
    tape.on_thread(2).pop(45);
    let process = tape.tape.process();
    let all = report(std::slice::from_ref(&process), &AggregateOptions::default());
    check_equations(&all);
    assert_eq!(functions(&all), [of("a", (2, 2, 30, 70, 70)), of("b", (2, 2, 70, 80, 80))]);
    let runs: Vec<_> = all.runs.iter().map(|run| (run.number, run.thread, &*run.thread_name, run.began_ns)).collect();
    assert_eq!(runs, [(1, 100, "main", 0), (2, 200, "worker", 5)]);
    let one = AggregateOptions { threads: vec!["worker".to_owned()], ..AggregateOptions::default() };
    let one = report(&[process], &one);
    assert_eq!(functions(&one), [of("a", (1, 1, 10, 10, 10)), of("b", (1, 1, 30, 40, 40))]);
    assert_eq!((one.runs.len(), one.runs[0].number, row(&one, "a").failed), (1, 1, 1));
}

#[test]
fn processes_share_one_time_axis() {
    let process = |pid: u32, started: i64, name: &str| {
        let start = ProcessStart { pid, started_wall_ns: started, ..ProcessStart::default() };
        let mut tape = PhaseTape::on(Tape::started(&start));
        tape.push_run(0, code("compile"), &format!(r#"{{"by": "{name}"}}"#)).push(10, span("lower")).pop(30).pop(40);
        tape.tape.process()
    };
    let processes = [process(7, 1_000_000, "late"), process(8, 400_000, "early")];
    let report = report(&processes, &AggregateOptions::default());
    check_equations(&report);
    assert_eq!(functions(&report), [of("compile", (2, 2, 40, 80, 80)), of("lower", (2, 2, 40, 40, 40))]);
    let runs: Vec<_> = report.runs.iter().map(|run| (run.number, run.process, run.began_ns)).collect();
    assert_eq!(runs, [(1, 8, 0), (2, 7, 600_000)]);
    assert_eq!(report.runs[0].attributes["by"], "early");
}

#[test]
fn phases_that_a_child_inherits_are_no_calls_and_no_runs() {
    let mut tape = PhaseTape::new();
    let [compile, lower] = ["compile", "lower"].map(code);
    tape.still_open(10, compile, 0).still_open(10, lower, 1).push(20, lower).pop(30).pop(50).pop(60);
    let report = tape.report();
    check_equations(&report);
    assert_eq!(functions(&report), [of("compile", (0, 0, 10, 50, 50)), of("lower", (1, 0, 40, 40, 50))]);
    assert!(report.runs.is_empty() && report.problems().is_empty());
}

#[test]
fn only_the_selected_time_counts() {
    let (mut tape, [main, step]) = (PhaseTape::new(), ["main", "step"].map(code));
    let lower = span("lower");
    tape.push_run(0, main, "").push(10, lower).pop(20);
    tape.push_run(30, step, "").push(35, lower).fail(55, "").pop(60).push_run(70, step, "").pop(80).pop(100);
    tape.unmatched(101, span("unmatched pop"), &[]);
    let process = [tape.tape.process()];
    let part = |range| report(&process, &AggregateOptions { range: Some(range), ..AggregateOptions::default() });
    let middle = part(40..65);
    check_equations(&middle);
    let expected = [of("lower", (1, 1, 15, 15, 15)), of("main", (1, 1, 5, 25, 25)), of("step", (1, 1, 5, 20, 20))];
    assert_eq!(functions(&middle), expected);
    let runs: Vec<_> = middle.runs.iter().map(|run| (run.began_ns, run.duration_ns, run.parent)).collect();
    assert_eq!(runs, [(0, 25, None), (30, 20, Some(1))]);
    assert_eq!(phases(&middle, &middle.runs[0]), [("lower".to_owned(), 1, 15)]);
    assert_eq!((middle.runs[0].phases_count, middle.runs[0].unfinished, row(&middle, "lower").failed), (2, false, 1));
    assert_eq!((middle.anomalies.unmatched_pops, part(0..200).anomalies.unmatched_pops), (0, 1));
    // The middle run is not in the range, and the next one still knows its parent.
    let late = part(65..200);
    let runs: Vec<_> = late.runs.iter().map(|run| (run.number, run.began_ns, run.parent)).collect();
    assert_eq!(runs, [(1, 0, None), (2, 70, Some(1))]);
    assert_eq!(row(&late, "step").failed, 0);
}

#[test]
fn hidden_functions_add_their_time_to_their_callers() {
    let (mut tape, [main, step]) = (PhaseTape::new(), ["main", "step"].map(code));
    tape.push_run(0, main, "").push(10, step).push(20, span("lower")).fail(30, "").fail(50, "").pop(60);
    let filter = Filter { exclude: vec!["function:step".parse().unwrap()], ..Filter::default() };
    let view = View { filter, ..View::default() };
    let process = [tape.tape.process()];
    let report = read_timing(&process, &AggregateOptions::default(), &view, None, &mut |_| {}).unwrap();
    check_equations(&report);
    assert_eq!(functions(&report), [of("lower", (1, 1, 10, 10, 10)), of("main", (1, 1, 50, 60, 60))]);
    assert_eq!((row(&report, "lower").failed, row(&report, "main").failed, report.runs.len()), (1, 0, 1));
}

#[test]
fn progress_reaches_all_bytes_twice() {
    let mut tape = PhaseTape::new();
    tape.push(0, code("a")).pop(10);
    let process = [tape.tape.process()];
    let mut progress_values = Vec::new();
    let mut progress = |bytes| progress_values.push(bytes);
    read_timing(&process, &AggregateOptions::default(), &View::default(), None, &mut progress).unwrap();
    assert!(
        progress_values.is_sorted() && progress_values.last().is_some_and(|last| *last <= 2 * process[0].bytes()),
        "{progress_values:?}"
    );
}

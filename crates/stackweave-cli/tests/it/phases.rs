//! `stackweave phases` as its users run it.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use stackweave_core::{NoNames, RawFrame};
use stackweave_recording::events;
use stackweave_recording::file::ClockSource;
use stackweave_recording::{Recorder, RecorderOptions};
use stackweave_store::label;

use crate::common::{Recorded, STACKS, line};

const MS: u64 = 1_000_000;

fn phase(name: &str) -> RawFrame {
    label(name, "", 0).unwrap()
}

fn code(name: &str) -> RawFrame {
    label(name, "/srv/model.py", 12).unwrap()
}

/// Records two compilations, of which the second fails, with times in whole milliseconds.
fn record(path: &Path) {
    let mut options = RecorderOptions { clock: Some(ClockSource::Monotonic), ..RecorderOptions::new(path) };
    options.extra.insert("timing".to_owned(), "1".to_owned());
    let recorder = Recorder::start(options, &STACKS, Arc::new(NoNames)).unwrap();
    recorder.name_thread("compiler");
    let [code_kind, run, with, failed, left_open, _, unmatched] =
        events::TIMING.map(|kind| recorder.register(kind).unwrap());
    let begin = recorder.register(events::BEGIN).unwrap();
    let end = recorder.register(events::END).unwrap();
    // The ticks of this clock are nanoseconds since the start of the recording, however late this thread runs.
    let at = |ms: u64| ms * MS;
    recorder.record_bytes_at(at(0), run, &[code("forward").to_bits()], br#"{"compile_id": "0/0"}"#);
    recorder.record_at(at(10), begin, &[phase("tracing").to_bits()]);
    recorder.record_at(at(20), code_kind, &[code("attention").to_bits(), 100, 1]);
    recorder.record_at(at(30), code_kind, &[code("attention").to_bits(), 100, 2]);
    recorder.record_at(at(40), end, &[]);
    recorder.record_at(at(50), end, &[]);
    recorder.record_at(at(60), end, &[]);
    recorder.record_at(at(70), begin, &[phase("lowering").to_bits()]);
    recorder.record_at(at(90), end, &[]);
    recorder.record_bytes_at(at(100), with, &[], br#"{"graphs": 1}"#);
    recorder.record_at(at(110), unmatched, &[phase("pop").to_bits(), 0]);
    recorder.record_bytes_at(at(200), run, &[code("forward").to_bits()], b"");
    recorder.record_at(at(210), begin, &[phase("tracing").to_bits()]);
    recorder.record_at(at(220), left_open, &[]);
    recorder.record_bytes_at(at(220), failed, &[], br#"{"error": "Unsupported: no"}"#);
    assert_eq!(recorder.stop().error, None);
}

fn recorded() -> Recorded {
    let recorded = Recorded::new();
    record(&recorded.path("compile.swv"));
    recorded
}

#[test]
fn runs_and_functions_are_shown_with_failures() {
    let recorded = recorded();
    let (printed, remarks) = recorded.printed(&["phases", "compile.swv"]);
    assert!(printed.starts_with("Runs  2 runs, 120 ms, 1 failed\n"), "{printed}");
    assert!(printed.contains(" 1    100 ms  done    forward  /srv/model.py:12\n"), "{printed}");
    assert!(printed.contains("4 phases, 3 deep: tracing 50.0 ms (50.0%), lowering 20.0 ms (20.0%)"), "{printed}");
    assert!(printed.contains("error: Unsupported: no"), "{printed}");
    let words = "2/1 30.0 ms 25.0% 30.0 ms 25.0% 15.0 ms 30.0 ms 100 150,000 attention /srv/model.py:12";
    assert_eq!(line(&printed, "attention").join(" "), words);
    assert!(remarks.contains("1 pop was left out") && remarks.contains("left open when an outer phase ended: tracing"));
    let (runs, _) = recorded.printed(&["phases", "--runs", "compile.swv"]);
    assert!(runs.starts_with("Runs") && !runs.contains("Phases"), "{runs}");
}

#[test]
fn functions_are_sorted_limited_and_filtered() {
    let recorded = recorded();
    let recorded = recorded.with("spans.swv", 3);
    let first = |name: &str, sort: &str| {
        let (printed, _) = recorded.printed(&["phases", name, "--sort", sort, "-n", "1"]);
        let lines: Vec<&str> = printed.lines().rev().collect();
        assert!(lines[0].ends_with(" more)"), "{printed}");
        ["epoch", "load", "forward"].into_iter().find(|name| lines[1].contains(name)).unwrap()
    };
    assert_eq!(["total", "calls"].map(|sort| first("spans.swv", sort)), ["epoch", "load"]);
    assert_eq!(["self", "failed"].map(|sort| first("compile.swv", sort)), ["forward"; 2]);
    let (part, _) = recorded.printed(&["phases", "compile.swv", "--start", "150ms", "--exclude", "function:forward"]);
    assert!(part.contains("1 run, 20.0 ms") && part.contains("1 function, 20.0 ms"), "{part}");
    let (one, _) =
        recorded.printed(&["phases", "compile.swv", "--thread", "compiler", "--include", "function:lowering"]);
    assert!(one.contains("lowering") && !one.contains("attention"), "{one}");
    let (none, remarks) = recorded.printed(&["phases", "compile.swv", "--include", "function:unknown"]);
    assert!(none.contains("0 functions") && remarks.contains("No phases are selected."), "{none} {remarks}");
}

#[test]
fn json_has_all_phases_and_runs() {
    let recorded = recorded();
    let (printed, remarks) = recorded.printed(&["phases", "--json", "-n", "1", "compile.swv"]);
    assert_eq!(remarks, "");
    let whole: Value = serde_json::from_str(&printed).unwrap();
    let attention = whole["phases"].as_array().unwrap().iter().find(|row| row["name"] == "attention").unwrap();
    let expected = json!({
        "name": "attention", "filename": "/srv/model.py", "lineno": 12,
        "calls": 2, "primitive_calls": 1, "self": 0.03, "total": 0.03, "total_of_all": 0.04,
        "failed": 0, "left_open": 0, "unfinished": 0,
        "bytecode_count": 100, "inline_depth": [1, 2], "ns_per_bytecode": 150_000.0,
        "callers": [
            {"name": "tracing", "filename": null, "lineno": null, "calls": 1, "primitive_calls": 1,
             "self": 0.02, "total": 0.03, "total_of_all": 0.03},
            {"name": "attention", "filename": "/srv/model.py", "lineno": 12, "calls": 1, "primitive_calls": 1,
             "self": 0.01, "total": 0.01, "total_of_all": 0.01},
        ],
    });
    assert_eq!(*attention, expected);
    let runs = whole["runs"].as_array().unwrap();
    let about = |run: &Value, name: &str| run[name].clone();
    assert_eq!(runs.len(), 2);
    assert_eq!(about(&runs[0], "attributes"), json!({"compile_id": "0/0", "graphs": 1}));
    assert_eq!(about(&runs[0], "phases")[0], json!({"name": "tracing", "calls": 1, "total": 0.05, "self": 0.05}));
    assert_eq!((about(&runs[0], "duration"), about(&runs[1], "failed")), (json!(0.1), json!(true)));
    assert_eq!(
        (about(&runs[0], "process"), about(&runs[0], "thread_name")),
        (json!(std::process::id()), json!("compiler"))
    );
    assert_eq!((&whole["unmatched_pops"], &whole["left_open"], &whole["total"]), (&json!(1), &json!(1), &json!(0.12)));
    assert_eq!(whole["problems"].as_array().unwrap().len(), 2);
    let (printed, _) = recorded.printed(&["phases", "--json", "--runs", "compile.swv"]);
    let runs: Value = serde_json::from_str(&printed).unwrap();
    assert!(runs.get("phases").is_none() && runs["runs"].as_array().unwrap().len() == 2, "{printed}");
}

#[test]
fn several_recordings_are_shown_together() {
    let recorded = recorded();
    record(&recorded.path("other.swv"));
    let (printed, _) = recorded.printed(&["phases", "compile.swv", "other.swv"]);
    assert!(printed.starts_with("Runs  4 runs, 240 ms, 2 failed\n"), "{printed}");
    assert!(printed.contains("4 functions, 240 ms in total"), "{printed}");
}

#[test]
fn failures_are_one_sentence() {
    let recorded = recorded().with("spans.swv", 1);
    std::fs::write(recorded.path("text.txt"), "some text\n").unwrap();
    std::fs::write(recorded.path("empty.swv"), "").unwrap();
    let nothing =
        Recorder::start(RecorderOptions::new(recorded.path("nothing.swv")), &STACKS, Arc::new(NoNames)).unwrap();
    assert_eq!(nothing.stop().error, None);
    for (arguments, words) in [
        (&["phases", "text.txt"][..], "text.txt"),
        (&["phases", "empty.swv"], "empty"),
        (&["phases", "gone.swv"], "gone.swv"),
        (&["phases", "nothing.swv"], "no phases were recorded; stackweave.Timing records those of a program"),
        (&["phases", "spans.swv", "--runs"], "the recording has no runs"),
        (&["phases", "compile.swv", "--thread", "unknown"], "unknown"),
        (&["phases", "compile.swv", "--start", "2s", "--end", "1s"], "--start"),
    ] {
        let printed = recorded.failure(arguments);
        assert!(printed.starts_with("stackweave: ") && printed.contains(words), "{printed}");
    }
    for wrong in [&["phases"][..], &["phases", "compile.swv", "--sort", "size"], &["phases", "compile.swv", "-n", "x"]]
    {
        assert_eq!(recorded.run(wrong).status.code(), Some(2), "{wrong:?}");
    }
    let (spans, _) = recorded.printed(&["phases", "spans.swv"]);
    assert!(spans.starts_with("Phases  3 functions"), "{spans}");
}

//! Recordings of call tracers in all formats: calls with their callers, generators in parts, tasks with names, calls
//! that were open before, and ends with details.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use stackweave_export::{ExportOptions, Format, export};
use stackweave_profile::AggregateOptions;
use stackweave_recording::Recording;
use stackweave_recording::file::ProcessStart;
use stackweave_tapes::Tape;
use stackweave_testkit::folder::Folder;

use crate::common::json_lines::read_json_lines;
use crate::common::readers::{reader_script, run, system_program};
use crate::common::traced::{Called, Traced, random_traced, traced, traced_from};
use crate::common::trees::{Tree, printed, profiled};
use crate::common::{exported, exported_text};

/// The tree of [`traced`].
const TREE: [(&[&str], u64, i64, i64); 5] = [
    (&["main"], 0, 420, 900),
    (&["main", "work"], 3, 190, 310),
    (&["main", "work", "builtins.len"], 1, 20, 20),
    (&["main", "work", "garbage collection"], 1, 100, 100),
    (&["main", "other"], 2, 170, 170),
];

fn tree() -> Tree {
    TREE.iter()
        .map(|(path, calls, self_cost, total)| {
            (path.iter().map(ToString::to_string).collect(), (*calls, *self_cost, *total))
        })
        .collect()
}

/// Returns how often spans occurred, where a reader also counts spans that were only open.
fn times(tree: Tree) -> BTreeMap<Vec<String>, (i64, i64)> {
    tree.into_iter()
        .filter(|(_, (_, _, total))| *total > 0)
        .map(|(path, (_, self_cost, total))| (path, (self_cost, total)))
        .collect()
}

fn read(script: &str, recording: &Recording, format: Format) -> Option<Value> {
    let folder = Folder::new();
    let path = folder.file(if format == Format::Chrome { "out.json" } else { "out" });
    export(recording, format, &path, &ExportOptions::default(), (None, &mut |_| {})).unwrap();
    let output = run(reader_script(script)?.arg(&path));
    Some(serde_json::from_str(&output).unwrap())
}

fn chrome_events(recording: &Recording) -> Vec<Value> {
    let text = exported_text(recording, Format::Chrome, &ExportOptions::default());
    let whole: Value = serde_json::from_str(&text).unwrap();
    whole["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X").cloned().collect()
}

#[test]
fn a_profile_counts_begins_and_resumes() {
    assert_eq!(profiled(&traced().recording(), &AggregateOptions::default()), tree());
}

#[test]
fn spans_have_their_callers_and_tasks() {
    let events = chrome_events(&traced().recording());
    let args = |began: f64| &events.iter().find(|event| event["ts"].as_f64() == Some(began / 1_000.0)).unwrap()["args"];
    assert_eq!(args(100.0), &json!({"file": "/app/a.py:1"}));
    assert_eq!(args(160.0), &json!({"called from": "/app/a.py:24"}));
    let task = json!({"object": "0x7f001230", "task": "Task-1", "file": "/app/a.py:20", "called from": "/app/a.py:6"});
    assert_eq!((args(300.0), args(500.0)), (&task, &task));
    assert_eq!(args(310.0), &json!({"generation": 2, "collected": 7, "uncollectable": 0}));
    for began in [600.0, 700.0] {
        assert_eq!(args(began)["task"], Value::Null, "a new object does not keep the name of an older one");
    }
    assert_eq!(events.len(), 8);
}

#[test]
fn the_trace_processor_connects_resumed_spans() {
    let recording = traced().recording();
    for format in [Format::Chrome, Format::Perfetto] {
        if system_program("node", "--version").is_none() {
            return;
        }
        let Some(seen) = read("trace_processor.py", &recording, format) else { return };
        assert_eq!(seen["problems"], json!([]), "{format}");
        assert_eq!(times(printed(&seen["tree"])), times(tree()), "{format}");
        let flows: Vec<(i64, &str)> = seen["flows"]
            .as_array()
            .unwrap()
            .iter()
            .map(|flow| (flow[1].as_i64().unwrap() - flow[0].as_i64().unwrap(), flow[2].as_str().unwrap()))
            .collect();
        assert_eq!(flows, [(150, "work"), (200, "work"), (100, "other")], "{format}");
        let args: Vec<(i64, &str, &str)> = seen["args"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| (row[0].as_i64().unwrap(), row[2].as_str().unwrap(), row[3].as_str().unwrap()))
            .collect();
        let prefix = if format == Format::Chrome { "args" } else { "debug" };
        let expected = [
            (60, "called from", "/app/a.py:24"),
            (50, "called from", "/app/a.py:6"),
            (200, "task", "Task-1"),
            (400, "object", "0x7f001230"),
            (210, "generation", "2"),
            (210, "collected", "7"),
        ];
        for (time, key, value) in expected {
            assert!(args.contains(&(time, &format!("{prefix}.{key}"), value)), "{format}: {key} in {args:?}");
        }
        assert!(!args.iter().any(|(time, key, _)| *time >= 500 && key.ends_with("task")), "{format}: {args:?}");
    }
}

#[test]
fn random_traces_have_the_times_of_their_profiles() {
    for seed in 1..4 {
        let recording = random_traced(seed, 4_000).recording();
        let expected = times(profiled(&recording, &AggregateOptions::default()));
        assert!(expected.len() > 500);
        let Some(seen) = read("read_perfetto.py", &recording, Format::Perfetto) else { return };
        assert_eq!(times(printed(&seen["tree"])), expected);
        let Some(seen) = read("read_chrome.py", &recording, Format::Chrome) else { return };
        assert_eq!(times(printed(&seen["tree"])), expected);
        let folder = Folder::new();
        for format in Format::all().filter(|format| !format.is_of_memory()) {
            let path = folder.file(&format.to_string());
            let done = export(&recording, format, &path, &ExportOptions::default(), (None, &mut |_| {})).unwrap();
            assert!(done.bytes > 0, "{format}");
        }
    }
}

/// The stack is as deep as interpreters allow, and all calls are open since the same moment: nothing may be quadratic.
#[test]
fn very_deep_stacks_are_written_in_linear_time() {
    const DEPTH: u64 = 20_000;
    let mut tape = Tape::new();
    tape.declare();
    tape.thread(1, 1, "main");
    let function = tape.python("dive", "/app/a.py", 3);
    for depth in 0..DEPTH {
        tape.open((1, 10), Some(Called(Tape::at(function, 0), None)), depth);
    }
    for _ in 0..DEPTH {
        tape.end((1, 20));
    }
    let recording = tape.recording();
    let events = chrome_events(&recording);
    assert_eq!(events.len() as u64, DEPTH);
    assert!(events.iter().all(|event| event["dur"].as_f64() == Some(0.01)));
    let folder = Folder::new();
    for format in [Format::Perfetto, Format::Parquet, Format::Speedscope, Format::Pstats] {
        let path = folder.file(&format.to_string());
        export(&recording, format, &path, &ExportOptions::default(), (None, &mut |_| {})).unwrap();
    }
}

#[test]
fn lines_of_json_have_callers_tasks_and_details_of_ends() {
    let text = exported_text(&traced().recording(), Format::Json, &ExportOptions::default());
    let lines = read_json_lines(&text);
    let kinds: Vec<&str> = lines.iter().map(|line| line["kind"].as_str().unwrap()).collect();
    let expected = [
        "open",
        "generator",
        "call",
        "resume",
        "gc",
        "gc-end",
        "resume",
        "generator",
        "resume",
        "demoted",
        "trace-note",
    ];
    assert_eq!(kinds, expected, "open calls are not recorded again");
    let names = |line: &Value| -> Vec<String> {
        line["frames"].as_array().unwrap().iter().map(|frame| frame["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(
        (&lines[2]["name"], names(&lines[2])),
        (&json!("builtins.len"), vec!["work".to_owned(), "main".to_owned()])
    );
    assert_eq!((&lines[2]["caller"]["name"], &lines[2]["caller"]["line"]), (&json!("work"), &json!(24)));
    assert_eq!((&lines[0]["caller"], &lines[0]["depth"]), (&Value::Null, &json!(0)));
    let tasks: Vec<&Value> = [1, 3, 6, 7, 8].map(|line| &lines[line]["task"]).to_vec();
    assert_eq!(tasks, [&Value::Null, &json!("Task-1"), &json!("Task-1"), &Value::Null, &Value::Null]);
    assert_eq!((&lines[5]["collected"], &names(&lines[5])[0]), (&json!(7), &"garbage collection".to_owned()));
}

#[test]
fn readers_of_pstats_accept_functions_that_were_never_called() {
    // Some of them leave out functions of less than a microsecond.
    let start = ProcessStart { pid: 1, ticks_per_second: 1_000_000, ..ProcessStart::default() };
    let recording = traced_from(&start).recording();
    let folder = Folder::new();
    let path = folder.write("out.prof", &exported(&recording, Format::Pstats, &ExportOptions::default()));
    for reader in ["pstats", "snakeviz", "gprof2dot", "tuna"] {
        let Some(mut command) = reader_script("pstats_readers.py") else { return };
        let output: Value = serde_json::from_str(&run(command.arg(reader).arg(&path))).unwrap();
        assert!(output.to_string().contains("main"), "{reader}: {output}");
        if reader == "pstats" {
            let functions = output["functions"].as_array().unwrap();
            let main = functions.iter().find(|function| function[2] == "main").unwrap();
            assert_eq!((&main[3], &main[4], main[5].as_f64()), (&json!(0), &json!(0), Some(420e-6)));
            assert_eq!(output["calls"], 7);
        }
    }
}

#[test]
fn tables_have_callers_and_mark_calls() {
    let folder = Folder::new();
    let path = folder.file("out.parquet");
    export(&traced().recording(), Format::Parquet, &path, &ExportOptions::default(), (None, &mut |_| {})).unwrap();
    let Some(mut command) = reader_script("read_calls.py") else { return };
    let output: Value = serde_json::from_str(&run(command.arg(&path))).unwrap();
    let main = ["main", "/app/a.py"];
    let expected = json!([
        [100, "main", false, null, null, null, null, null],
        [150, "work", true, main[0], main[1], 6, 0x7f00_1230_u64, null],
        [160, "builtins.len", true, "work", "/app/a.py", 24, null, null],
        [300, "work", true, main[0], main[1], 6, 0x7f00_1230_u64, "Task-1"],
        [310, "garbage collection", true, null, null, null, null, null],
        [500, "work", true, main[0], main[1], 6, 0x7f00_1230_u64, "Task-1"],
        [600, "other", true, main[0], main[1], 6, 0x7f00_1230_u64, null],
        [700, "other", true, main[0], main[1], 6, 0x7f00_1230_u64, null],
    ]);
    assert_eq!(output["spans"], expected);
    assert_eq!(output["collections"], json!([[2, 7]]));
}

//! JSON lines of events, read by hand and like `PyTorch`'s memory viewer.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use stackweave_export::{ExportOptions, Format, export};
use stackweave_profile::{AggregateOptions, Filter, FrameKind, Measure, View, aggregate};
use stackweave_recording::Recording;
use stackweave_tapes::{Tape, span};
use stackweave_testkit::folder::Folder;

use crate::common::examples::{PID, WORKER_TID, example, nasty, nasty_names, random};
use crate::common::json_lines::read_json_lines;
use crate::common::readers::{reader_script, run};
use crate::common::{assert_golden, exported_text};

fn lines(recording: &Recording, options: &ExportOptions<'_>) -> Vec<Value> {
    read_json_lines(&exported_text(recording, Format::Json, options))
}

fn names(event: &Value) -> Vec<&str> {
    event["frames"].as_array().unwrap().iter().map(|frame| frame["name"].as_str().unwrap()).collect()
}

#[test]
fn the_example_has_a_line_for_each_event_with_a_stack() {
    let recording = example().recording();
    assert_golden("example.jsonl", &exported_text(&recording, Format::Json, &ExportOptions::default()));
    let lines = lines(&recording, &ExportOptions::default());
    let mut counts = BTreeMap::new();
    for line in &lines {
        *counts.entry(line["kind"].as_str().unwrap()).or_insert(0) += 1;
    }
    let expected = [
        ("allocate", 3),
        ("begin", 6),
        ("begin-at", 2),
        ("begin-with", 1),
        ("free", 1),
        ("instant", 1),
        ("instant-with", 1),
        ("sample", 2),
    ];
    assert_eq!(counts, BTreeMap::from(expected));
    assert!(lines.is_sorted_by_key(|line| line["time_ns"].as_i64()));
    let find = |kind: &str, time_ns: i64| {
        lines.iter().find(|line| line["kind"] == kind && line["time_ns"] == time_ns).unwrap()
    };
    let sample = find("sample", 1700);
    assert_eq!(names(sample), ["inner", "outer", "step", "main"]);
    assert_eq!((&sample["weight"], &sample["process"], &sample["thread"]), (&json!(3), &json!(PID), &json!(PID)));
    // The native frame began while two Python functions were open.
    assert_eq!((&find("begin", 1500)["name"], names(find("begin", 1500))), (&json!("inner"), vec!["step", "main"]));
    assert_eq!((names(find("begin", 0)), names(find("begin", 300))), (vec![], vec!["fib", "step", "main"]));
    let allocate = find("allocate", 400);
    assert_eq!((&allocate["address"], &allocate["size"]), (&json!("0x3000"), &json!(100)));
    assert_eq!(find("instant-with", 2700)["details"], json!({"path": "a\"b", "epoch": 1}));
    assert_eq!(
        (&find("sample", 600)["thread"], &find("sample", 600)["thread_name"]),
        (&json!(WORKER_TID), &json!("worker"))
    );
    let frame = json!({"name": "step", "qualname": "Model.step", "filename": "/app/model.py", "line": 12,
        "kind": "python", "inlined": false});
    assert_eq!(sample["frames"][2], frame);
}

/// Lines that repeat every frame in every event are equivalent to the lines of the file.
#[test]
fn shared_frames_and_stacks_lose_nothing() {
    let expected = include_str!("../golden/example.expanded.jsonl");
    let expected: Vec<Value> = expected.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines(&example().recording(), &ExportOptions::default()), expected);
}

#[test]
fn the_size_of_an_event_does_not_depend_on_the_depth_of_its_stack() {
    let size = |depth: u32, events: u64| {
        let mut tape = Tape::new();
        let function = tape.python("dive", "/app/a.py", 3);
        let stack: Vec<_> = (1..=depth).map(|line| Tape::at(function, line)).collect();
        (0..events).for_each(|event| tape.allocate((1, event), (0x1000, 16), &stack));
        exported_text(&tape.recording(), Format::Json, &ExportOptions::default()).len()
    };
    let of_events = |depth| size(depth, 2000) - size(depth, 1000);
    // The number of the stack has two more digits.
    assert!(of_events(500) <= of_events(2) + 2 * 1000, "{} and {} bytes", of_events(2), of_events(500));
}

#[test]
fn the_size_of_nested_calls_is_linear_in_their_depth() {
    let size = |depth: u64| {
        let mut tape = Tape::new();
        let function = tape.python("dive", "/app/a.py", 3);
        (0..depth).for_each(|at| tape.begin((1, at), Tape::at(function, 4)));
        exported_text(&tape.recording(), Format::Json, &ExportOptions::default()).len()
    };
    let (half, whole) = (size(10_000), size(20_000));
    assert!(whole < 2 * half + half / 10, "{half} and {whole} bytes");
}

#[test]
fn a_time_range_equals_that_part_of_the_whole() {
    let recording = random(31, 3000).recording();
    let whole = lines(&recording, &ExportOptions::default());
    let end = whole.last().unwrap()["time_ns"].as_u64().unwrap();
    let range = end / 3..end / 2;
    let part = AggregateOptions { range: Some(range.clone()), ..AggregateOptions::default() };
    let part = lines(&recording, &ExportOptions { part, ..ExportOptions::default() });
    let expected: Vec<&Value> =
        whole.iter().filter(|line| range.contains(&line["time_ns"].as_u64().unwrap())).collect();
    assert_eq!(part.iter().collect::<Vec<_>>(), expected);
    assert!(!part.is_empty());
}

#[test]
fn spans_end_where_events_are_missing() {
    let mut tape = Tape::new();
    tape.begin((1, 10), span("a"));
    tape.instant((1, 20), span("before"), &[]);
    tape.lose((1, 25));
    tape.begin((1, 30), span("b"));
    tape.instant((1, 40), span("after"), &[]);
    let folder = Folder::new();
    let path = folder.file("out");
    let options = ExportOptions::default();
    export(&tape.recording(), Format::Json, &path, &options, (None, &mut |_| {})).unwrap();
    let text = std::fs::read_to_string(path).unwrap();
    let lines = read_json_lines(&text);
    let found: Vec<(&str, Vec<&str>)> =
        lines.iter().map(|line| (line["name"].as_str().unwrap(), names(line))).collect();
    assert_eq!(found, [("a", vec![]), ("before", vec!["a"]), ("b", vec![]), ("after", vec!["b"])]);
}

#[test]
fn sums_agree_with_the_profile() {
    let recording = random(32, 3000).recording();
    let lines = lines(&recording, &ExportOptions::default());
    let sum = |kind: &str, value: &str| {
        let of_kind = lines.iter().filter(|line| line["kind"] == kind);
        of_kind.map(|line| line[value].as_i64().unwrap()).sum::<i64>()
    };
    for (measure, found) in
        [(Measure::Samples, sum("sample", "weight")), (Measure::AllocatedBytes, sum("allocate", "size"))]
    {
        let part = AggregateOptions { measure: Some(measure), ..AggregateOptions::default() };
        let profile = aggregate(recording.processes(), &part, None, &mut |_| {}).unwrap().merged();
        assert_eq!(found, profile.total());
    }
}

#[test]
fn hidden_frames_are_left_out() {
    let filter = Filter { kinds: vec![FrameKind::Python], ..Filter::default() };
    let options = ExportOptions { view: Some(View { show_all: true, filter }), ..ExportOptions::default() };
    let lines = lines(&example().recording(), &options);
    let sample = lines.iter().find(|line| line["kind"] == "sample" && line["time_ns"] == 1700).unwrap();
    assert_eq!(names(sample), ["step", "main"]);
}

#[test]
fn a_reader_of_pytorch_frames_reads_it() {
    let folder = Folder::new();
    for (tape, count) in [(example(), 17), (nasty(), 2 * nasty_names().len() + 2)] {
        let recording = tape.recording();
        let path =
            folder.write("out.jsonl", exported_text(&recording, Format::Json, &ExportOptions::default()).as_bytes());
        let Some(mut command) = reader_script("tracebacks.py") else { return };
        let output = run(command.arg(path));
        assert_eq!(lines(&recording, &ExportOptions::default()).len(), count);
        assert!(output.lines().count() >= count);
        if count == 17 {
            let expected = "1700 | sample |  | /src/kernel.h:5:inner; /src/kernel.c:42:outer; /app/model.py:12:step; /app/train.py:3:main";
            assert!(output.lines().any(|line| line == expected), "{output}");
        }
    }
}

#[test]
fn nasty_names_are_read_back_unchanged() {
    let lines = lines(&nasty().recording(), &ExportOptions::default());
    let found: Vec<&str> = lines.iter().skip(2).map(|line| line["name"].as_str().unwrap()).collect();
    let expected: Vec<String> = nasty_names().into_iter().flat_map(|name| [name.clone(), name]).collect();
    assert_eq!(found, expected);
}

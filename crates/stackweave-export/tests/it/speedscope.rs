//! speedscope's JSON: read by hand, and checked with its schema if npm can fetch it.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::{Value, json};
use stackweave_export::{ExportOptions, Format, export};
use stackweave_profile::{AggregateOptions, Filter, FrameKind, Grouping, Measure, Profile, View, aggregate};
use stackweave_recording::Recording;
use stackweave_recording::file::ProcessStart;
use stackweave_tapes::{Tape, recording_of, span};
use stackweave_testkit::folder::Folder;

use crate::common::examples::{
    PID, STARTED_NS, TREE, WORKER, example, example_from, example_start, nasty, nasty_names, random,
};
use crate::common::readers::{reader_script, run, system_program};
use crate::common::{assert_golden, exported_text};

/// Calls, self and total cost by path, outermost name first.
type Costs = BTreeMap<Vec<String>, (u64, i64, i64)>;

fn exported(recording: &Recording, options: &ExportOptions<'_>) -> Value {
    let file = serde_json::from_str(&exported_text(recording, Format::Speedscope, options)).unwrap();
    check(&file);
    file
}

/// Asserts what the schema does not cover: frames exist, and opened frames are closed, in the order of time.
fn check(file: &Value) {
    let frames = file["shared"]["frames"].as_array().unwrap().len() as u64;
    for profile in file["profiles"].as_array().unwrap() {
        let (start, end) = (profile["startValue"].as_i64().unwrap(), profile["endValue"].as_i64().unwrap());
        if profile["type"] == "sampled" {
            let (samples, weights) = (profile["samples"].as_array().unwrap(), profile["weights"].as_array().unwrap());
            assert_eq!(samples.len(), weights.len());
            assert!(
                samples
                    .iter()
                    .flat_map(|stack| stack.as_array().unwrap())
                    .all(|frame| frame.as_u64().unwrap() < frames)
            );
            assert_eq!(weights.iter().map(|weight| weight.as_i64().unwrap()).sum::<i64>(), end - start);
            continue;
        }
        let (mut open, mut now) = (Vec::new(), start);
        for event in profile["events"].as_array().unwrap() {
            let (frame, at) = (event["frame"].as_u64().unwrap(), event["at"].as_i64().unwrap());
            assert!(frame < frames && (now..=end).contains(&at), "{event}");
            now = at;
            match event["type"].as_str().unwrap() {
                "O" => open.push(frame),
                _ => assert_eq!(open.pop(), Some(frame)),
            }
        }
        assert!(open.is_empty());
    }
}

fn name(file: &Value, frame: &Value) -> String {
    let frame = usize::try_from(frame.as_u64().unwrap()).unwrap();
    file["shared"]["frames"][frame]["name"].as_str().unwrap().to_owned()
}

/// Returns the costs of a profile in the file.
fn costs(file: &Value, profile: &Value) -> Costs {
    let mut costs = Costs::new();
    if profile["type"] == "sampled" {
        for (stack, weight) in profile["samples"].as_array().unwrap().iter().zip(profile["weights"].as_array().unwrap())
        {
            let path: Vec<String> = stack.as_array().unwrap().iter().map(|frame| name(file, frame)).collect();
            costs.entry(path).or_default().1 += weight.as_i64().unwrap();
        }
        return costs;
    }
    let (mut path, mut begun) = (Vec::new(), Vec::new());
    for event in profile["events"].as_array().unwrap() {
        let at = event["at"].as_i64().unwrap();
        if event["type"] == "O" {
            path.push(name(file, &event["frame"]));
            begun.push(at);
            continue;
        }
        let took = at - begun.pop().unwrap();
        let cost = costs.entry(path.clone()).or_default();
        *cost = (cost.0 + 1, cost.1 + took, cost.2 + took);
        path.pop();
        if !path.is_empty() {
            costs.entry(path.clone()).or_default().1 -= took;
        }
    }
    costs
}

/// Returns the costs of a profile of the recording.
fn expected(profile: &Profile) -> Costs {
    let (mut costs, tree) = (Costs::new(), profile.tree());
    let mut paths: Vec<Vec<String>> = vec![Vec::new(); tree.nodes().len()];
    for (id, node) in tree.iter() {
        let mut path = paths[node.parent.index()].clone();
        path.push(profile.functions().function_of(node.frame).full_name().to_string());
        let cost = costs.entry(path.clone()).or_default();
        *cost = (cost.0 + node.cost.calls, cost.1 + node.cost.self_cost, cost.2 + node.cost.total);
        paths[id.index()] = path;
    }
    if profile.without_frame() != 0 {
        costs.insert(Vec::new(), (0, profile.without_frame(), 0));
    }
    costs
}

/// Compares each thread of an export with its profile.
fn compare(recording: &Recording, options: &ExportOptions<'_>) {
    let file = exported(recording, options);
    let part = AggregateOptions { grouping: Grouping::Threads, ..options.part.clone() };
    let mut parts = aggregate(recording.processes(), &part, None, &mut |_| {}).unwrap().parts;
    parts.sort_by_key(|part| (part.process, part.thread));
    let view = options.view.clone().unwrap_or(View { show_all: true, ..View::default() });
    let is_time = |part: &&stackweave_profile::PartProfile| part.profile.measure() == Measure::WallTime;
    let has_any = |part: &&stackweave_profile::PartProfile| part.profile.tree().nodes()[0].cost.total != 0;
    let expected: Vec<Costs> = parts
        .iter()
        .filter(has_any)
        .map(|part| {
            let mut costs = expected(&part.profile.view(&view));
            if !is_time(&part) {
                for cost in costs.values_mut() {
                    *cost = (0, cost.1, 0);
                }
                costs.retain(|_, cost| cost.1 != 0);
            }
            costs
        })
        .collect();
    let mut found: Vec<Costs> =
        file["profiles"].as_array().unwrap().iter().map(|profile| costs(&file, profile)).collect();
    if part.measure != Some(Measure::WallTime) {
        for costs in &mut found {
            costs.retain(|_, cost| cost.1 != 0);
        }
    }
    assert_eq!(found, expected, "{options:?}");
}

#[test]
fn the_example_has_its_spans_samples_and_allocations() {
    let text = exported_text(&example().recording(), Format::Speedscope, &ExportOptions::default());
    assert_golden("example.speedscope.json", &text);
    let file: Value = serde_json::from_str(&text).unwrap();
    check(&file);
    let names: Vec<&str> =
        file["profiles"].as_array().unwrap().iter().map(|profile| profile["name"].as_str().unwrap()).collect();
    let time =
        ["main", "worker", "main: samples", "worker: samples", "main: bytes allocated", "worker: bytes allocated"];
    assert_eq!(names, time);
    let mut found = costs(&file, &file["profiles"][0]);
    found.extend(costs(&file, &file["profiles"][1]));
    let path = |path: &[&str]| path.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    let expected: Costs =
        TREE.iter().map(|(names, calls, self_cost, total)| (path(names), (*calls, *self_cost, *total))).collect();
    assert_eq!(found, expected);
}

#[test]
fn every_thread_agrees_with_its_profile() {
    let recording = random(21, 4000).recording();
    let end = recording.processes()[0].time_range().unwrap().end;
    for measure in Measure::ALL {
        for range in [None, Some(end / 3..end / 2), Some(0..end / 2), Some(end - 10..end * 2)] {
            let part = AggregateOptions { measure: Some(measure), range, ..AggregateOptions::default() };
            compare(&recording, &ExportOptions { part, ..ExportOptions::default() });
        }
    }
}

#[test]
fn hidden_frames_are_left_out() {
    let recording = random(22, 2000).recording();
    for kinds in [vec![FrameKind::Python], vec![FrameKind::Span, FrameKind::Native]] {
        let view = Some(View { show_all: true, filter: Filter { kinds, ..Filter::default() } });
        let part = AggregateOptions { measure: Some(Measure::WallTime), ..AggregateOptions::default() };
        let file =
            exported(&recording, &ExportOptions { part: part.clone(), view: view.clone(), ..ExportOptions::default() });
        let seen = |profile: &Profile| profile.view(view.as_ref().unwrap());
        let part = AggregateOptions { grouping: Grouping::Threads, ..part };
        for (found, part) in file["profiles"]
            .as_array()
            .unwrap()
            .iter()
            .zip(aggregate(recording.processes(), &part, None, &mut |_| {}).unwrap().parts)
        {
            let (found, mut expected) = (costs(&file, found), expected(&seen(&part.profile)));
            expected.remove(&Vec::new());
            assert_eq!(found, expected);
        }
    }
    let part = AggregateOptions { threads: vec!["worker".to_owned()], ..AggregateOptions::default() };
    let file = exported(&example().recording(), &ExportOptions { part, ..ExportOptions::default() });
    assert!(
        file["profiles"]
            .as_array()
            .unwrap()
            .iter()
            .all(|profile| profile["name"].as_str().unwrap().starts_with("worker"))
    );
}

#[test]
fn processes_are_separate_and_share_their_functions() {
    let recording = recording_of(vec![
        example(),
        example_from(&ProcessStart { pid: 99, started_wall_ns: STARTED_NS + 5000, ..example_start() }),
    ]);
    let file = exported(&recording, &ExportOptions::default());
    assert_eq!(file["profiles"][0]["name"], format!("python3 train.py ({PID}): main"));
    assert_eq!(file["shared"]["frames"].as_array().unwrap().len(), 6);
    assert_eq!(
        (&file["profiles"][2]["name"], &file["profiles"][2]["events"][0]["at"]),
        (&json!("python3 train.py (99): main"), &json!(5000))
    );
}

#[test]
fn unfinished_spans_end_with_their_thread() {
    let mut tape = Tape::new();
    tape.begin((WORKER, 10), span("a"));
    tape.begin((WORKER, 20), span("b"));
    tape.end((WORKER, 30));
    tape.instant((WORKER, 70), span("c"), &[]);
    let file = exported(&tape.recording(), &ExportOptions::default());
    let events = json!([
        {"type": "O", "frame": 0, "at": 10}, {"type": "O", "frame": 1, "at": 20},
        {"type": "C", "frame": 1, "at": 30}, {"type": "C", "frame": 0, "at": 70},
    ]);
    assert_eq!(file["profiles"][0]["events"], events);
}

#[test]
fn time_never_decreases() {
    let mut tape = Tape::new();
    tape.begin((WORKER, 50), span("a"));
    tape.begin((WORKER, 40), span("b"));
    tape.end((WORKER, 45));
    tape.end((WORKER, 60));
    let recording = tape.recording();
    let file = exported(&recording, &ExportOptions::default());
    let times: Vec<&Value> =
        file["profiles"][0]["events"].as_array().unwrap().iter().map(|event| &event["at"]).collect();
    assert_eq!(times, [50, 50, 50, 60]);
    let part = AggregateOptions { measure: Some(Measure::WallTime), ..AggregateOptions::default() };
    compare(&recording, &ExportOptions { part, ..ExportOptions::default() });
}

#[test]
fn open_spans_end_where_events_are_missing() {
    let mut tape = Tape::new();
    tape.begin((WORKER, 10), span("a"));
    tape.begin((WORKER, 20), span("b"));
    tape.lose((WORKER, 25));
    tape.begin((WORKER, 30), span("c"));
    tape.end((WORKER, 40));
    tape.end((WORKER, 50));
    let folder = Folder::new();
    let path = folder.file("out");
    let options = ExportOptions::default();
    let done = export(&tape.recording(), Format::Speedscope, &path, &options, (None, &mut |_| {})).unwrap();
    assert_eq!(done.missing.len(), 1, "{done:?}");
    let file: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    check(&file);
    let path = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    let expected = [(path(&["a"]), (1, 10, 10)), (path(&["a", "b"]), (1, 0, 0)), (path(&["c"]), (1, 10, 10))];
    assert_eq!(costs(&file, &file["profiles"][0]), Costs::from(expected));
}

#[test]
fn nasty_names_are_read_back_unchanged() {
    let file = exported(&nasty().recording(), &ExportOptions::default());
    let frames = file["shared"]["frames"].as_array().unwrap();
    for name in nasty_names() {
        assert!(
            frames.iter().any(|frame| frame["name"] == name && frame["file"] == format!("/tmp/{name}.py")),
            "{name:?}"
        );
    }
    assert_eq!(file["name"], "</title>\" \u{1f9f5}\n");
}

#[test]
fn the_export_is_valid_by_the_schema_of_speedscope() {
    let folder = Folder::new();
    let Some(mut npm) = system_program("npm", "--version") else { return };
    let packed = npm.args(["pack", "--silent", "speedscope@1.25.0"]).current_dir(folder.path()).output().unwrap();
    if !packed.status.success() {
        return println!("skipped: npm can't fetch speedscope");
    }
    run(Command::new("tar").args(["xzf", "speedscope-1.25.0.tgz"]).current_dir(folder.path()));
    let schema = folder.file("package/dist/release/file-format-schema.json");
    for tape in [example(), nasty(), random(23, 2000), Tape::new()] {
        let file = exported_text(&tape.recording(), Format::Speedscope, &ExportOptions::default());
        let path = folder.write("out.speedscope.json", file.as_bytes());
        let Some(mut command) = reader_script("json_schema.py") else { return };
        run(command.arg(&schema).arg(path));
    }
    let wrong = folder.write("wrong.json", br#"{"$schema": "x", "profiles": [], "shared": {}}"#);
    assert!(!reader_script("json_schema.py").unwrap().arg(&schema).arg(wrong).output().unwrap().status.success());
}

//! pprof's profiles, read by the protobuf library, and by `go tool pprof` if Go is installed.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use stackweave_export::{ExportOptions, Format};
use stackweave_profile::{AggregateOptions, Filter, FrameKind, Measure, View, aggregate};
use stackweave_recording::Recording;
use stackweave_testkit::folder::Folder;

use crate::common::examples::{KERNEL, PID, STARTED_NS, TREE, WORKER_TID, example, nasty, nasty_names, random};
use crate::common::exported;
use crate::common::readers::{reader_script, run, system_program};

fn read(recording: &Recording, options: &ExportOptions<'_>) -> Option<Value> {
    let folder = Folder::new();
    let path = folder.write("out.pb.gz", &exported(recording, Format::Pprof, options));
    let output = run(reader_script("pprof_reader.py")?.arg(path));
    Some(serde_json::from_str(&output).unwrap())
}

fn measured(measure: Measure) -> ExportOptions<'static> {
    let part = AggregateOptions { measure: Some(measure), ..AggregateOptions::default() };
    ExportOptions { part, ..ExportOptions::default() }
}

/// Returns the sums of all values.
fn totals(profile: &Value) -> BTreeMap<String, i64> {
    let mut totals = BTreeMap::new();
    for sample in profile["samples"].as_array().unwrap() {
        for (of, value) in profile["types"].as_array().unwrap().iter().zip(sample["values"].as_array().unwrap()) {
            *totals.entry(of[0].as_str().unwrap().to_owned()).or_insert(0) += value.as_i64().unwrap();
        }
    }
    totals
}

/// Returns stacks of names, outermost first, with the sums of one value.
fn stacks(profile: &Value, column: usize) -> BTreeMap<Vec<String>, i64> {
    let mut stacks = BTreeMap::new();
    for sample in profile["samples"].as_array().unwrap() {
        let mut names = Vec::new();
        for location in sample["stack"].as_array().unwrap() {
            names.extend(location["lines"].as_array().unwrap().iter().map(|line| line[0].as_str().unwrap().to_owned()));
        }
        names.reverse();
        *stacks.entry(names).or_insert(0) += sample["values"][column].as_i64().unwrap();
    }
    stacks.retain(|_, cost| *cost != 0);
    stacks
}

#[test]
fn the_example_has_its_stacks_for_every_measure() {
    let Some(output) = read(&example().recording(), &ExportOptions::default()) else { return };
    let types = [("wall", "nanoseconds"), ("calls", "count"), ("samples", "count"), ("alloc_space", "bytes")];
    let more = [("alloc_objects", "count"), ("inuse_space", "bytes"), ("inuse_objects", "count")];
    let types: Vec<Value> = types.iter().chain(&more).map(|(name, unit)| json!([name, unit])).collect();
    assert_eq!((&output["types"], &output["default"]), (&Value::from(types), &json!("wall")));
    let path = |path: &[&str]| path.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    let self_costs = TREE.iter().filter(|row| row.2 > 0).map(|row| (path(row.0), row.2)).collect();
    assert_eq!(stacks(&output, 0), self_costs);
    // Calls count at the innermost function: those of an inlined function with those of the one around it.
    let is_innermost = |row: &&(&[&str], _, _, _)| row.0.last() != Some(&"outer");
    let calls = TREE.iter().filter(is_innermost).map(|row| (path(row.0), i64::try_from(row.1).unwrap())).collect();
    assert_eq!(stacks(&output, 1), calls);
    let sampled = [(path(&["main", "Model.step", "outer", "inner"]), 3), (path(&["fib"]), 2)];
    assert_eq!(stacks(&output, 2), BTreeMap::from(sampled));
    let unknown = path(&["(unknown)"]);
    let kept = [(path(&["main", "Model.step", "fib"]), 100), (unknown, 28)];
    assert_eq!(stacks(&output, 5), BTreeMap::from(kept));
    let expected = json!({"wall": 4000, "calls": 9, "samples": 5, "alloc_space": 4224, "alloc_objects": 3,
        "inuse_space": 128, "inuse_objects": 2});
    assert_eq!(json!(totals(&output)), expected);
}

#[test]
fn locations_and_samples_have_their_origin() {
    let Some(output) = read(&example().recording(), &ExportOptions::default()) else { return };
    let samples = output["samples"].as_array().unwrap();
    let innermost = |name: &str| {
        let is_it = |sample: &&Value| sample["stack"][0]["lines"][0][0] == name;
        samples.iter().find(is_it).unwrap()
    };
    let kernel = innermost("inner");
    let lines = json!([["inner", "/src/kernel.h", 5, "inner", 0], ["outer", "/src/kernel.c", 42, "outer", 0]]);
    assert_eq!(kernel["stack"][0], json!({"mapping": 1, "address": KERNEL - 1, "lines": lines}));
    let step = &kernel["stack"][1];
    let lines = json!([["Model.step", "/app/model.py", 12, "step", 10]]);
    assert_eq!(*step, json!({"mapping": 0, "address": 0, "lines": lines}));
    let mapping = json!([[
        1,
        0x7f00_0000_0000_u64,
        0x7f00_0000_8000_u64,
        "/opt/lib/libkernel.so",
        "ab".repeat(20),
        true,
        true,
        true,
        true
    ]]);
    assert_eq!(output["mappings"], mapping);
    let labels = |tid: u32, name: &str| json!({"pid": PID, "tid": tid, "thread": name, "process": "python3 train.py"});
    assert_eq!(kernel["labels"], labels(PID, "main"));
    let worker = samples.iter().find(|sample| sample["labels"]["thread"] == "worker").unwrap();
    assert_eq!(worker["labels"], labels(WORKER_TID, "worker"));
    assert_eq!(
        (&output["time"], &output["duration"], &output["comments"]),
        (&json!(STARTED_NS), &json!(3001), &json!(["python3 train.py"]))
    );
}

#[test]
fn names_are_read_back_unchanged() {
    let Some(output) = read(&nasty().recording(), &ExportOptions::default()) else { return };
    let deepest = stacks(&output, 0).into_keys().max_by_key(Vec::len).unwrap();
    let expected: Vec<String> = nasty_names().into_iter().flat_map(|name| [name.clone(), name]).collect();
    assert_eq!(deepest[2..], expected);
    assert_eq!(deepest[1], "0x660000");
    // The module has no names, so a reader may try to find them.
    let mapping = &output["mappings"][0];
    assert_eq!((&mapping[3], &mapping[5]), (&json!("/tmp/not \u{fffd}\u{fffd} utf-8;\"<.so"), &json!(false)));
}

#[test]
fn every_measure_agrees_with_the_profile() {
    let recording = random(11, 4000).recording();
    let Some(all) = read(&recording, &ExportOptions::default()) else { return };
    let all = totals(&all);
    let names = ["wall", "samples", "alloc_space", "alloc_objects", "inuse_space"];
    for (measure, name) in Measure::ALL.into_iter().zip(names) {
        let options = measured(measure);
        let profile = aggregate(recording.processes(), &options.part, None, &mut |_| {}).unwrap().merged();
        let alone = totals(&read(&recording, &options).unwrap());
        assert_eq!((alone[name], all[name]), (profile.total(), profile.total()), "{measure}");
        assert!(alone.len() <= 2, "{alone:?}");
    }
}

#[test]
fn hidden_frames_leave_their_costs_to_their_callers() {
    let filter = Filter { kinds: vec![FrameKind::Python], ..Filter::default() };
    let view = Some(View { show_all: true, filter });
    let options = ExportOptions { view, ..measured(Measure::WallTime) };
    let recording = example().recording();
    let Some(output) = read(&recording, &options) else { return };
    let profile = aggregate(recording.processes(), &options.part, None, &mut |_| {}).unwrap().merged();
    let seen = profile.view(options.view.as_ref().unwrap());
    let mut paths: Vec<Vec<String>> = vec![Vec::new(); seen.tree().nodes().len()];
    let mut expected = BTreeMap::new();
    for (id, node) in seen.tree().iter() {
        let mut path = paths[node.parent.index()].clone();
        path.push(seen.functions().function_of(node.frame).full_name().to_string());
        expected.insert(path.clone(), node.cost.self_cost);
        paths[id.index()] = path;
    }
    assert_eq!(stacks(&output, 0), expected);
    assert_eq!(expected.len(), 5);
}

#[test]
fn go_reads_it() {
    let Some(_) = system_program("go", "version") else { return };
    for tape in [example(), nasty(), random(12, 3000)] {
        let folder = Folder::new();
        let path = folder.write("out.pb.gz", &exported(&tape.recording(), Format::Pprof, &ExportOptions::default()));
        let pprof = |options: &[&str]| {
            let mut go = system_program("go", "version").unwrap();
            go.args(["tool", "pprof", "-symbolize=none"]).args(options).arg(&path).env("PPROF_TMPDIR", folder.path());
            run(&mut go)
        };
        assert!(pprof(&["-top"]).contains("flat%") && pprof(&["-raw"]).contains("Locations"));
        assert!(pprof(&["-tags"]).contains("pid: Total"));
    }
}

#[test]
fn go_finds_the_numbers_of_the_example() {
    let Some(mut go) = system_program("go", "version") else { return };
    let folder = Folder::new();
    let path = folder.write("out.pb.gz", &exported(&example().recording(), Format::Pprof, &ExportOptions::default()));
    let top = run(go.args(["tool", "pprof", "-symbolize=none", "-top", "-unit=ns"]).arg(path));
    let row = |name: &str| -> Vec<String> {
        let line =
            top.lines().find(|line| line.ends_with(&format!(" {name}"))).unwrap_or_else(|| panic!("{name}: {top}"));
        line.split_whitespace().map(str::to_owned).collect()
    };
    let flat_and_total = |name: &str| (row(name)[0].clone(), row(name)[3].clone());
    assert!(top.contains("Showing nodes accounting for 4000ns, 100% of 4000ns total"), "{top}");
    assert_eq!(flat_and_total("main"), ("600ns".into(), "3000ns".into()));
    assert_eq!(flat_and_total("Model.step"), ("800ns".into(), "2400ns".into()));
    assert_eq!(flat_and_total("fib"), ("1700ns".into(), "1800ns".into()));
    assert_eq!(flat_and_total("inner (inline)"), ("400ns".into(), "400ns".into()));
}

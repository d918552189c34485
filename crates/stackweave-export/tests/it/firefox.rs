//! Profiles for the Firefox Profiler: they have the members of profiles by another writer, are consistent, and have the
//! costs of the profile.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::SystemTime;

use fxprof_processed_profile as reference;
use reference::{CategoryHandle, CpuDelta, FrameFlags, FrameInfo, Timestamp};
use serde_json::{Value, json};
use stackweave_export::{ExportOptions, Format, export};
use stackweave_profile::AggregateOptions;
use stackweave_recording::Recording;
use stackweave_recording::file::ProcessStart;
use stackweave_tapes::{Tape, recording_of, span};
use stackweave_testkit::folder::Folder;

use crate::common::examples::{example, nasty, random};
use crate::common::readers::{reader_script, run, system_program};
use crate::common::trees::{Tree, profiled};
use crate::common::{assert_golden, exported_text};

fn read(recording: &Recording, part: AggregateOptions) -> Option<Value> {
    let folder = Folder::new();
    let path = folder.file("out.firefox.json");
    let options = ExportOptions { part, ..ExportOptions::default() };
    export(recording, Format::Firefox, &path, &options, (None, &mut |_| {})).unwrap();
    let output = run(reader_script("read_firefox.py")?.arg(&path));
    Some(serde_json::from_str(&output).unwrap())
}

/// Returns costs by path, as the reader has printed them.
fn costs(printed: &Value) -> BTreeMap<Vec<String>, i64> {
    let row = |row: &Value| {
        let path = row[0].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect();
        (path, row[1].as_i64().unwrap())
    };
    printed.as_array().unwrap().iter().map(row).collect()
}

/// Asserts that self and total time by path, and calls by name, are those of the tree.
fn assert_costs(seen: &Value, tree: &Tree) {
    let costs_by = |cost: fn(&(u64, i64, i64)) -> i64| -> BTreeMap<Vec<String>, i64> {
        tree.iter().map(|(path, row)| (path.clone(), cost(row))).filter(|(_, cost)| *cost > 0).collect()
    };
    assert_eq!(costs(&seen["self"]), costs_by(|row| row.1));
    assert_eq!(costs(&seen["total"]), costs_by(|row| row.2));
    let mut calls: BTreeMap<&str, u64> = BTreeMap::new();
    for (path, row) in tree {
        *calls.entry(path.last().unwrap()).or_default() += row.0;
    }
    let counted: BTreeMap<&str, u64> = seen["calls"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, count)| (name.as_str(), count.as_u64().unwrap()))
        .collect();
    assert_eq!(counted, calls);
}

#[test]
fn costs_are_those_of_the_profile() {
    let recording = example().recording();
    let Some(seen) = read(&recording, AggregateOptions::default()) else { return };
    assert_costs(&seen, &profiled(&recording, &AggregateOptions::default()));
    assert_eq!(seen["samples"], json!([[["fib"], 2], [["main", "Model.step", "outer", "inner"], 3]]));
    let allocated = json!([[["main", "Model.step"], 4096], [["main", "Model.step", "fib"], 100]]);
    assert_eq!((&seen["allocated"], &seen["freed"]), (&allocated, &json!(-4096)));
    assert_eq!(seen["counters"], json!([["malloc", "4242", 128]]));
    let markers = json!([
        ["main", 50, "queue length", {"type": "counter", "value": 1.0}],
        ["main", 1050, "queue length", {"type": "counter", "value": 2.5}],
        ["main", 1450, "checkpoint", {"type": "instant", "cause": seen["markers"][2][3]["cause"]}],
        ["main", 2700, "saved", {"type": "instant", "details": r#"{"epoch":1,"path":"a\"b"}"#}],
    ]);
    assert_eq!(seen["markers"], markers);
    assert_eq!(seen["libs"][0]["codeId"], "ab".repeat(20));
    assert_eq!(seen["libs"][0]["breakpadId"], format!("{}0", "AB".repeat(16)));
}

/// Compares with the profiler's own program, from npm. It leaves a process behind until it is stopped.
#[test]
fn the_profiler_shows_these_costs() {
    if system_program("profiler-cli", "--version").is_none() {
        return;
    }
    let folder = Folder::new();
    let path = folder.file("out.firefox.json");
    let options = ExportOptions::default();
    export(&example().recording(), Format::Firefox, &path, &options, (None, &mut |_| {})).unwrap();
    let sessions = folder.file("sessions");
    let profiler_cli =
        |words: &[&str]| run(Command::new("profiler-cli").env("PROFILER_CLI_SESSION_DIR", &sessions).args(words));
    profiler_cli(&["load", path.to_str().unwrap()]);
    let (shown, counters) = (profiler_cli(&["thread", "samples"]), profiler_cli(&["counter", "list"]));
    profiler_cli(&["stop", "--all"]);
    for line in ["main - total: 3\u{3bc}s (100.0%)", "Model.step - self: 800ns", "libkernel.so!inner - self: 400ns"] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    assert!(counters.contains("4 samples"), "{counters}");
}

#[test]
fn every_name_is_read_back_unchanged() {
    let recording = nasty().recording();
    let Some(seen) = read(&recording, AggregateOptions::default()) else { return };
    assert_costs(&seen, &profiled(&recording, &AggregateOptions::default()));
}

#[test]
fn random_recordings_agree_with_their_profiles() {
    let recording = random(41, 30_000).recording();
    let parts = [
        AggregateOptions::default(),
        AggregateOptions {
            range: Some(2_000_000..6_000_000),
            threads: vec!["worker".to_owned()],
            ..AggregateOptions::default()
        },
    ];
    for part in parts {
        let Some(seen) = read(&recording, part.clone()) else { return };
        assert_costs(&seen, &profiled(&recording, &part));
    }
}

#[test]
fn processes_with_one_pid_stay_separate() {
    let tape = |host: &str| {
        let mut tape = Tape::started(&ProcessStart { pid: 9, host: host.to_owned(), ..ProcessStart::default() });
        tape.thread(1, 9, "main");
        tape.begin((1, 10), span("open"));
        tape.instant((1, 40), span("last"), &[]);
        tape
    };
    let Some(seen) = read(&recording_of(vec![tape("one"), tape("two")]), AggregateOptions::default()) else { return };
    assert_eq!(seen["threads"], json!([["9", "9", "main", true], ["4194304", "9", "main", true]]));
}

/// Builds a profile with a thread, a sample, an allocation, a library and a counter, by another writer.
fn reference_profile() -> Value {
    let interval = reference::SamplingInterval::from_millis(1);
    let mut profile = reference::Profile::new("reference", SystemTime::UNIX_EPOCH.into(), interval);
    let start = Timestamp::from_millis_since_reference(0.0);
    let process = profile.add_process("process", 1, start);
    let thread = profile.add_thread(process, 1, start, true);
    let library = profile.add_lib(reference::LibraryInfo {
        name: "lib.so".to_owned(),
        debug_name: "lib.so".to_owned(),
        path: "/lib.so".to_owned(),
        debug_path: "/lib.so".to_owned(),
        debug_id: reference::debugid::DebugId::nil(),
        code_id: None,
        arch: None,
        symbol_table: None,
    });
    profile.add_lib_mapping(process, library, 0x1000, 0x2000, 0);
    let frames = [reference::Frame::Label(profile.intern_string("f")), reference::Frame::ReturnAddress(0x1234)];
    let frames = frames.map(|frame| FrameInfo {
        frame,
        category_pair: CategoryHandle::OTHER.into(),
        flags: FrameFlags::empty(),
    });
    let stack = profile.intern_stack_frames(thread, frames.into_iter());
    profile.add_sample(thread, start, stack, CpuDelta::ZERO, 1);
    profile.add_allocation_sample(thread, start, stack, 0x1000, 64);
    let counter = profile.add_counter(process, "malloc", "Memory", "memory");
    profile.add_counter_sample(counter, start, 1.0, 1);
    serde_json::to_value(&profile).unwrap()
}

/// Asserts that our profile has every member of the reference, except those that the format calls optional.
fn assert_same_shape(path: &str, ours: &Value, reference: &Value) {
    const OPTIONAL: [&str; 1] = ["threadCPUDelta"];
    match (ours, reference) {
        (Value::Object(ours), Value::Object(reference)) => {
            for (key, value) in reference.iter().filter(|(key, _)| !OPTIONAL.contains(&key.as_str())) {
                let member = ours.get(key).unwrap_or_else(|| panic!("{path} has no {key}"));
                assert_same_shape(&format!("{path}.{key}"), member, value);
            }
        }
        (Value::Array(ours), Value::Array(reference)) => {
            if let (Some(member), Some(value @ Value::Object(_))) = (ours.first(), reference.first()) {
                assert_same_shape(&format!("{path}[0]"), member, value);
            }
        }
        (Value::Null, _) | (_, Value::Null) => {}
        (ours, reference) => {
            let kind = |value: &Value| (value.is_string(), value.is_number(), value.is_boolean(), value.is_array());
            assert_eq!(kind(ours), kind(reference), "{path}");
        }
    }
}

#[test]
fn the_members_are_those_of_another_writer_for_the_same_version() {
    let text = exported_text(&example().recording(), Format::Firefox, &ExportOptions::default());
    let (ours, reference) = (serde_json::from_str::<Value>(&text).unwrap(), reference_profile());
    for version in ["version", "preprocessedProfileVersion"] {
        assert_eq!(ours["meta"][version], reference["meta"][version]);
    }
    assert_same_shape("profile", &ours, &reference);
    assert_golden("example.firefox.json", &text);
}

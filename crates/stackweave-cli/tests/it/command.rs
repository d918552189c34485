//! The command as its users run it: arguments in, text and an exit status out.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use stackweave_core::{NoNames, RawFrame};
use stackweave_recording::events::{self, Allocator};
use stackweave_recording::{Recorder, RecorderOptions};

use crate::common::{Recorded, STACKS, frame, line, text};

/// Records notes like the tracers.
fn record_notes(path: &Path, demoted: &[&str]) {
    let recorder = Recorder::start(RecorderOptions::new(path), &STACKS, Arc::new(NoNames)).unwrap();
    let [demotion, note] = [events::DEMOTED, events::TRACE_NOTE].map(|kind| recorder.register(kind).unwrap());
    for name in demoted.iter().chain(demoted) {
        recorder.record(demotion, &[frame(name).to_bits(), 1_000, 40]);
    }
    for (name, count) in [("repairs", 5), ("events dropped", 1_000_000), ("repairs", 7)] {
        recorder.record(note, &[frame(name).to_bits(), count]);
    }
    assert_eq!(recorder.stop().error, None);
}

#[test]
fn info_shows_the_notes_of_a_tracer() {
    let recorded = Recorded::new().with("plain.swv", 1);
    record_notes(&recorded.path("three.swv"), &["a", "b", "c"]);
    record_notes(&recorded.path("many.swv"), &["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]);
    let trace = |name: &str| -> Vec<String> {
        let (printed, _) = recorded.printed(&["info", name]);
        printed.lines().filter_map(|line| line.strip_prefix("  trace ")).map(|line| line.trim().to_owned()).collect()
    };
    let counts = ["12 repairs", "1000000 events dropped"];
    assert_eq!(trace("three.swv"), ["3 functions were demoted: a, b, c", counts[0], counts[1]]);
    let many = "10 functions were demoted: a, b, c, d, e, f, g, h, and 2 more";
    assert_eq!(trace("many.swv"), [many, counts[0], counts[1]]);
    assert!(trace("plain.swv").is_empty());
    let (json, _) = recorded.printed(&["info", "--json", "three.swv"]);
    assert!(json.contains(r#""3 functions were demoted: a, b, c""#), "{json}");
}

/// Records a program that allocates three blocks, frees one, and has a block on a device.
fn record_memory(path: &Path, size: u64) {
    let mut options = RecorderOptions::new(path);
    options.extra.insert("recorder".to_owned(), "memory".to_owned());
    let recorder = Recorder::start(options, &STACKS, Arc::new(NoNames)).unwrap();
    recorder.name_thread("trainer");
    let malloc = recorder.register(Allocator::Malloc.kind()).unwrap();
    let free = recorder.register(events::FREE).unwrap();
    let on_device = recorder.register(events::HOST_ALLOCATE).unwrap();
    let stack = |names: &[&str]| -> u64 {
        let frames: Vec<RawFrame> = names.iter().map(|name| frame(name)).collect();
        STACKS.intern(&frames).unwrap().get().into()
    };
    recorder.record(malloc, &[0x1000, 4096, stack(&["load", "main"])]);
    recorder.record(malloc, &[0x2000, size, stack(&["step", "main"])]);
    recorder.record(free, &[0x2000]);
    recorder.record(malloc, &[0x3000, 100, stack(&["save", "main"])]);
    recorder.record(on_device, &[0x3000, 1 << 20, stack(&["step", "main"]), 2, 0, 0]);
    assert_eq!(recorder.stop().error, None);
}

#[test]
fn heap_shows_the_functions_that_allocated_memory() {
    let recorded = Recorded::new();
    record_memory(&recorded.path("a.swv"), 1 << 16);
    let (printed, _) = recorded.printed(&["heap", "a.swv"]);
    assert!(line(&printed, "  peak ").join(" ").starts_with("peak 68.0 KiB in 2 blocks, after "), "{printed}");
    assert_eq!(line(&printed, "  not freed "), ["not", "freed", "4.10", "KiB", "in", "2", "blocks"]);
    let peak = printed.find("Live at the peak").unwrap();
    let first = printed[peak..].lines().nth(2).unwrap();
    assert!(first.contains("64.0 KiB") && first.contains("step  train.py"), "{printed}");
    assert!(printed.contains("devices     2 have memory too"), "{printed}");
    let (leaks, _) = recorded.printed(&["heap", "a.swv", "--view", "leaks", "-n", "1"]);
    assert!(leaks.contains("load") && leaks.contains("(1 more, with 100 B)"), "{leaks}");
    let (device, _) = recorded.printed(&["heap", "a.swv", "--device", "2"]);
    assert!(device.starts_with("Memory of device 2") && device.contains("1.00 MiB in 1 block,"), "{device}");
    for view in ["peak", "temporary", "sizes", "threads", "tags", "time"] {
        assert!(recorded.printed(&["heap", "a.swv", "--view", view]).0.lines().count() > 1, "{view}");
    }
    let trace = Recorder::start(RecorderOptions::new(recorded.path("trace.swv")), &STACKS, Arc::new(NoNames)).unwrap();
    trace.begin(frame("epoch"));
    assert_eq!(trace.stop().error, None);
    let none = recorded.failure(&["heap", "trace.swv"]);
    assert!(none.contains("no allocations were recorded; stackweave memory"), "{none}");
    let none = recorded.failure(&["heap", "trace.swv", "--device", "1"]);
    assert!(none.contains("no memory of a device 1"), "{none}");
}

#[test]
fn totals_have_no_time_range_and_samples_are_estimates() {
    let recorded = Recorded::new();
    let record = |name: &str, extra: &[(&str, &str)]| {
        let mut options = RecorderOptions::new(recorded.path(name));
        options.extra.extend(extra.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let nothing = Recorder::start(options, &STACKS, Arc::new(NoNames)).unwrap();
        assert_eq!(nothing.stop().error, None);
    };
    record("sums.swv", &[("recorder", "memory"), ("memory.mode", "aggregate")]);
    record("few.swv", &[("recorder", "memory"), ("memory.mode", "sampled"), ("memory.sample_every", "2048")]);
    let (_, remarks) = recorded.printed(&["top", "few.swv"]);
    assert!(remarks.contains("estimated, from a sample of one allocation in 2.00 KiB"), "{remarks}");
    let printed = recorded.failure(&["heap", "sums.swv", "--start", "1s"]);
    assert!(printed.contains("totals and no history"), "{printed}");
    let printed = recorded.failure(&["heap", "sums.swv"]);
    assert!(printed.contains("no figures: the recording ended before the first were written"), "{printed}");
    let printed = recorded.failure(&["heap", "few.swv"]);
    assert!(printed.contains("no allocations are in the recording"), "{printed}");
    let (_, remarks) = recorded.printed(&["top", "sums.swv", "--start", "1s"]);
    assert!(remarks.contains("Only totals of memory"), "{remarks}");
}

#[test]
fn every_command_shows_a_recording_that_has_only_device_memory() {
    let recorded = Recorded::new();
    let mut options = RecorderOptions::new(recorded.path("a.swv"));
    let extra = [("recorder", "memory"), ("device.1.name", "Toy 9000"), ("device.1.total", "1048576")];
    options.extra.extend(extra.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let host = Recorder::start(options, &STACKS, Arc::new(NoNames)).unwrap();
    let [segment, take, failed] =
        [events::SEGMENT, events::HOST_ALLOCATE, events::HOST_OUT_OF_MEMORY].map(|kind| host.register(kind).unwrap());
    let stack = STACKS.intern(&[frame("step"), frame("main")]).unwrap().get().into();
    host.record(segment, &[0x1000, 8192, stack, 1, 0, 0]);
    host.record(take, &[0x1000, 4096, stack, 1, 0, 0]);
    host.record(failed, &[frame("out of memory").to_bits(), 1 << 30, stack, 1, 0, 0, 77]);
    assert_eq!(host.stop().error, None);
    let (printed, _) = recorded.printed(&["heap", "a.swv"]);
    assert!(
        printed.starts_with("Memory of device 1  over") && printed.contains("Device 1  Toy 9000, 1.00 MiB"),
        "{printed}"
    );
    let (printed, _) = recorded.printed(&["heap", "a.swv", "--view", "devices"]);
    assert!(
        printed.contains("4.00 KiB in use, 8.00 KiB reserved") && printed.contains("1.00 GiB  77 B  step "),
        "{printed}"
    );
    let none = recorded.failure(&["heap", "a.swv", "--device", "0"]);
    assert!(none.contains("no memory of a device 0"), "{none}");
    let (printed, _) = recorded.printed(&["heap", "--json", "a.swv"]);
    let json: serde_json::Value = serde_json::from_str(&printed).unwrap();
    let device = &json["device_memory"][0];
    assert_eq!(
        (&json["device"], &device["total"], &device["peak"]["reserved"]),
        (&1.into(), &(1 << 20).into(), &8192.into())
    );
    let failed = &device["out_of_memory"][0];
    assert_eq!((&failed["free"], &failed["stack"][0]["name"]), (&77.into(), &"step".into()));
    for command in ["top", "tree", "flame"] {
        let (printed, remarks) = recorded.printed(&[command, "a.swv"]);
        assert!(printed.contains("step") && printed.contains("4.00 KiB"), "{command}: {printed}");
        assert!(remarks.contains("this is the memory of device 1"), "{command}: {remarks}");
    }
    let (printed, _) = recorded.printed(&["diff", "a.swv", "a.swv"]);
    assert!(printed.contains("4.00 KiB"), "{printed}");
    record_memory(&recorded.path("b.swv"), 1 << 16);
    let (printed, _) = recorded.printed(&["heap", "b.swv", "--view", "devices"]);
    assert!(printed.starts_with("Device 2\n"), "{printed}");
}

#[test]
fn heap_writes_json() {
    let recorded = Recorded::new();
    record_memory(&recorded.path("a.swv"), 1 << 16);
    let (printed, _) = recorded.printed(&["heap", "--json", "a.swv"]);
    let json: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(json["totals"]["peak_bytes"], 69_632);
    assert_eq!(json["peak"][0]["stack"][0]["name"], "step");
    assert_eq!(json["leaks"][0]["bytes"], 4096);
    assert_eq!(json["devices"], serde_json::json!([-1, 2]));
    assert_eq!((&json["estimated"], &json["threads"][0]["name"]), (&false.into(), &"trainer".into()));
    assert_eq!(json["sizes"][0]["most"], 128);
    let (printed, _) = recorded.printed(&["heap", "--json", "--view", "sizes", "a.swv"]);
    let json: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert!(json.get("peak").is_none() && json.get("sizes").is_some(), "{printed}");
}

#[test]
fn every_command_shows_measures_of_memory() {
    let recorded = Recorded::new();
    record_memory(&recorded.path("a.swv"), 1 << 16);
    record_memory(&recorded.path("b.swv"), 1 << 20);
    for (measure, expected) in [("peak", "68.0 KiB"), ("live", "4.10 KiB"), ("temporary", "64.0 KiB")] {
        let (printed, _) = recorded.printed(&["tree", "a.swv", "--measure", measure]);
        assert!(printed.contains(expected), "{measure}: {printed}");
    }
    let (printed, _) = recorded.printed(&["top", "a.swv"]);
    assert!(printed.lines().nth(1).unwrap().contains("64.0 KiB"), "{printed}");
    let (printed, _) = recorded.printed(&["top", "a.swv", "--device", "2"]);
    assert!(printed.contains("1.00 MiB"), "{printed}");
    let (_, remarks) = recorded.printed(&["tree", "a.swv", "b.swv"]);
    assert!(remarks.contains("never live at once"), "{remarks}");
    let (printed, _) = recorded.printed(&["diff", "a.swv", "b.swv", "--measure", "peak"]);
    assert!(line(&printed, "step").join(" ").starts_with("64.0 KiB 1.00 MiB +960 KiB"), "{printed}");
}

#[test]
fn info_shows_the_contents_and_that_nothing_is_missing() {
    let recorded = Recorded::new().with("a.swv", 3);
    let (printed, _) = recorded.printed(&["info", "a.swv"]);
    assert!(printed.starts_with("1 process, 11 events in "), "{printed}");
    assert_eq!(line(&printed, "  missing "), ["missing", "nothing"]);
    assert_eq!(line(&printed, "trainer")[2..], ["trainer,", "11", "events"]);
    let (json, _) = recorded.printed(&["info", "--json", "a.swv"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["events"], 11);
    assert_eq!(json["processes"][0]["pid"], std::process::id());
    assert_eq!(json["processes"][0]["threads"][0]["name"], "trainer");
    assert_eq!(json["processes"][0]["missing"], serde_json::json!([]));
}

#[test]
fn info_reports_what_is_missing() {
    let recorded = Recorded::new().with("a.swv", 3);
    let whole = std::fs::read(recorded.path("a.swv")).unwrap();
    std::fs::write(recorded.path("cut.swv"), &whole[..whole.len() - 5]).unwrap();
    let (printed, _) = recorded.printed(&["info", "cut.swv"]);
    assert!(printed.contains("was not closed") && printed.contains("ends inside a block"), "{printed}");
    let (_, remarks) = recorded.printed(&["tree", "cut.swv"]);
    assert!(remarks.contains("was not closed"), "{remarks}");
}

#[test]
fn trees_and_tables_have_names_calls_and_locations() {
    let recorded = Recorded::new().with("a.swv", 3);
    let (tree, _) = recorded.printed(&["tree", "a.swv", "--min", "0"]);
    let names: Vec<usize> = ["epoch", "load", "step"].iter().map(|name| tree.find(name).unwrap()).collect();
    assert!(names[0] < names[1] && names[0] < names[2], "{tree}");
    assert!(line(&tree, "load").contains(&"3"), "{tree}");
    let (top, _) = recorded.printed(&["top", "a.swv", "--sort", "calls"]);
    assert!(top.find("load").unwrap() < top.find("epoch").unwrap(), "{top}");
    assert!(top.contains("train.py"), "{top}");
    let (one, _) = recorded.printed(&["top", "a.swv", "--include", "function:step"]);
    assert!(one.contains("step") && !one.contains("load"), "{one}");
    let (bytes, _) = recorded.printed(&["tree", "a.swv", "--measure", "bytes"]);
    assert!(bytes.contains("4.00 KiB") && bytes.contains("grow"), "{bytes}");
}

#[test]
fn a_diff_shows_changes() {
    let recorded = Recorded::new().with("before.swv", 2).with("after.swv", 2000);
    let (printed, _) = recorded.printed(&["diff", "before.swv", "after.swv"]);
    assert!(printed.contains("load"), "{printed}");
    let measures = recorded.failure(&["diff", "before.swv", "missing.swv"]);
    assert!(measures.contains("missing.swv"), "{measures}");
}

#[test]
fn merged_recordings_keep_their_processes() {
    let recorded = Recorded::new().with("a.swv", 3).with("b.swv", 4);
    let (_, printed) = recorded.printed(&["merge", "a.swv", "b.swv", "-o", "all.swv"]);
    assert!(printed.contains("all.swv: 2 processes, 24 events"), "{printed}");
    let (tree, _) = recorded.printed(&["tree", "all.swv", "--min", "0"]);
    assert!(line(&tree, "load").contains(&"7"), "{tree}");
    let refused = recorded.failure(&["merge", "a.swv", "-o", "all.swv"]);
    assert!(refused.contains("all.swv") && refused.contains("--overwrite"), "{refused}");
    recorded.printed(&["merge", "a.swv", "--overwrite", "-o", "all.swv"]);
    assert!(recorded.printed(&["info", "all.swv"]).0.starts_with("1 process, 11 events"));
}

#[test]
fn a_folder_is_a_recording() {
    let recorded = Recorded::new().with("a.swv", 3).with("b.swv", 4);
    std::fs::write(recorded.path("c.swv"), "none").unwrap();
    let (printed, _) = recorded.printed(&["info", "."]);
    assert!(printed.starts_with("2 processes, 24 events") && printed.contains("c.swv"), "{printed}");
}

#[test]
fn failures_are_one_sentence() {
    let recorded = Recorded::new().with("a.swv", 1);
    std::fs::write(recorded.path("text.txt"), "some text\n").unwrap();
    std::fs::write(recorded.path("empty.swv"), "").unwrap();
    for (arguments, word) in [
        (&["info", "text.txt"][..], "text.txt"),
        (&["tree", "empty.swv"], "empty"),
        (&["top", "gone.swv"], "gone.swv"),
        (&["tree", "a.swv", "--thread", "unknown"], "unknown"),
        (&["tree", "a.swv", "--process", "1"], "no process 1"),
        (&["tree", "a.swv", "--start", "2s", "--end", "1s"], "--start"),
        (&["merge", "a.swv", "-o", "no/such/folder.swv"], "folder.swv"),
    ] {
        let printed = recorded.failure(arguments);
        assert!(printed.starts_with("stackweave: ") && printed.contains(word), "{printed}");
    }
    let wrong = recorded.run(&["tree"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert_eq!(recorded.run(&["--help"]).status.code(), Some(0));
}

#[test]
fn a_closed_pipe_is_not_a_failure() {
    let recorded = Recorded::new().with("a.swv", 1);
    let mut command = Command::new(env!("CARGO_BIN_EXE_stackweave"));
    command.args(["info", "--json"]).arg(recorded.path("a.swv")).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
}

/// Writes a script in place of a Python, which prints its arguments; it finds the package if `status` is 0.
fn python(recorded: &Recorded, status: u8) -> PathBuf {
    let path = recorded.path("python");
    let script = format!("#!/bin/sh\n[ \"$1\" = -c ] && exit {status}\nprintf '%s|' \"$@\"\nexit 7\n");
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    path
}

#[test]
fn python_runs_programs_with_all_arguments() {
    for command in ["record", "trace", "memory", "dynamo"] {
        assert_run_by_python(command);
    }
}

fn assert_run_by_python(name: &str) {
    let recorded = Recorded::new();
    let python = python(&recorded, 0);
    let path = python.to_str().unwrap();
    for (arguments, expected) in [
        (vec!["--python", path, "-o", "x.swv", "s.py", "--python", "p", "-h"], "-o|x.swv|s.py|--python|p|-h|"),
        (vec!["--python", path, "-m", "pack", "--", "-x"], "-m|pack|--|-x|"),
        (vec!["--python", path, "--help"], "--help|"),
        (vec!["--python", path], ""),
    ] {
        let output = recorded.run(&[&[name], arguments.as_slice()].concat());
        assert_eq!(output.status.code(), Some(7), "{}", text(&output.stderr));
        assert_eq!(text(&output.stdout), format!("-m|stackweave|{name}|{expected}"));
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_stackweave"));
    let output = command.args([name, "s.py"]).env("STACKWEAVE_PYTHON", &python).output().unwrap();
    assert_eq!(text(&output.stdout), format!("-m|stackweave|{name}|s.py|"));
}

#[test]
fn a_python_without_the_package_is_reported_in_one_sentence() {
    let recorded = Recorded::new();
    let printed = recorded.failure(&["trace", "--python", "no/such/python", "s.py"]);
    assert!(printed.contains("can't run no/such/python: No such file") && printed.contains("--python"), "{printed}");
    let python = python(&recorded, 1);
    let printed = recorded.failure(&["trace", "--python", python.to_str().unwrap(), "s.py"]);
    assert!(printed.contains("the package stackweave is not installed for"), "{printed}");
}

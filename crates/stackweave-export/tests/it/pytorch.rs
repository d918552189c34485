//! Memory snapshots, as Python's pickle reads them, by the rules of `PyTorch`'s viewer, and by its `_memory_viz.py`.

use serde_json::{Value, json};
use stackweave_export::{ExportError, ExportOptions, Format, export};
use stackweave_profile::AggregateOptions;
use stackweave_recording::events::{self, Allocator};
use stackweave_tapes::{Tape, recording_of, span};
use stackweave_testkit::folder::Folder;
use stackweave_testkit::random::Random;

use crate::common::cuda::cuda_events;
use crate::common::examples::{MAIN_THREAD, STARTED_NS, WORKER, example, random};
use crate::common::exported;
use crate::common::memory::{OWN_CURVE, memory, memory_of, memory_tape};
use crate::common::readers::{read_snapshot, reader_script, run, script, torch_python};

fn actions(events: &Value) -> Vec<(&str, u64, u64)> {
    let event = |event: &'_ Value| (event["addr"].as_u64().unwrap_or(0), event["size"].as_u64().unwrap());
    let events = events.as_array().unwrap().iter();
    events.map(|entry| (entry["action"].as_str().unwrap(), event(entry).0, event(entry).1)).collect()
}

#[test]
fn the_snapshot_has_the_recording_under_pytorch_keys() {
    let Some(read) = read_snapshot(&memory().recording(), &ExportOptions::default()) else { return };
    let snapshot = &read["snapshot"];
    let mut keys: Vec<&String> = snapshot.as_object().unwrap().keys().collect();
    keys.sort();
    let expected =
        ["allocator_settings", "device_traces", "external_annotations", "host_segments", "host_traces", "segments"];
    assert_eq!(keys, expected);
    let traces = snapshot["device_traces"].as_array().unwrap();
    // Device 1 keeps its number; the heap of the process is after it.
    assert_eq!((traces.len(), &traces[0]), (3, &json!([])));
    let heap = actions(&traces[2]);
    assert_eq!(heap[..2], [("alloc", 0x5000_0000, 1000), ("alloc", 0x5000_1000, 2000)]);
    let mapped = [("segment_alloc", 0x7f00_0000_0000, 8192), ("alloc", 0x7f00_0000_0000, 8192)];
    assert_eq!(heap[2..4], mapped);
    let cut = [
        ("free_requested", 0x7f00_0000_0000, 8192),
        ("free_completed", 0x7f00_0000_0000, 8192),
        ("segment_free", 0x7f00_0000_0000, 8192),
        ("segment_alloc", 0x7f00_0000_1000, 4096),
        ("alloc", 0x7f00_0000_1000, 4096),
    ];
    assert_eq!(heap[4..9], cut);
    assert!(heap.contains(&("oom", 0, 1_000_000)));
    assert!(!heap.iter().any(|(_, address, _)| *address == 0xdead_0000));
    let first = &traces[2][0];
    let frame = |name: &str, filename: &str, line: u32| json!({"name": name, "filename": filename, "line": line});
    let stack = [frame("Model.step", "/app/model.py", 12), frame("main", "/app/train.py", 3)];
    let expected = json!({
        "action": "alloc", "addr": 0x5000_0000_u64, "size": 1000, "stream": 0, "time_us": (STARTED_NS + 1000) / 1000,
        "compile_context": "N/A", "user_metadata": "", "pool_id": [0, 0], "frames": stack,
    });
    assert_eq!(first, &expected);
    assert_eq!((&traces[2][1]["user_metadata"], &traces[2][9]["user_metadata"]), (&json!("loading"), &json!("")));
    // A free has its own stack if one was recorded, else that of its allocation.
    let freed = |address: u64| {
        let is_it = |event: &&Value| event["action"] == "free_completed" && event["addr"] == address;
        traces[2].as_array().unwrap().iter().find(is_it).unwrap()["frames"].clone()
    };
    assert_eq!((freed(0x5000_0000), freed(0x5100_0000)), (json!(stack), json!(stack)));
    let settings = &snapshot["allocator_settings"];
    assert_eq!((&settings["memory.mode"], &settings["program"]), (&json!("history"), &json!("python3 train.py")));
}

#[test]
fn the_bytes_of_the_trace_are_those_of_the_recording() {
    let Some(read) = read_snapshot(&memory().recording(), &ExportOptions::default()) else { return };
    let mut live = 0_i64;
    let mut curve: Vec<(u64, i64)> = Vec::new();
    for event in read["snapshot"]["device_traces"][2].as_array().unwrap() {
        let size = event["size"].as_i64().unwrap();
        live += match event["action"].as_str().unwrap() {
            "alloc" => size,
            "free_completed" => -size,
            _ => continue,
        };
        let time = event["time_us"].as_u64().unwrap() - u64::try_from(STARTED_NS / 1000).unwrap();
        curve.push((time, live));
    }
    // Of the events in one microsecond the last one counts.
    let last = |time: u64| curve.iter().rev().find(|(when, _)| *when <= time / 1000).map(|(_, live)| *live);
    for (time, bytes) in OWN_CURVE.into_iter().filter(|(time, _)| *time != 7000) {
        assert_eq!(last(time + 500), Some(i64::try_from(bytes).unwrap()), "{time}");
    }
}

#[test]
fn segments_are_recorded_ones_and_the_ranges_of_blocks() {
    let Some(read) = read_snapshot(&memory().recording(), &ExportOptions::default()) else { return };
    let segments = read["snapshot"]["segments"].as_array().unwrap();
    let seen: Vec<Value> = segments
        .iter()
        .map(|segment| json!([segment["device"], segment["address"], segment["total_size"], segment["allocated_size"]]))
        .collect();
    let expected = [
        json!([1, 0x1_0000, 4096, 256]),
        json!([2, 0x5000_0000, 0x1000 + 2000, 24 + 2000]),
        json!([2, 0x5100_0000, 1024, 0]),
        json!([2, 0x7f00_0000_1000_u64, 4096, 4096]),
    ];
    assert_eq!(seen, expected);
    let host = &segments[0];
    let about = json!([host["stream"], host["segment_pool_id"], host["segment_type"], host["is_expandable"]]);
    assert_eq!(about, json!([7, [0, 3], "small", false]));
    assert_eq!((host["frames"].as_array().unwrap().len(), host["blocks"].as_array().unwrap().len()), (1, 3));
    assert_eq!(host["blocks"][1]["frames"][0]["name"], "load");
    let tagged = &segments[1]["blocks"][2];
    assert_eq!((&tagged["requested_size"], &tagged["user_metadata"]), (&json!(2000), &json!("loading")));
    let device_1 = actions(&read["snapshot"]["device_traces"][1]);
    let names: Vec<&str> = device_1.iter().map(|(action, _, _)| *action).collect();
    let expected =
        ["segment_alloc", "alloc", "alloc", "free_requested", "free_completed", "segment_alloc", "segment_free"];
    assert_eq!(names, expected);
}

#[test]
fn spans_and_tags_are_annotations() {
    let Some(read) = read_snapshot(&memory().recording(), &ExportOptions::default()) else { return };
    let annotations = read["snapshot"]["external_annotations"].as_array().unwrap();
    let seen: Vec<Value> = annotations.iter().map(|one| json!([one["name"], one["stage"], one["device"]])).collect();
    let expected = [
        json!(["epoch", "START", 2]),
        json!(["loading", "START", 2]),
        json!(["loading", "END", 2]),
        json!(["epoch", "END", 2]),
    ];
    assert_eq!(seen, expected);
    assert_eq!(annotations[1]["time_us"], (STARTED_NS + 1500) / 1000);
}

#[test]
fn a_time_range_includes_blocks_from_before_it() {
    let part = AggregateOptions { range: Some(5500..6500), ..AggregateOptions::default() };
    let options = ExportOptions { part, ..ExportOptions::default() };
    let Some(read) = read_snapshot(&memory().recording(), &options) else { return };
    let heap = actions(&read["snapshot"]["device_traces"][0]);
    assert_eq!(heap, [("free_requested", 0x5000_0000, 1000), ("free_completed", 0x5000_0000, 1000)]);
    let sizes = read["snapshot"]["segments"].as_array().unwrap().iter();
    assert_eq!(sizes.map(|segment| segment["allocated_size"].as_u64().unwrap()).sum::<u64>(), 7120);
}

#[test]
fn processes_have_separate_devices() {
    let recording = recording_of(vec![memory(), memory_of(7)]);
    let Some(read) = read_snapshot(&recording, &ExportOptions::default()) else { return };
    let lens: Vec<usize> = read["snapshot"]["device_traces"]
        .as_array()
        .unwrap()
        .iter()
        .map(|events| events.as_array().unwrap().len())
        .collect();
    assert_eq!(lens.len(), 6);
    assert_eq!(lens[..3], lens[3..]);
}

/// Records threads that allocate and free blocks and mappings of all sizes, with overlaps.
fn random_memory(seed: u64, events: u64) -> Tape {
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let mut tape = memory_tape(&[]);
    let functions: Vec<u32> = (0..10).map(|number| tape.python(&format!("f{number}"), "/app/f.py", number)).collect();
    for ticks in 0..events {
        let at = ([MAIN_THREAD, WORKER][random.below(2)], ticks * 1000);
        let first = functions[random.below(10)];
        let stack = [Tape::at(first, 3), Tape::at(functions[0], 1)];
        let address = 0x1000_0010 + 0x40 * (random.bits() % 4096) + 0x10_0000 * (random.bits() % 16);
        let page = 0x1010_0000 + 0x1000 * (random.bits() % 4096);
        match random.below(12) {
            0..5 => tape.allocate_by(at, Allocator::Malloc, (address, random.bits() % 0x40), &stack),
            5..9 => tape.free(at, address),
            9 => tape.allocate_by(at, Allocator::Mmap, (page, 0x1000 * (1 + random.bits() % 8)), &stack),
            10 => tape.event(at, &events::MUNMAP, &[page, 0x1000 * (1 + random.bits() % 8)]),
            _ => tape.event(at, &events::KEPT, &[address]),
        }
    }
    tape
}

#[test]
fn random_recordings_can_be_undone_from_the_final_state() {
    for seed in [71, 72, 73] {
        let Some(read) = read_snapshot(&random_memory(seed, 800).recording(), &ExportOptions::default()) else {
            return;
        };
        assert!(read["snapshot"]["device_traces"][0].as_array().unwrap().len() > 300);
    }
    let Some(read) = read_snapshot(&random(74, 2000).recording(), &ExportOptions::default()) else { return };
    assert!(!read["snapshot"]["segments"].as_array().unwrap().is_empty());
}

#[test]
fn stacks_and_frames_are_shared() {
    let mut tape = memory_tape(&[]);
    let functions: Vec<u32> = (0..10).map(|number| tape.python(&format!("f{number}"), "/app/f.py", number)).collect();
    let outer: Vec<_> = (0..30).map(|line| Tape::at(functions[0], line)).collect();
    for step in 0..20_000_u64 {
        let mut stack = vec![Tape::at(functions[usize::try_from(step % 10).unwrap()], 3)];
        stack.extend(&outer);
        tape.allocate_by((MAIN_THREAD, 2 * step), Allocator::Malloc, (0x5000_0000 + (step % 100) * 64, 64), &stack);
        tape.free((MAIN_THREAD, 2 * step + 1), 0x5000_0000 + (step % 100) * 64);
    }
    let bytes = exported(&tape.recording(), Format::Pytorch, &ExportOptions::default());
    assert!(bytes.len() < 60_000 * 60, "{}", bytes.len());
    let folder = Folder::new();
    let path = folder.write("out.pickle", &bytes);
    let Some(mut command) = reader_script("read_snapshot.py") else { return };
    let output: Value = serde_json::from_str(&run(command.arg(path).arg("counts"))).unwrap();
    assert_eq!(output, json!({"events": [60_000], "sharing": [10, 10, 39, 39]}));
}

#[test]
fn a_recording_without_memory_is_refused() {
    let mut tape = Tape::new();
    tape.begin((1, 10), span("a"));
    let folder = Folder::new();
    let options = ExportOptions::default();
    let path = folder.file("out.pickle");
    let error = export(&tape.recording(), Format::Pytorch, &path, &options, (None, &mut |_| {})).unwrap_err();
    assert!(matches!(&error, ExportError::Unsupported(why) if why.contains("no events of memory")), "{error}");
    assert!(folder.names().is_empty());
}

#[test]
fn torch_renders_it_in_all_views() {
    let Some(mut python) = torch_python() else { return };
    let folder = Folder::new();
    let bytes = exported(&memory().recording(), Format::Pytorch, &ExportOptions::default());
    let path = folder.write("out.pickle", &bytes);
    let output: Value = serde_json::from_str(&run(python.arg("-I").arg(script("torch_viewer.py")).arg(path))).unwrap();
    let text = |key: &str| output[key].as_str().unwrap().to_owned();
    assert!(text("stats").contains("segments: 4\n") && text("stats").contains("total_allocated: 6.2KiB"), "{output}");
    assert!(text("trace").contains("Device 2 ----------------") && text("trace").contains("raise OutOfMemoryError"));
    let mut lines: Vec<String> = text("memory").lines().map(str::to_owned).collect();
    lines.retain(|line| !line.contains("inactive"));
    let expected = [
        "stream_7;active_allocated;load.py:5:load 256",
        "stream_0;active_allocated;train.py:3:main;model.py:12:Model.step 24",
        "stream_0;active_allocated;load.py:5:load 2000",
        "stream_0;active_allocated;train.py:3:main 4096",
    ];
    assert_eq!(lines, expected);
    assert!(text("compared").contains("only_after = [65536]") && text("compare").contains("only_after;stream_7"));
    assert!(output["pages"].as_array().unwrap().iter().all(|len| len.as_u64() > Some(1000)));
    // Events of blocks whose allocation was not recorded are shown, too.
    let path =
        folder.write("example.pickle", &exported(&example().recording(), Format::Pytorch, &ExportOptions::default()));
    run(torch_python().unwrap().arg("-I").arg(script("torch_viewer.py")).arg(path));
}

#[test]
fn torch_renders_every_entry_of_a_caching_allocator() {
    let Some(mut python) = torch_python() else { return };
    let mut tape = cuda_events();
    tape.record_state((MAIN_THREAD, 30_000));
    let folder = Folder::new();
    let bytes = exported(&tape.memory.recording(), Format::Pytorch, &ExportOptions::default());
    let path = folder.write("out.pickle", &bytes);
    let output: Value = serde_json::from_str(&run(python.arg("-I").arg(script("torch_viewer.py")).arg(path))).unwrap();
    let trace = output["trace"].as_str().unwrap();
    let expected = "\
Device 0 ----------------
13 entries
a = cudaMalloc(16777216, 20.0MiB)
b = a[0:976.6KiB]
c = MEM[1049088:100.0B]
";
    assert!(trace.starts_with(expected), "{trace}");
    let expected = [
        "del 1048576 # 500.0B",
        "# free completed for 1048576 500.0B",
        "del b # 976.6KiB",
        "cudaFree(d) # 2.0MiB",
        "raise OutOfMemoryError # 80.0GiB requested, 1.0GiB free in CUDA",
    ];
    for line in expected {
        assert!(trace.lines().any(|seen| seen == line), "{line}: {trace}");
    }
    let memory: Vec<&str> =
        output["memory"].as_str().unwrap().lines().filter(|line| !line.contains(";inactive;")).collect();
    let expected = [
        "stream_0;active_allocated;train.py:3:main;load.py:5:load 100",
        "stream_0;active_allocated;<gaps> 412",
        "stream_0;active_pending_free;train.py:3:main;model.py:12:Model.step 1000000",
        "stream_0;active_pending_free;<gaps> 48576",
        "stream_7;active_allocated;train.py:3:main;model.py:12:Model.step 30000000",
        "stream_7;active_allocated;<gaps> 1457280",
        "stream_7;active_allocated;train.py:3:main;load.py:5:load 4000",
        "stream_7;active_allocated;<gaps> 96",
    ];
    assert_eq!(memory, expected);
    let stats = output["stats"].as_str().unwrap();
    assert!(stats.contains("segments: 3\ntotal_reserved: 60.0MiB\ntotal_allocated: 28.6MiB"), "{stats}");
    assert!(output["pages"].as_array().unwrap().iter().all(|len| len.as_u64() > Some(1000)));
}

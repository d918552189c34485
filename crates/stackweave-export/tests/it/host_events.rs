//! Events of a host's allocator in the formats of events: blocks are counted once, and only events are shown.

use serde_json::{Value, json};
use stackweave_export::{ExportOptions, Format, export};
use stackweave_recording::Recording;
use stackweave_testkit::folder::Folder;

use crate::common::cuda::{DEVICE_FREE, GRAPH, cuda_events};
use crate::common::examples::MAIN_THREAD;
use crate::common::json_lines::read_json_lines;
use crate::common::readers::{reader_script, run};
use crate::common::{exported, exported_text};

fn cuda() -> Recording {
    let mut tape = cuda_events();
    tape.record_state((MAIN_THREAD, 30_000));
    tape.memory.recording()
}

fn read(script: &str, format: Format) -> Option<Value> {
    let folder = Folder::new();
    let path = folder.write(&format!("out{}", format.suffix()), &exported(&cuda(), format, &ExportOptions::default()));
    Some(serde_json::from_str(&run(reader_script(script)?.arg(path))).unwrap())
}

/// The live bytes of both devices at each change.
const FIRST_CURVE: [(u64, u64); 5] =
    [(2000, 500), (4000, 1_000_500), (6000, 1_000_600), (7000, 1_000_100), (9000, 100)];
const SECOND_CURVE: [(u64, u64); 2] = [(13_000, 30_000_000), (14_000, 30_004_000)];

#[test]
fn blocks_count_until_the_program_frees_them() {
    let Some(seen) = read("read_chrome.py", Format::Chrome) else { return };
    let counters = |name: &str| -> Vec<(u64, u64)> {
        let rows = seen["counters"].as_array().unwrap().iter().filter(|row| row[2] == name);
        rows.map(|row| (row[1].as_u64().unwrap(), row[3]["bytes"].as_u64().unwrap())).collect()
    };
    assert_eq!(counters("allocated bytes on device 0"), FIRST_CURVE);
    assert_eq!(counters("allocated bytes on device 1"), SECOND_CURVE);
    let Some(seen) = read("read_perfetto.py", Format::Perfetto) else { return };
    let of_first = seen["counters"].as_array().unwrap().iter().filter(|row| row[0] == "allocated bytes on device 0");
    assert_eq!(of_first.map(|row| row[2].as_u64().unwrap()).collect::<Vec<_>>(), FIRST_CURVE.map(|(_, bytes)| bytes));
}

#[test]
fn events_have_names_and_allocator_states_are_no_events() {
    let text = exported_text(&cuda(), Format::Chrome, &ExportOptions::default());
    let chrome: Value = serde_json::from_str(&text).unwrap();
    let instants: Vec<&Value> =
        chrome["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "i").collect();
    let names: Vec<&str> = instants.iter().map(|event| event["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["forward", "out of memory", "weights", "snapshot"]);
    let details = &instants[1]["args"];
    let figures = json!([details["size"], details["free"], details["device"], details["stream"], details["pool"]]);
    assert_eq!(figures, json!([80_u64 << 30, DEVICE_FREE, 1, 7, 5]));
    assert_eq!((&instants[2]["args"]["address"], &instants[2]["args"]["device"]), (&json!("0x3e00000"), &json!(1)));
    let firefox = exported_text(&cuda(), Format::Firefox, &ExportOptions::default());
    assert!(firefox.contains("out of memory") && !firefox.contains("host-state"));
}

#[test]
fn lines_of_json_have_every_event_and_no_rows_of_allocator_states() {
    let text = exported_text(&cuda(), Format::Json, &ExportOptions::default());
    let lines = read_json_lines(&text);
    assert_eq!(lines.len(), 23);
    let at = |time: u64| lines.iter().find(|line| line["time_ns"] == time).unwrap();
    let freed = at(8000);
    assert_eq!(json!([freed["kind"], freed["size"]]), json!(["host-free-completed", 500]));
    assert_eq!(json!([at(9000)["pool"], at(9000)["device"]]), json!([GRAPH, 0]));
    assert_eq!(json!([at(18_000)["name"], at(18_000)["free"]]), json!(["out of memory", DEVICE_FREE]));
    assert_eq!(json!([at(19_000)["name"], at(19_000)["address"]]), json!(["weights", "0x3e00000"]));
}

#[test]
fn parquet_has_each_block_once() {
    let folder = Folder::new();
    let path = folder.file("out.parquet");
    export(&cuda(), Format::Parquet, &path, &ExportOptions::default(), (None, &mut |_| {})).unwrap();
    let Some(mut command) = reader_script("read_allocations.py") else { return };
    let seen: Value = serde_json::from_str(&run(command.arg(path))).unwrap();
    // Allocator, size, device, tag, start, lifetime, allocating and freeing thread, innermost function.
    let expected = json!([
        ["host-present", 500, 0, null, 2000, 5000, 1, 1, "allocated before the recording"],
        ["host-allocate", 1_000_000, 0, null, 4000, 5000, 1, 1, "step"],
        ["host-allocate", 100, 0, "forward", 6000, null, 1, null, "load"],
        ["host-allocate", 30_000_000, 1, null, 13_000, null, 2, null, "step"],
        ["host-allocate", 4000, 1, null, 14_000, null, 1, null, "load"],
    ]);
    assert_eq!(seen["duckdb"], expected);
    let kinds = json!([["allocate", 5], ["free", 4], ["instant", 3], ["map", 5], ["tag", 2], ["unmap", 2]]);
    assert_eq!(seen["kinds"], kinds);
}

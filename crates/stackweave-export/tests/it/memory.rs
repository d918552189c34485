//! Memory events, in the formats of events.

use serde_json::{Value, json};
use stackweave_export::{ExportOptions, Format, export};
use stackweave_profile::{AggregateOptions, Measure};
use stackweave_recording::Recording;
use stackweave_recording::events::Allocator;
use stackweave_testkit::folder::Folder;

use crate::common::examples::MAIN_THREAD;
use crate::common::json_lines::read_json_lines;
use crate::common::memory::{OWN_CURVE, memory, memory_tape};
use crate::common::readers::{reader_script, run};
use crate::common::{exported, exported_text};

fn read(script: &str, format: Format, recording: &Recording) -> Option<Value> {
    let folder = Folder::new();
    let path =
        folder.write(&format!("out{}", format.suffix()), &exported(recording, format, &ExportOptions::default()));
    Some(serde_json::from_str(&run(reader_script(script)?.arg(path))).unwrap())
}

#[test]
fn mappings_and_failed_frees_count() {
    let Some(seen) = read("read_chrome.py", Format::Chrome, &memory().recording()) else { return };
    let counters = |name: &str| -> Vec<(u64, u64)> {
        let rows = seen["counters"].as_array().unwrap().iter().filter(|row| row[2] == name);
        rows.map(|row| (row[1].as_u64().unwrap(), row[3]["bytes"].as_u64().unwrap())).collect()
    };
    // A block of no bytes changes only the number of blocks.
    let mut heap = counters("allocated bytes");
    heap.retain(|(time, _)| *time != 9000);
    assert_eq!(heap, OWN_CURVE);
    assert_eq!(counters("allocated bytes on device 1"), [(10_100, 512), (10_200, 768), (10_300, 256)]);
    let Some(seen) = read("read_perfetto.py", Format::Perfetto, &memory().recording()) else { return };
    let rows = seen["counters"].as_array().unwrap().iter().filter(|row| row[0] == "allocated bytes");
    let values: Vec<u64> = rows.map(|row| row[2].as_u64().unwrap()).collect();
    let mut expected: Vec<u64> = OWN_CURVE.iter().map(|(_, bytes)| *bytes).collect();
    expected.insert(9, 6096);
    assert_eq!(values, expected);
    let Some(seen) = read("read_firefox.py", Format::Firefox, &memory().recording()) else { return };
    assert_eq!(seen["counters"], json!([["malloc", "4242", 6120]]));
}

#[test]
fn sampled_blocks_are_scaled() {
    let options = [("recorder", "memory"), ("memory.mode", "sampled"), ("memory.sample_every", "1000")];
    let mut tape = memory_tape(&options);
    tape.allocate_by((MAIN_THREAD, 10), Allocator::Malloc, (0x1000, 1000), &[]);
    tape.free((MAIN_THREAD, 20), 0x1000);
    let Some(seen) = read("read_chrome.py", Format::Chrome, &tape.recording()) else { return };
    let values: Vec<&Value> = seen["counters"].as_array().unwrap().iter().map(|row| &row[3]).collect();
    assert_eq!(values, [&json!({"bytes": 1582}), &json!({"blocks": 2}), &json!({"bytes": 0}), &json!({"blocks": 0})]);
}

#[test]
fn formats_of_costs_show_the_peak_unless_another_measure_is_requested() {
    let recording = memory().recording();
    let exported = |format, measure| {
        let part = AggregateOptions { measure, ..AggregateOptions::default() };
        exported_text(&recording, format, &ExportOptions { part, ..ExportOptions::default() })
    };
    let sum = |measure| -> u64 {
        let text = exported(Format::Folded, measure);
        text.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum()
    };
    let measures = [None, Some(Measure::LiveBytes), Some(Measure::AllocatedBytes), Some(Measure::Allocations)];
    assert_eq!(measures.map(sum), [11_192, 6120, 12_240, 6]);
    assert!(exported(Format::Flamegraph, None).contains("10.9 KiB live at the peak"));
    assert!(exported(Format::Callgraph, Some(Measure::LiveBytes)).contains("bytes live at the end of python3"));
}

#[test]
fn lines_of_json_have_all_fields() {
    let text = exported_text(&memory().recording(), Format::Json, &ExportOptions::default());
    let lines = read_json_lines(&text);
    let at = |time: u64| lines.iter().find(|line| line["time_ns"] == time).unwrap();
    assert_eq!((&at(1500)["kind"], &at(1500)["name"]), (&json!("memory-tag"), &json!("loading")));
    assert_eq!(at(4500)["name"], Value::Null);
    assert_eq!(
        (&at(2000)["kind"], &at(2000)["tag"], &at(5000)["tag"]),
        (&json!("calloc"), &json!("loading"), &Value::Null)
    );
    assert_eq!((&at(4000)["kind"], &at(4000)["size"]), (&json!("munmap"), &json!(4096)));
    assert_eq!((&at(7100)["kind"], &at(7100)["address"]), (&json!("kept"), &json!("0x50001000")));
    let host = at(10_100);
    assert_eq!(json!([host["device"], host["stream"], host["pool"]]), json!([1, 7, 3]));
}

#[test]
fn parquet_has_a_row_for_each_allocation() {
    let folder = Folder::new();
    let path = folder.file("out.parquet");
    let options = ExportOptions::default();
    export(&memory().recording(), Format::Parquet, &path, &options, (None, &mut |_| {})).unwrap();
    let Some(mut command) = reader_script("read_allocations.py") else { return };
    let seen: Value = serde_json::from_str(&run(command.arg(path))).unwrap();
    // Allocator, size, device, tag, start, lifetime, allocating and freeing thread, innermost function.
    let expected = json!([
        ["malloc", 1000, -1, null, 1000, 5000, 1, 1, "step"],
        ["calloc", 2000, -1, "loading", 2000, null, 2, null, "load"],
        ["mmap", 4096, -1, null, 3000, 1000, 1, 1, "main"],
        ["mmap", 4096, -1, null, 3000, null, 1, null, "main"],
        ["posix_memalign", 1024, -1, null, 5000, 3000, 2, 1, "load"],
        ["malloc", 0, -1, null, 9000, 2000, 1, 1, null],
        ["host-allocate", 512, 1, null, 10100, 200, 1, 1, "step"],
        ["host-allocate", 256, 1, null, 10200, null, 1, null, "load"],
        ["realloc", 24, -1, null, 11000, null, 1, null, "step"],
    ]);
    assert_eq!(seen["duckdb"], expected);
    assert_eq!(seen["polars"], json!(6120));
    let kinds = json!([
        ["allocate", 7],
        ["free", 5],
        ["instant", 1],
        ["keep", 1],
        ["map", 3],
        ["span", 1],
        ["tag", 2],
        ["unmap", 2]
    ]);
    assert_eq!(seen["kinds"], kinds);
    assert_eq!(seen["live"], json!(6120));
}

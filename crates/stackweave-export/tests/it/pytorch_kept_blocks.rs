//! Snapshots without small blocks that are freed.

use serde_json::{Value, json};
use stackweave_export::{ExportOptions, Format, export};
use stackweave_profile::AggregateOptions;
use stackweave_recording::events::{self, Allocator};
use stackweave_tapes::Tape;
use stackweave_testkit::folder::Folder;

use crate::common::examples::MAIN_THREAD;
use crate::common::memory::memory_tape;
use crate::common::readers::read_snapshot;

fn on(ticks: u64) -> (u32, u64) {
    (MAIN_THREAD, ticks)
}

/// Records small and large blocks, and devices with small blocks.
fn blocks() -> Tape {
    let mut tape = memory_tape(&[]);
    let mut stack = Vec::new();
    for name in ["step", "main"] {
        stack.push(Tape::at(tape.python(name, "/app/train.py", 1), 2));
    }
    for (ticks, address, size) in [(1000, 0x1000, 16), (2000, 0x2000, 16), (3000, 0x3000, 512), (4000, 0x4000, 0)] {
        tape.allocate_by(on(ticks), Allocator::Malloc, (address, size), &stack);
    }
    tape.free(on(5000), 0x1000);
    tape.free(on(5500), 0x4000);
    // The free of the large block is missing.
    tape.allocate_by(on(6000), Allocator::Malloc, (0x3000, 20), &stack);
    tape.free(on(7000), 0x3000);
    // A free that failed.
    tape.free(on(8000), 0x2000);
    tape.event(on(8100), &events::KEPT, &[0x2000]);
    tape.event(on(9000), &events::HOST_ALLOCATE, &[0x1_0100, 16, 0, 1, 0, 0]);
    tape.event(on(9100), &events::HOST_FREE, &[0x1_0100, 16, 0, 1, 0, 0]);
    tape
}

fn entries(read: &Value, device: usize) -> Vec<Value> {
    let entries = read["snapshot"]["device_traces"][device].as_array().unwrap().iter();
    entries.map(|entry| json!([entry["action"], entry["addr"], entry["size"]])).collect()
}

#[test]
fn small_blocks_that_are_freed_are_left_out() {
    let options = ExportOptions { min_block: Some(512), ..ExportOptions::default() };
    let Some(read) = read_snapshot(&blocks().recording(), &options) else { return };
    let expected = [
        json!(["alloc", 0x2000, 16]),
        json!(["alloc", 0x3000, 512]),
        json!(["free_requested", 0x3000, 512]),
        json!(["free_completed", 0x3000, 512]),
        json!(["free_requested", 0x2000, 16]),
        json!(["free_completed", 0x2000, 16]),
        json!(["alloc", 0x2000, 16]),
    ];
    assert_eq!(entries(&read, 2), expected);
    let names: Vec<Value> = entries(&read, 1).into_iter().map(|entry| entry[0].clone()).collect();
    assert_eq!(names, ["alloc", "free_requested", "free_completed"], "devices have all blocks");
    let segments = read["snapshot"]["segments"].as_array().unwrap();
    let live: Vec<&Value> = segments
        .iter()
        .flat_map(|segment| segment["blocks"].as_array().unwrap())
        .filter(|block| block["state"] == "active_allocated")
        .map(|block| &block["address"])
        .collect();
    assert_eq!(live, [&json!(0x2000)]);
    let left_out = "3 blocks of less than 512 B that were freed (6.4 % of the allocated bytes) are left out";
    assert_eq!(read["snapshot"]["allocator_settings"]["left out"], left_out);
}

#[test]
fn blocks_from_before_the_selected_time_are_left_out_too() {
    let part = AggregateOptions { range: Some(4500..9000), ..AggregateOptions::default() };
    let options = ExportOptions { min_block: Some(512), part, ..ExportOptions::default() };
    let Some(read) = read_snapshot(&blocks().recording(), &options) else { return };
    assert!(!entries(&read, 0).contains(&json!(["free_requested", 0x1000, 16])));
    assert!(entries(&read, 0).contains(&json!(["free_requested", 0x3000, 512])));
}

#[test]
fn a_remark_names_the_option() {
    let folder = Folder::new();
    let remarks = |min_block: Option<u64>| {
        let options = ExportOptions { min_block, overwrite: true, ..ExportOptions::default() };
        let path = folder.file("out.pickle");
        export(&blocks().recording(), Format::Pytorch, &path, &options, (None, &mut |_| {})).unwrap().remarks
    };
    let [remark] = &remarks(Some(17))[..] else { panic!("one remark") };
    assert!(remark.ends_with(" are left out: --min-block 0, or min_block=0 in Python, includes them."), "{remark}");
    assert_eq!([remarks(None), remarks(Some(0))], [const { Vec::<String>::new() }; 2], "few blocks are all kept");
}

#[test]
fn frames_of_the_interpreter_are_hidden_unless_all_are_requested() {
    let mut tape = memory_tape(&[]);
    let main = Tape::at(tape.python("main", "/app/train.py", 1), 2);
    let internal = Tape::at(tape.python("raw_decode", "/usr/lib/python3.12/json/decoder.py", 1), 2);
    let outer = Tape::at(tape.python("decode", "/usr/lib/python3.12/json/decoder.py", 1), 2);
    tape.allocate_by(on(1000), Allocator::Malloc, (0x1000, 16), &[internal, outer, main]);
    tape.allocate_by(on(2000), Allocator::Malloc, (0x2000, 16), &[outer, main]);
    let recording = tape.recording();
    let frames = |view: Option<stackweave_profile::View>| {
        let options = ExportOptions { view, ..ExportOptions::default() };
        let read = read_snapshot(&recording, &options)?;
        let trace = read["snapshot"]["device_traces"][0].as_array().unwrap();
        Some(trace.iter().map(|entry| entry["frames"].as_array().unwrap().len()).collect::<Vec<_>>())
    };
    let Some(hidden) = frames(None) else { return };
    assert_eq!(hidden, [2, 2], "the library's inner functions are hidden");
    let all = stackweave_profile::View { show_all: true, ..stackweave_profile::View::default() };
    assert_eq!(frames(Some(all)), Some(vec![3, 2]));
}

//! The memory of devices in a report: equal to `read_devices`, with every block if the host records its state.

use serde_json::{Value, json};
use stackweave_export::ExportOptions;
use stackweave_profile::memory::{DevicePoint, MemoryQuery, read_devices, read_report};
use stackweave_recording::Recording;
use stackweave_tapes::recording_of;

use crate::common::devices::{MIB, devices};
use crate::common::report::{Columns, Page};

fn page(recording: &Recording) -> Page {
    Page::of(recording, &ExportOptions::default())
}

fn device(page: &Page, number: i64) -> &Value {
    let devices = page.head["memory"]["devices"].as_array().unwrap();
    devices.iter().find(|of| of["device"] == number).unwrap()
}

/// Returns time, allocated, pending and reserved bytes.
fn points(page: &Page, block: &Value) -> Vec<[u64; 4]> {
    let mut columns = page.columns(block);
    let (times, taken, pending, reserved) = (columns.differences(0), columns.plain(), columns.plain(), columns.plain());
    assert!(columns.is_at_end());
    (0..times.len()).map(|at| [times[at], taken[at], pending[at], reserved[at]]).collect()
}

fn known(points: &[DevicePoint], since: u64) -> Vec<[u64; 4]> {
    points.iter().map(|of| [of.time_ns + since, of.allocated, of.pending, of.reserved]).collect()
}

/// Returns the names of a stack's frames, outermost first.
fn stack(page: &Page, host: &Value, node: u64) -> Vec<String> {
    let names = page.functions();
    let mut frames = page.columns(&page.head["frames"]);
    let functions = frames.plain();
    let mut tree = page.columns(&host["stacks"]);
    let (back, frame) = (tree.plain(), tree.plain());
    let index = |of: u64| usize::try_from(of).unwrap();
    let (mut path, mut node) = (Vec::new(), node);
    while node > 0 {
        path.push(names[index(functions[index(frame[index(node)])])].clone());
        node -= back[index(node)];
    }
    path.reverse();
    path
}

#[test]
fn a_recording_of_devices_only_has_no_heap() {
    let recording = devices(1).recording();
    let page = page(&recording);
    let labels: Vec<_> = page.head["memory"]["devices"].as_array().unwrap().iter().map(|of| &of["label"]).collect();
    assert_eq!(labels, ["NVIDIA H200 (device 0)", "Device 1"]);
    for number in [0, 1] {
        let query = MemoryQuery { devices: vec![number], ..MemoryQuery::default() };
        let report = read_report(recording.processes(), &query, None, &mut |_| {}).unwrap();
        let figures = &report.totals.figures;
        let memory = device(&page, number);
        assert_eq!(memory["peak"], json!({"bytes": figures.peak_bytes, "blocks": figures.peak_blocks}));
        assert_eq!(memory["live"], json!({"bytes": figures.live_bytes, "blocks": figures.live_blocks}));
        let before =
            if number == 0 { json!({"bytes": 12 * MIB, "blocks": 1}) } else { json!({"bytes": 0, "blocks": 0}) };
        assert_eq!(memory["fromBefore"], before);
        assert_eq!(memory["allocated"], json!({"bytes": figures.bytes, "blocks": figures.allocations}));
    }
}

#[test]
fn curves_equal_those_of_the_device_and_its_pools() {
    let recording = devices(1).recording();
    let page = page(&recording);
    let histories = read_devices(&recording.processes()[0], None, &mut |_| {}).unwrap();
    assert_eq!(histories.len(), 2);
    for history in &histories {
        let memory = device(&page, history.device);
        assert_eq!(points(&page, &memory["curve"]), known(&history.points, 0));
        let pools = memory["host"]["pools"].as_array().unwrap();
        assert_eq!(pools.len(), history.pools.len());
        for (pool, history) in pools.iter().zip(&history.pools) {
            assert_eq!(points(&page, &pool["curve"]), known(&history.points, 0));
            assert_eq!(pool["peak"]["taken"], history.peak.allocated);
        }
    }
    let host = &device(&page, 0)["host"];
    let names: Vec<_> = host["pools"].as_array().unwrap().iter().map(|pool| &pool["name"]).collect();
    assert_eq!(names, ["default", "graph 3"]);
    assert_eq!(host["total"], 64 * MIB);
    let reserved_peak = json!({"timeNs": 200, "taken": 22 * MIB - 100, "pending": 0, "reserved": 42 * MIB});
    assert_eq!(host["reservedPeak"], reserved_peak);
}

#[test]
fn a_failed_request_is_a_moment_with_its_stack() {
    let page = page(&devices(1).recording());
    let memory = device(&page, 0);
    let host = &memory["host"];
    assert_eq!(host["failureCount"], 1);
    let failure = &host["failures"][0];
    let fields = ["timeNs", "process", "size", "free"].map(|field| failure[field].as_u64().unwrap());
    assert_eq!((fields, &failure["pool"]), ([500, 0, 30 * MIB, 4 * MIB], &json!("default")));
    assert_eq!(stack(&page, host, failure["stack"].as_u64().unwrap()), ["main", "step"]);
    assert!(memory["moments"]["times"].as_array().unwrap().contains(&json!(500)));
    assert_eq!(device(&page, 1)["host"]["failures"], json!([]));
}

#[test]
fn an_allocator_state_has_figures_and_every_block() {
    let page = page(&devices(1).recording());
    let host = &device(&page, 0)["host"];
    let [state] = host["states"].as_array().unwrap().as_slice() else { panic!("{host}") };
    assert_eq!((&state["reason"], &state["timeNs"], &state["leftOut"]), (&json!("failure"), &json!(510), &json!(0)));
    let figures = ["segments", "blocks", "reserved", "allocated", "requested", "pending", "free", "largestFree"];
    let figures = figures.map(|field| state[field].as_u64().unwrap());
    assert_eq!(figures, [2, 5, 40 * MIB, 17 * MIB, 17 * MIB, 10 * MIB, 13 * MIB, 8 * MIB]);
    let mut columns: Columns<'_> = page.columns(&state["rows"]);
    let segments = [(); 6].map(|()| columns.plain());
    let base = 0x7f00_0000_0000;
    let expected = [vec![base, base + 32 * MIB], vec![20 * MIB; 2], vec![0; 2], vec![7; 2], vec![1; 2], vec![2, 3]];
    assert_eq!(segments, expected);
    let [gap, size, requested, flags, stacks] = [(); 5].map(|()| columns.plain());
    assert!(columns.is_at_end());
    assert_eq!(gap, [0; 5]);
    assert_eq!(size, [12, 8, 10, 5, 5].map(|of| of * MIB));
    assert_eq!(requested, [12 * MIB, 0, 10 * MIB - 100, 5 * MIB, 0]);
    assert_eq!(flags, [3, 0, 2, 3, 0]);
    let stacks: Vec<_> = stacks.into_iter().map(|node| stack(&page, host, node).join(";")).collect();
    assert_eq!(stacks, ["allocated before the recording", "", "main;load", "main;step", ""]);
}

#[test]
fn processes_are_added_up_and_their_allocator_states_are_not() {
    let recording = recording_of(vec![devices(1), devices(2)]);
    let page = page(&recording);
    let memory = device(&page, 0);
    let highest = points(&page, &memory["curve"]).iter().map(|point| point[1]).max();
    assert_eq!(highest, Some(2 * (28 * MIB - 100)));
    let processes: Vec<_> = memory["host"]["states"].as_array().unwrap().iter().map(|of| &of["process"]).collect();
    assert_eq!(processes, [0, 1]);
    assert_eq!(memory["host"]["failureCount"], 2);
}

#[test]
fn only_events_in_the_selected_time_are_included() {
    let recording = devices(1).recording();
    let mut options = ExportOptions::default();
    options.part.range = Some(0..450);
    let page = Page::of(&recording, &options);
    let host = &device(&page, 0)["host"];
    assert_eq!((&host["failureCount"], &host["states"]), (&json!(0), &json!([])));
    assert_eq!(points(&page, &device(&page, 0)["curve"]).last().unwrap()[0], 449);
}

//! Snapshots of a caching allocator: the same entries as in `PyTorch`'s own.

use serde_json::{Value, json};
use stackweave_export::ExportOptions;
use stackweave_profile::AggregateOptions;
use stackweave_recording::events;
use stackweave_tapes::span;

use crate::common::cuda::{CudaTape, DEVICE_FREE, FIRST, MIB, OF_GRAPH, SECOND, SNAPSHOT_SIZE, cuda_events};
use crate::common::examples::{MAIN_THREAD, STARTED_NS, WORKER};
use crate::common::readers::read_snapshot;

fn snapshot(tape: CudaTape) -> Option<Value> {
    let read = read_snapshot(&tape.memory.recording(), &ExportOptions::default())?;
    Some(read["snapshot"].clone())
}

/// Returns action, address, size, stream, pool, microsecond, metadata and innermost frame of each entry.
fn entries(trace: &Value) -> Vec<Value> {
    let entry = |entry: &Value| {
        let address = if entry["action"] == "oom" { &entry["device_free"] } else { &entry["addr"] };
        let time = entry["time_us"].as_i64().unwrap() - STARTED_NS / 1000;
        let Value::Object(keys) = entry else { unreachable!() };
        assert_eq!(keys.len() - usize::from(keys.contains_key("frames")), 8, "{entry}");
        let innermost = &entry["frames"][0]["name"];
        let [action, size, stream] = ["action", "size", "stream"].map(|key| &entry[key]);
        json!([action, address, size, stream, entry["pool_id"], time, entry["user_metadata"], innermost])
    };
    trace.as_array().unwrap().iter().map(entry).collect()
}

const NEXT: u64 = 0x340_0000;

#[test]
fn each_event_is_one_entry_as_it_was_recorded() {
    let Some(snapshot) = snapshot(cuda_events()) else { return };
    let traces = snapshot["device_traces"].as_array().unwrap();
    // The heap of the process was not recorded, so it has no device.
    assert_eq!(traces.len(), 2);
    let (before, graph) = ("allocated before the recording", [3, 0]);
    let first = [
        json!(["segment_alloc", 0x100_0000, 20 * MIB, 0, graph, 3, "", "Model.step"]),
        json!(["alloc", 0x100_0000, 1_000_000, 0, graph, 4, "", "Model.step"]),
        json!(["alloc", 0x10_0200, 100, 0, [0, 0], 6, "forward", "load"]),
        json!(["free_requested", 0x10_0000, 500, 0, [0, 0], 7, "forward", before]),
        json!(["free_completed", 0x10_0000, 500, 0, [0, 0], 8, "forward", before]),
        json!(["free_requested", 0x100_0000, 1_000_000, 0, graph, 9, "forward", "main"]),
        json!(["free_requested", 0x10_1000, 512, 0, [0, 0], 15, "", null]),
        json!(["free_completed", 0x10_1000, 512, 0, [0, 0], 16, "", "main"]),
        json!(["free_requested", 0x10_2000, 256, 0, [0, 0], 17, "", "main"]),
        json!(["free_completed", 0x10_2000, 256, 0, [0, 0], 17, "", "main"]),
        json!(["snapshot", 0, SNAPSHOT_SIZE, 0, [0, 0], 20, "", null]),
        json!(["segment_alloc", 0x900_0000, 2 * MIB, 0, [0, 0], 22, "", "main"]),
        json!(["segment_free", 0x900_0000, 2 * MIB, 0, [0, 0], 23, "", "main"]),
    ];
    assert_eq!(entries(&traces[0]), first);
    let pool = [0, 5];
    let second = [
        json!(["segment_map", 0x200_0000, 20 * MIB, 7, pool, 11, "", "Model.step"]),
        json!(["segment_map", NEXT, 20 * MIB, 7, pool, 12, "", "load"]),
        json!(["alloc", 0x200_0000, 30_000_000, 7, pool, 13, "", "Model.step"]),
        json!(["alloc", 0x3e0_0000, 4000, 7, pool, 14, "", "load"]),
        json!(["oom", DEVICE_FREE, 80_u64 << 30, 7, pool, 18, "", "load"]),
        json!(["annotate", 0x3e0_0000, 0, 0, [0, 0], 19, "weights", "main"]),
        json!(["segment_unmap", 0x460_0000, 2 * MIB, 7, pool, 21, "", "load"]),
    ];
    assert_eq!(entries(&traces[1]), second);
    // A tag is metadata of the events.
    assert_eq!(snapshot["external_annotations"], json!([]));
}

/// Returns device, address, total, allocated, active and requested size, stream, type, pool, whether it can grow, and
/// the innermost frame.
fn about(segment: &Value) -> Value {
    let keys = [
        "device",
        "address",
        "total_size",
        "allocated_size",
        "active_size",
        "requested_size",
        "stream",
        "segment_type",
        "segment_pool_id",
        "is_expandable",
    ];
    let mut values: Vec<Value> = keys.iter().map(|key| segment[key].clone()).collect();
    values.push(segment["frames"][0]["name"].clone());
    values.into()
}

/// Returns address, size, requested size, state and innermost frame of the blocks of a segment.
fn blocks(segment: &Value) -> Vec<Value> {
    let block = |block: &Value| {
        json!([block["address"], block["size"], block["requested_size"], block["state"], block["frames"][0]["name"]])
    };
    segment["blocks"].as_array().unwrap().iter().map(block).collect()
}

/// Returns the segments of [`CudaTape::record_state`].
fn segments_of_state() -> [(Value, Vec<Value>); 3] {
    let before = "allocated before the recording";
    [
        (
            json!([0, 0x10_0000, 2 * MIB, 512, 512, 100, 0, "small", [0, 0], false, before]),
            vec![
                json!([0x10_0000, 512, 500, "inactive", null]),
                json!([0x10_0200, 512, 100, "active_allocated", "load"]),
                json!([0x10_0400, 2 * MIB - 1024, 0, "inactive", null]),
            ],
        ),
        (
            json!([0, 0x100_0000, 20 * MIB, 0, MIB, 1_000_000, 0, "large", [3, 0], false, "Model.step"]),
            vec![
                json!([0x100_0000, MIB, 1_000_000, "active_pending_free", "Model.step"]),
                json!([0x110_0000, 19 * MIB, 0, "inactive", null]),
            ],
        ),
        (
            json!([
                1,
                0x200_0000,
                38 * MIB,
                30 * MIB + 4096,
                30 * MIB + 4096,
                30_004_000,
                7,
                "large",
                [0, 5],
                true,
                "Model.step"
            ]),
            vec![
                json!([0x200_0000, 30 * MIB, 30_000_000, "active_allocated", "Model.step"]),
                json!([0x3e0_0000, 4096, 4000, "active_allocated", "load"]),
                json!([0x3e0_1000, 8 * MIB - 4096, 0, "inactive", null]),
            ],
        ),
    ]
}

fn assert_segments(snapshot: &Value, expected: &[(Value, Vec<Value>)]) {
    let seen: Vec<(Value, Vec<Value>)> =
        snapshot["segments"].as_array().unwrap().iter().map(|segment| (about(segment), blocks(segment))).collect();
    assert_eq!(seen, expected);
}

#[test]
fn segments_are_those_of_the_allocator_state() {
    let mut tape = cuda_events();
    tape.record_state((MAIN_THREAD, 30_000));
    let Some(snapshot) = snapshot(tape) else { return };
    assert_segments(&snapshot, &segments_of_state());
    let tags: Vec<_> = [0, 1].map(|segment| &snapshot["segments"][segment]["blocks"]).into();
    assert_eq!((&tags[0][1]["user_metadata"], tags[1][0].get("user_metadata")), (&json!("forward"), None));
    assert_eq!(entries(&snapshot["device_traces"][0]).len(), 13, "an allocator state is no event");
}

/// Returns the segments according to events alone: with requested sizes.
fn segments_of_events() -> [(Value, Vec<Value>); 3] {
    let before = "allocated before the recording";
    [
        (
            json!([0, 0x10_0000, 2 * MIB, 100, 100, 100, 0, "small", [0, 0], false, before]),
            vec![
                json!([0x10_0000, 512, 0, "inactive", null]),
                json!([0x10_0200, 100, 100, "active_allocated", "load"]),
                json!([0x10_0264, 2 * MIB - 612, 0, "inactive", null]),
            ],
        ),
        (
            json!([0, 0x100_0000, 20 * MIB, 0, 1_000_000, 1_000_000, 0, "large", [3, 0], false, "Model.step"]),
            vec![
                json!([0x100_0000, 1_000_000, 1_000_000, "active_pending_free", "Model.step"]),
                json!([0x100_0000 + 1_000_000, 20 * MIB - 1_000_000, 0, "inactive", null]),
            ],
        ),
        (
            json!([
                1,
                0x200_0000,
                38 * MIB,
                30_004_000,
                30_004_000,
                30_004_000,
                7,
                "large",
                [0, 5],
                true,
                "Model.step"
            ]),
            vec![
                json!([0x200_0000, 30_000_000, 30_000_000, "active_allocated", "Model.step"]),
                json!([0x200_0000 + 30_000_000, 30 * MIB - 30_000_000, 0, "inactive", null]),
                json!([0x3e0_0000, 4000, 4000, "active_allocated", "load"]),
                json!([0x3e0_0fa0, 8 * MIB - 4000, 0, "inactive", null]),
            ],
        ),
    ]
}

#[test]
fn without_an_allocator_state_segments_are_built_from_events() {
    let Some(read) = snapshot(cuda_events()) else { return };
    assert_segments(&read, &segments_of_events());
    // An incomplete state is ignored.
    let mut tape = cuda_events();
    tape.state((MAIN_THREAD, 30_000), 1);
    tape.segment((MAIN_THREAD, 30_000), (0x10_0000, 2 * MIB), (&[], FIRST), 0);
    // An unknown kind of state does not end it.
    tape.state((MAIN_THREAD, 30_000), 3);
    let Some(read) = snapshot(tape) else { return };
    assert_segments(&read, &segments_of_events());
    // A state of other devices leaves the second one to its events.
    let mut tape = cuda_events();
    tape.state((MAIN_THREAD, 30_000), 1);
    tape.record_state_of_first((MAIN_THREAD, 30_000));
    tape.state((MAIN_THREAD, 30_000), 2);
    let Some(read) = snapshot(tape) else { return };
    let ([small, graph, _], [_, _, second]) = (segments_of_state(), segments_of_events());
    assert_segments(&read, &[small, graph, second]);
}

/// Records an allocator state, with events during and after it.
fn with_more() -> CudaTape {
    let mut tape = cuda_events();
    tape.record_state((MAIN_THREAD, 30_000));
    let main = tape.stacks.main.clone();
    // During the second state, another thread frees a block of it.
    tape.state((MAIN_THREAD, 40_000), 1);
    tape.segment((MAIN_THREAD, 41_000), (0x10_0000, 2 * MIB), (&main, FIRST), 0);
    tape.event((WORKER, 42_000), &events::HOST_FREE_REQUESTED, (0x10_0200, 100), (&[], FIRST));
    tape.event((WORKER, 43_000), &events::HOST_FREE_COMPLETED, (0x10_0200, 100), (&[], FIRST));
    tape.block((MAIN_THREAD, 44_000), (0x10_0000, 512, 0), (&[], FIRST), 0);
    tape.block((MAIN_THREAD, 45_000), (0x10_0200, 512, 100), (&main, FIRST), 3);
    tape.block((MAIN_THREAD, 46_000), (0x10_0400, 1024, 1000), (&main, FIRST), 2);
    tape.block((MAIN_THREAD, 47_000), (0x10_0800, 2 * MIB - 2048, 0), (&[], FIRST), 0);
    tape.segment((MAIN_THREAD, 47_000), (0x100_0000, 20 * MIB), (&main, OF_GRAPH), 1);
    tape.block((MAIN_THREAD, 47_000), (0x100_0000, MIB, 1_000_000), (&main, OF_GRAPH), 2);
    tape.state((MAIN_THREAD, 48_000), 2);
    tape.event((MAIN_THREAD, 50_000), &events::HOST_FREE_COMPLETED, (0x10_0400, 1000), (&[], FIRST));
    tape.event((MAIN_THREAD, 51_000), &events::HOST_ALLOCATE, (0x10_0600, 300), (&main, FIRST));
    tape
}

#[test]
fn events_after_an_allocator_state_are_applied_to_it() {
    let recording = with_more().memory.recording();
    let Some(read) = read_snapshot(&recording, &ExportOptions::default()) else { return };
    let segments = &read["snapshot"]["segments"];
    assert_eq!(about(&segments[0]), json!([0, 0x10_0000, 2 * MIB, 300, 300, 300, 0, "small", [0, 0], false, "main"]));
    let left = [
        json!([0x10_0000, 0x600, 0, "inactive", null]),
        json!([0x10_0600, 300, 300, "active_allocated", "main"]),
        json!([0x10_072c, 2 * MIB - 0x72c, 0, "inactive", null]),
    ];
    assert_eq!(blocks(&segments[0]), left);
    let freed = read["snapshot"]["device_traces"][0].as_array().unwrap().iter().rev().nth(1).unwrap().clone();
    assert_eq!((&freed["action"], &freed["frames"][0]["name"]), (&json!("free_completed"), &json!("main")));
    // The last state in the selected time counts.
    let part = AggregateOptions { range: Some(0..40_500), ..AggregateOptions::default() };
    let options = ExportOptions { part, ..ExportOptions::default() };
    let read = read_snapshot(&recording, &options).unwrap();
    assert_segments(&read["snapshot"], &segments_of_state());
}

#[test]
fn the_heap_is_behind_the_devices_and_has_the_annotations() {
    let mut tape = cuda_events();
    tape.memory.begin((MAIN_THREAD, 25_000), span("epoch"));
    tape.memory.end((MAIN_THREAD, 26_000));
    let Some(read) = snapshot(tape) else { return };
    let named = read["external_annotations"].as_array().unwrap();
    assert_eq!((named.len(), &named[0]["device"], &named[0]["name"]), (2, &json!(0), &json!("epoch")));
    let mut tape = cuda_events();
    tape.memory.allocate((MAIN_THREAD, 25_000), (0x5000_0000, 64), &[]);
    let Some(read) = snapshot(tape) else { return };
    assert_eq!(read["device_traces"].as_array().unwrap().len(), 3);
    assert_eq!(read["external_annotations"][0], {
        let time = (STARTED_NS + 5000) / 1000;
        json!({"name": "forward", "stage": "START", "device": 2, "time_us": time})
    });
}

#[test]
fn blocks_outside_segments_have_positions_too() {
    let mut tape = CudaTape::new();
    let main = tape.stacks.main.clone();
    tape.event((MAIN_THREAD, 1000), &events::HOST_FREE_REQUESTED, (0x10_0000, 512), (&[], FIRST));
    tape.event((MAIN_THREAD, 2000), &events::HOST_ALLOCATE, (0x100_0000, 300), (&main, OF_GRAPH));
    // Allocated again before its free was recorded as completed.
    tape.event((MAIN_THREAD, 3000), &events::HOST_FREE_REQUESTED, (0x100_0000, 300), (&[], OF_GRAPH));
    tape.event((MAIN_THREAD, 4000), &events::HOST_ALLOCATE, (0x200_0000, 400), (&main, SECOND));
    let Some(read) = snapshot(tape) else { return };
    let expected = [
        (
            json!([0, 0x10_0000, 512, 0, 512, 512, 0, "small", [0, 0], false, null]),
            vec![json!([0x10_0000, 512, 512, "active_pending_free", null])],
        ),
        (
            json!([0, 0x100_0000, 300, 0, 300, 300, 0, "small", [0, 0], false, null]),
            vec![json!([0x100_0000, 300, 300, "active_pending_free", "main"])],
        ),
        (
            json!([1, 0x200_0000, 400, 400, 400, 400, 0, "small", [0, 0], false, null]),
            vec![json!([0x200_0000, 400, 400, "active_allocated", "main"])],
        ),
    ];
    assert_segments(&read, &expected);
}

//! Memory in a report: the figures of `stackweave heap`, and what was live at each moment.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use serde_json::{Value, json};
use stackweave_core::RawFrame;
use stackweave_export::ExportOptions;
use stackweave_profile::memory::{Figures, MemoryQuery, MemoryReport, Replay, read_report};
use stackweave_recording::Recording;
use stackweave_recording::events::{self, Allocator};
use stackweave_tapes::{Tape, recording_of, stack_word};
use stackweave_testkit::random::Random;

use crate::common::memory::{OWN_CURVE, memory, memory_of, memory_tape};
use crate::common::report::{Page, lines_of};

/// Bytes and blocks.
type Amount = (u64, u64);

/// The live memory at a moment: the time, the sum, and amounts by path.
struct Moment {
    time: u64,
    sum: Amount,
    by_path: BTreeMap<Vec<String>, Amount>,
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

fn device(page: &Page, device: i64) -> &Value {
    let devices = page.head["memory"]["devices"].as_array().unwrap();
    devices.iter().find(|of| of["device"] == device).unwrap()
}

fn moments(page: &Page, device: &Value) -> Vec<Moment> {
    let moments_of = &device["moments"];
    let paths = paths(page, moments_of);
    let mut rows = page.columns(&moments_of["rows"]);
    let [node, first, count, bytes, blocks] = [(); 5].map(|()| rows.plain());
    assert!(rows.is_at_end());
    let mut moments: Vec<Moment> = Vec::new();
    for time in moments_of["times"].as_array().unwrap() {
        moments.push(Moment { time: number(time), sum: (0, 0), by_path: BTreeMap::new() });
    }
    for row in 0..node.len() {
        assert!(count[row] > 0);
        for moment in first[row]..first[row] + count[row] {
            let moment = &mut moments[usize::try_from(moment).unwrap()];
            let path = &paths[usize::try_from(node[row]).unwrap()];
            let known = moment.by_path.entry(path.clone()).or_default();
            for sum in [&mut moment.sum, known] {
                *sum = (sum.0 + bytes[row], sum.1 + blocks[row]);
            }
        }
    }
    moments
}

fn paths(page: &Page, moments: &Value) -> Vec<Vec<String>> {
    let names = page.functions();
    let mut frames = page.columns(&page.head["frames"]);
    let (functions, lines) = (frames.plain(), frames.plain());
    let mut tree = page.columns(&moments["tree"]);
    let (back, frame) = (tree.plain(), tree.plain());
    assert_eq!((back[0], back.len() as u64), (0, number(&moments["nodes"])));
    let mut paths: Vec<Vec<String>> = vec![Vec::new()];
    for node in 1..back.len() {
        let at = usize::try_from(frame[node]).unwrap();
        let name = &names[usize::try_from(functions[at]).unwrap()];
        let mut path = paths[node - usize::try_from(back[node]).unwrap()].clone();
        path.push(format!("{name}:{}", lines[at]));
        paths.push(path);
    }
    paths
}

fn report(recording: &Recording, device: i64) -> MemoryReport {
    let query = MemoryQuery { devices: vec![device], ..MemoryQuery::default() };
    read_report(recording.processes(), &query, None, &mut |_| {}).unwrap()
}

fn amounts(of: &Figures) -> [Value; 4] {
    [
        json!({"bytes": of.peak_bytes, "blocks": of.peak_blocks}),
        json!({"bytes": of.live_bytes, "blocks": of.live_blocks}),
        json!({"bytes": of.bytes, "blocks": of.allocations}),
        json!({"bytes": of.temporary_bytes, "blocks": of.temporary}),
    ]
}

fn figures(of: &Value) -> [Value; 4] {
    ["peak", "live", "allocated", "temporary"].map(|field| of[field].clone())
}

fn page(recording: &Recording) -> Page {
    Page::of(recording, &ExportOptions::default())
}

#[test]
fn figures_equal_those_of_heap() {
    let recording = memory().recording();
    let page = page(&recording);
    let devices: Vec<_> = page.head["memory"]["devices"].as_array().unwrap().iter().map(|of| &of["device"]).collect();
    assert_eq!(devices, [-1, 1]);
    assert!(page.head["memory"]["sampleEvery"].is_null());
    for number in [-1, 1] {
        let (of_report, report) = (device(&page, number), report(&recording, number));
        assert_eq!(figures(of_report), amounts(&report.totals.figures));
        assert_eq!(of_report["peakNs"], json!(report.peak_ns()));
        for (field, rows) in [("threads", &report.threads), ("tags", &report.tags), ("allocators", &report.allocators)]
        {
            let rows_of_report = of_report[field].as_array().unwrap();
            assert!(!rows.is_empty() && rows_of_report.len() == rows.len());
            for (row_of_report, row) in rows_of_report.iter().zip(rows) {
                assert_eq!(
                    (&row_of_report["name"], &row_of_report["number"]),
                    (&json!(&*row.name), &json!(row.number))
                );
                assert_eq!(figures(row_of_report), amounts(&row.figures));
            }
        }
        let sizes = of_report["sizes"].as_array().unwrap().iter().map(|of| (of["name"].clone(), figures(of)));
        let expected = report.sizes.iter().map(|(most, figures)| (json!(most.to_string()), amounts(figures)));
        assert_eq!(sizes.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    }
}

#[test]
fn moments_are_on_the_known_curve() {
    let recording = memory().recording();
    let page = page(&recording);
    let heap = device(&page, -1);
    let moments = moments(&page, heap);
    assert_eq!(moments.len(), 200);
    // The free at 7000 failed, as a later event says: the block was live all the time.
    let curve = OWN_CURVE.iter().filter(|(changed, _)| *changed != 7000);
    let at = |time: u64| curve.clone().rfind(|(changed, _)| *changed <= time).map_or(0, |(_, bytes)| *bytes);
    for moment in &moments {
        assert_eq!(moment.sum.0, at(moment.time), "at {}", moment.time);
    }
    let peak = moments.iter().find(|moment| json!(moment.time) == heap["peakNs"]).unwrap();
    assert_eq!((peak.time, peak.sum), (3000, (11_192, 3)));
    assert_eq!(peak.by_path[&["load:5".to_owned()] as &[String]], (2000, 1));
    let mut curve = page.columns(&heap["curve"]);
    let (times, bytes) = (curve.differences(0), curve.plain());
    assert!(times.into_iter().zip(bytes).any(|point| point == (3000, 11_192)));
}

#[test]
fn a_device_has_its_own_curve_and_moments() {
    let page = page(&memory().recording());
    let of_device = device(&page, 1);
    assert_eq!(of_device["label"], "Device 1");
    let mut curve = page.columns(&of_device["curve"]);
    let (times, bytes) = (curve.differences(0), curve.plain());
    let points: Vec<_> = times.into_iter().zip(bytes).collect();
    let changes = [(10_100, 512), (10_200, 768), (10_300, 256)];
    assert!(changes.iter().all(|point| points.contains(point)) && points.iter().all(|(_, bytes)| *bytes <= 768));
    let moments = moments(&page, of_device);
    let peak = moments.iter().find(|moment| moment.time == 10_200).unwrap();
    assert_eq!((peak.sum, moments.last().unwrap().sum), ((768, 2), (256, 1)));
}

#[test]
fn processes_are_added_up() {
    let recording = recording_of(vec![memory_of(1), memory_of(2)]);
    let page = page(&recording);
    let heap = device(&page, -1);
    assert_eq!(figures(heap), amounts(&report(&recording, -1).totals.figures));
    let moments = moments(&page, heap);
    let live = &heap["live"];
    assert_eq!(moments.last().unwrap().sum, (number(&live["bytes"]), number(&live["blocks"])));
    assert_eq!(moments.iter().find(|moment| moment.time == 3000).unwrap().sum.0, 2 * 11_192);
}

/// Records threads that allocate and free blocks and mappings at random, whole or in parts, or with failed frees.
fn program(seed: u64, options: &[(&str, &str)]) -> Recording {
    let mut random = Random::new(seed);
    let mut tape = memory_tape(options);
    let functions: Vec<u32> = (0..6).map(|number| tape.python(&format!("f{number}"), "/app/f.py", number)).collect();
    let mut now = 0;
    for _ in 0..2_000 {
        now += [0, 1, 40][random.below(3)];
        let at = (1 + u32::try_from(random.below(2)).unwrap(), now);
        let depth = random.below(4);
        let stack: Vec<RawFrame> = (0..depth).map(|_| Tape::at(functions[random.below(6)], 3)).collect();
        let block = 0x1000 + 64 * random.below(150) as u64;
        let page = 0x10_0000 + 4096 * random.below(40) as u64;
        match random.below(12) {
            0..5 => tape.allocate_by(at, Allocator::Malloc, (block, random.below(5_000) as u64), &stack),
            5..8 => tape.free(at, block),
            8 => tape.allocate_by(at, Allocator::Mmap, (page, 4096 * (1 + random.below(8)) as u64 - 5), &stack),
            9 => tape.event(at, &events::MUNMAP, &[page, 4096 * (1 + random.below(4)) as u64]),
            10 => {
                tape.event(at, &events::MUNMAP, &[page, 4096 * (1 + random.below(4)) as u64]);
                tape.event(at, &events::KEPT, &[page]);
            }
            _ => {
                tape.free(at, block);
                tape.event(at, &events::KEPT, &[block]);
            }
        }
    }
    tape.recording()
}

/// Returns the live bytes according to a ledger, after the events of each time.
fn replayed(recording: &Recording, device: i64) -> BTreeMap<u64, u64> {
    let process = &recording.processes()[0];
    let mut replay = Replay::new(process, None);
    let mut live = BTreeMap::new();
    let visited = process.visit_in_time_order(None, &mut |_| {}, &mut |timed| {
        if let Some(event) = replay.decode(&timed.event) {
            replay.add(timed.event.ticks, timed.thread, &event);
            live.insert(u64::try_from(timed.time_ns).unwrap(), replay.live_bytes(device));
        }
        ControlFlow::Continue(())
    });
    visited.unwrap();
    live
}

#[test]
fn every_moment_equals_a_ledger() {
    for seed in 0..30 {
        let recording = program(seed, &[("recorder", "memory"), ("memory.mode", "history")]);
        let (page, report) = (page(&recording), report(&recording, -1));
        let heap = device(&page, -1);
        let moments = moments(&page, heap);
        let (live, peak_ns) = (replayed(&recording, -1), report.peak_ns().unwrap());
        let peak = moments.iter().position(|moment| moment.time == peak_ns).unwrap();
        for (index, moment) in moments.iter().enumerate().filter(|(index, _)| *index != peak) {
            let expected = live.range(..=moment.time).next_back().map_or(0, |(_, bytes)| *bytes);
            assert_eq!(moment.sum.0, expected, "seed {seed}, moment {index}");
        }
        let figures = &report.totals.figures;
        assert_eq!(moments[peak].sum, (figures.peak_bytes, figures.peak_blocks), "seed {seed}");
        assert_eq!(moments.last().unwrap().sum, (figures.live_bytes, figures.live_blocks), "seed {seed}");
        let by_path = |moment: &Moment| moment.by_path.iter().map(|(path, sum)| (path.clone(), sum.0)).collect();
        let owned = |profile| -> BTreeMap<Vec<String>, u64> {
            let lines = lines_of(profile).into_iter();
            lines
                .map(|(path, (_, self_cost, _))| (path, self_cost.cast_unsigned()))
                .filter(|(_, self_cost)| *self_cost > 0)
                .collect()
        };
        let without_empty = |mut all: BTreeMap<Vec<String>, u64>| {
            all.retain(|_, bytes| *bytes > 0);
            all
        };
        assert_eq!(without_empty(by_path(&moments[peak])), owned(&report.peak), "seed {seed}");
        assert_eq!(without_empty(by_path(moments.last().unwrap())), owned(&report.live), "seed {seed}");
    }
}

#[test]
fn samples_are_scaled() {
    for seed in 50..55 {
        let options = [("recorder", "memory"), ("memory.mode", "sampled"), ("memory.sample_every", "4096")];
        let recording = program(seed, &options);
        let (page, report) = (page(&recording), report(&recording, -1));
        assert_eq!(page.head["memory"]["sampleEvery"], 4096);
        let moments = moments(&page, device(&page, -1));
        let peak = moments.iter().find(|moment| Some(moment.time) == report.peak_ns()).unwrap();
        let figures = &report.totals.figures;
        let rounded = |sum: Amount, (bytes, blocks): Amount, rows: usize| {
            sum.0.abs_diff(bytes) <= rows as u64 && sum.1.abs_diff(blocks) <= rows as u64
        };
        let last = moments.last().unwrap();
        assert!(rounded(peak.sum, (figures.peak_bytes, figures.peak_blocks), 300), "{:?} {figures:?}", peak.sum);
        assert!(rounded(last.sum, (figures.live_bytes, figures.live_blocks), 300), "{:?} {figures:?}", last.sum);
        assert!(figures.peak_bytes > 300_000, "{figures:?}");
    }
}

#[test]
fn totals_have_no_history() {
    let mut tape = memory_tape(&[("recorder", "memory"), ("memory.mode", "aggregate")]);
    let function = tape.python("f", "/app/f.py", 1);
    tape.allocate_by((1, 10), Allocator::Malloc, (0x1000, 100), &[Tape::at(function, 3)]);
    for kind in [events::MEMORY_USAGE, events::MEMORY_TOTAL] {
        let value = |name: &str| match name {
            "device" => (-1_i64).cast_unsigned(),
            "stack" => stack_word(&[Tape::at(function, 3)]),
            "thread" | "allocations" | "live_blocks" | "peak_blocks" => 1,
            "bytes" | "live_bytes" | "peak_bytes" => 100,
            _ => 0,
        };
        let words: Vec<u64> = kind.fields.iter().map(|field| value(&field.name)).collect();
        tape.event((1, 100), &kind, &words);
    }
    let page = page(&tape.recording());
    let heap = device(&page, -1);
    assert!(heap["moments"].is_null());
    assert_eq!(heap["peak"], json!({"bytes": 100, "blocks": 1}));
}

#[test]
fn only_selected_threads_have_moments() {
    let recording = memory().recording();
    let mut options = ExportOptions::default();
    options.part.threads = vec!["worker".to_owned()];
    let page = Page::of(&recording, &options);
    let heap = device(&page, -1);
    let moments = moments(&page, heap);
    let peak = moments.iter().find(|moment| moment.time == 3000).unwrap();
    assert_eq!((peak.sum, &heap["peak"]), ((2000, 1), &json!({"bytes": 2000, "blocks": 1})));
}

#[test]
fn a_recording_without_memory_has_no_memory_in_the_report() {
    let mut tape = Tape::new();
    tape.thread(1, 101, "main");
    tape.begin((1, 0), stackweave_tapes::span("f"));
    tape.end((1, 10));
    assert!(page(&tape.recording()).head["memory"].is_null());
}

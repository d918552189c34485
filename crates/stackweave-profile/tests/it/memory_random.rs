//! Random memory histories: the figures of a recording equal those of a replay.

use std::collections::HashMap;
use std::ops::Range;

use stackweave_core::EventKind;
use stackweave_heap::LedgerOptions;
use stackweave_profile::memory::{DeviceUsage, Figures, MemoryQuery, MemoryUsage, UsageSource, read_usage};
use stackweave_recording::events::Allocator;
use stackweave_tapes::memory::{MemoryStep, MemoryTape, header};
use stackweave_tapes::span;
use stackweave_testkit::random::Random;

const NAMES: [&str; 5] = ["load", "step", "save", "grow", "parse"];
const TAGS: [Option<&str>; 4] = [None, Some("step 1"), Some("step 2"), Some("warm up")];
const BLOCKS: u64 = 40;
const PAGE: u64 = 4096;

fn step(random: &mut Random, has_devices: bool) -> MemoryStep {
    let depth = 1 + random.below(3);
    let stack = (0..depth).map(|_| span(random.pick(&NAMES))).collect();
    let address = 0x1000 + 16 * random.number_below(BLOCKS);
    let page = 0x100_0000 + PAGE * random.number_below(30);
    let size = 1 << random.number_below(12);
    match random.number_below(20) {
        0..9 => {
            let by =
                random.pick(&[Allocator::Malloc, Allocator::Calloc, Allocator::Realloc, Allocator::PyObjectMalloc]);
            MemoryStep::Allocate { address, size: size + random.number_below(3), stack, by }
        }
        9..15 => MemoryStep::Free { address },
        15 => MemoryStep::Allocate {
            address: page,
            size: PAGE * (1 + random.number_below(8)),
            stack,
            by: Allocator::Mmap,
        },
        16 => MemoryStep::Unmap { address: page, size: PAGE * (1 + random.number_below(8)) },
        17 => MemoryStep::Tag { name: random.pick(&TAGS) },
        18 if has_devices => {
            MemoryStep::HostAllocate { device: i64::try_from(random.number_below(2)).unwrap(), address, size, stack }
        }
        _ if has_devices => MemoryStep::HostFree { device: i64::try_from(random.number_below(2)).unwrap(), address },
        _ => MemoryStep::Keep { address },
    }
}

/// Returns rows with the texts of their labels, which are comparable between recordings.
fn rows(usage: &MemoryUsage, device: &DeviceUsage) -> Vec<(u32, u32, String, String, Figures)> {
    let text = |texts: &[std::sync::Arc<str>], number: u32| texts[number as usize].to_string();
    let row = |row: &stackweave_profile::memory::UsageRow| {
        assert_eq!((row.leaked_blocks, row.leaked_bytes), (row.figures.live_blocks, row.figures.live_bytes));
        (row.stack, row.thread, text(&usage.allocators, row.allocator), text(&usage.tags, row.tag), row.figures)
    };
    let mut rows: Vec<_> = device.rows.iter().map(row).collect();
    rows.sort_by(|a, b| (a.0, a.1, &a.2, &a.3).cmp(&(b.0, b.1, &b.2, &b.3)));
    rows
}

#[test]
fn a_snapshot_equals_a_replay() {
    for seed in 1..=40_u64 {
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let every = (seed % 4 == 0).then_some(700);
        let sampled = [("recorder", "memory"), ("memory.mode", "sampled"), ("memory.sample_every", "700")];
        let options = if every.is_some() { &sampled[..] } else { &sampled[..1] };
        let mut tape = MemoryTape::with(&header(options), LedgerOptions { temporary: 1, sample_every: every });
        for time in 0..2_000 {
            let thread = 1 + u32::try_from(random.number_below(3)).unwrap();
            let step = step(&mut random, seed % 2 == 0);
            tape.step(thread, time * 10, &step);
        }
        tape.snapshot(1, false);
        let process = tape.process();
        let read = |range: Option<Range<u64>>| {
            read_usage(&process, &MemoryQuery { range, ..MemoryQuery::default() }, &mut |_| {}).unwrap()
        };
        let (kept, replayed) = (read(None), read(Some(0..u64::MAX)));
        assert_eq!((kept.source, replayed.source), (UsageSource::Snapshot, UsageSource::Replayed));
        assert_eq!(kept.devices.len(), replayed.devices.len());
        for (one, other) in kept.devices.iter().zip(&replayed.devices) {
            assert!(one.totals.figures.allocations > 0);
            assert_eq!((one.device, one.totals, &one.sizes), (other.device, other.totals, &other.sizes));
            assert_eq!(rows(&kept, one), rows(&replayed, other));
        }
    }
}

/// Counts the figures of a range in the simplest way.
fn counted(steps: &[(u64, MemoryStep)], range: &Range<u64>) -> [u64; 4] {
    let mut live: HashMap<u64, (u64, bool)> = HashMap::new();
    let sum = |live: &HashMap<u64, (u64, bool)>| live.values().map(|(size, _)| size).sum::<u64>();
    let (mut peak, mut allocations) = (None, 0);
    for (time, step) in steps.iter().filter(|(time, _)| *time < range.end) {
        let is_inside = *time >= range.start;
        if is_inside && peak.is_none() {
            peak = Some(sum(&live));
        }
        match step {
            MemoryStep::Allocate { address, size, .. } => drop(live.insert(*address, (*size, is_inside))),
            MemoryStep::Free { address } => drop(live.remove(address)),
            other => panic!("{other:?}"),
        }
        allocations += u64::from(is_inside && matches!(step, MemoryStep::Allocate { .. }));
        peak = peak.map(|peak| peak.max(sum(&live)));
    }
    let leaked = live.values().filter(|(_, is_inside)| *is_inside).map(|(size, _)| size).sum();
    [peak.unwrap_or_else(|| sum(&live)), sum(&live), leaked, allocations]
}

#[test]
fn ranges_equal_a_simple_count() {
    for seed in 1..=30_u64 {
        println!("seed {seed}");
        let mut random = Random::new(1_000 + seed);
        let mut tape = MemoryTape::new();
        let mut steps = Vec::new();
        while steps.len() < 400 {
            let step = step(&mut random, false);
            let time = steps.len() as u64 * 10;
            if matches!(step, MemoryStep::Allocate { by: Allocator::Mmap, .. })
                || !matches!(step, MemoryStep::Allocate { .. } | MemoryStep::Free { .. })
            {
                continue;
            }
            tape.step(1 + u32::try_from(random.number_below(2)).unwrap(), time, &step);
            steps.push((time, step));
        }
        let process = tape.process();
        for _ in 0..20 {
            let start = random.number_below(4_500);
            let range = start..start + 1 + random.number_below(2_000);
            let query = MemoryQuery { range: Some(range.clone()), ..MemoryQuery::default() };
            let usage = read_usage(&process, &query, &mut |_| {}).unwrap();
            let own = usage.device(EventKind::OWN_DEVICE).unwrap();
            let of = own.totals.figures;
            let leaked = own.rows.iter().map(|row| row.leaked_bytes).sum();
            let found = [of.peak_bytes, of.live_bytes, leaked, of.allocations];
            assert_eq!(found, counted(&steps, &range), "{range:?}");
            assert_eq!(own.rows.iter().map(|row| row.figures.peak_bytes).sum::<u64>(), of.peak_bytes);
        }
    }
}

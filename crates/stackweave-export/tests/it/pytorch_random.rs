//! Snapshots of a caching allocator with random actions: each event can be undone from the final state.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use stackweave_core::{EventKind, RawFrame};
use stackweave_export::ExportOptions;
use stackweave_recording::events;
use stackweave_testkit::random::Random;

use crate::common::cuda::{CudaTape, FIRST, MIB};
use crate::common::examples::{MAIN_THREAD, WORKER};
use crate::common::readers::read_snapshot;

const PAGE: u64 = 2 * MIB;
/// The number of blocks in a page.
const SLOTS: u64 = 8;
/// Segments that are reserved at once are single pages, with gaps; those that grow have adjacent pages after these.
const WHOLE: u64 = 0x1000_0000;
const GROWING: u64 = 0x4000_0000;
const PAGES: u64 = 12;

/// The state of the allocator.
struct Allocator {
    tape: CudaTape,
    random: Random,
    now: u64,
    /// Events before this are not recorded.
    from: u64,
    pages: BTreeSet<u64>,
    /// By address: the requested bytes, and whether the program has freed the block.
    blocks: BTreeMap<u64, (u64, bool)>,
}

impl Allocator {
    fn new(seed: u64, from: u64) -> Self {
        let (pages, blocks) = Default::default();
        Self { tape: CudaTape::new(), random: Random::new(seed), now: 0, from, pages, blocks }
    }

    fn record(&mut self, kind: &EventKind, at: (u64, u64), has_stack: bool) {
        self.now += 1000;
        if self.now >= self.from {
            let stack: &[RawFrame] = if has_stack { &self.tape.stacks.step.clone() } else { &[] };
            let thread = [MAIN_THREAD, WORKER][self.random.below(2)];
            self.tape.event((thread, self.now), kind, at, (stack, FIRST));
        }
    }

    fn step(&mut self) {
        let page = {
            let number = self.random.bits() % PAGES;
            if self.random.below(2) == 0 { WHOLE + 2 * number * PAGE } else { GROWING + number * PAGE }
        };
        let kinds = [(events::SEGMENT, events::SEGMENT_FREE), (events::SEGMENT_MAP, events::SEGMENT_UNMAP)];
        let (map, unmap) = &kinds[usize::from(page >= GROWING)];
        let address = page + (self.random.bits() % SLOTS) * (PAGE / SLOTS);
        let known = self.blocks.get(&address).copied();
        match self.random.below(8) {
            0 if self.pages.insert(page) => self.record(map, (page, PAGE), true),
            1 if self.blocks.range(page..page + PAGE).next().is_none() && self.pages.remove(&page) => {
                self.record(unmap, (page, PAGE), false);
            }
            2..5 if known.is_none() && self.pages.contains(&page) => {
                let size = 1 + self.random.bits() % (PAGE / SLOTS);
                self.blocks.insert(address, (size, false));
                self.record(&events::HOST_ALLOCATE, (address, size), true);
            }
            5 | 6 if known.is_some_and(|(_, is_pending)| !is_pending) => {
                let (size, _) = known.unwrap();
                self.blocks.insert(address, (size, true));
                self.record(&events::HOST_FREE_REQUESTED, (address, size), false);
            }
            _ if known.is_some_and(|(_, is_pending)| is_pending) => {
                let (size, _) = self.blocks.remove(&address).unwrap();
                self.record(&events::HOST_FREE_COMPLETED, (address, size), false);
            }
            _ => {}
        }
    }

    /// Returns the segments: adjacent mapped pages are one.
    fn segments(&self) -> Vec<(u64, u64)> {
        let mut segments: Vec<(u64, u64)> = Vec::new();
        for page in &self.pages {
            match segments.last_mut().filter(|(address, size)| address + size == *page) {
                Some((_, size)) => *size += PAGE,
                None => segments.push((*page, PAGE)),
            }
        }
        segments
    }

    fn record_state(&mut self) {
        let at = (MAIN_THREAD, self.now + 1000);
        self.tape.state(at, 1);
        for (address, size) in self.segments() {
            self.tape.segment(at, (address, size), (&[], FIRST), 2 * u64::from(address >= GROWING));
            // Free memory between them is recorded too; readers do not need it.
            for (block, (requested, is_pending)) in self.blocks.range(address..address + size) {
                let flags = if *is_pending { 2 } else { 3 };
                self.tape.block(at, (*block, PAGE / SLOTS, *requested), (&[], FIRST), flags);
            }
        }
        self.tape.state(at, 2);
    }

    /// Returns addresses and sizes of segments; the bytes that are allocated, and those that are active.
    fn expected(&self) -> (Vec<(u64, u64)>, [u64; 2]) {
        let sum = |of: bool| self.blocks.values().filter(|(_, pending)| *pending == of).map(|(size, _)| size).sum();
        (self.segments(), [sum(false), sum(true)])
    }
}

fn snapshot_totals(snapshot: &Value) -> (Vec<(u64, u64)>, [u64; 2]) {
    let number = |of: &Value, key: &str| of[key].as_u64().unwrap();
    let segments = snapshot["segments"].as_array().unwrap();
    let blocks = || segments.iter().flat_map(|segment| segment["blocks"].as_array().unwrap());
    let sum = |state: &str| {
        blocks().filter(|block| block["state"] == state).map(|block| number(block, "requested_size")).sum()
    };
    let bounds = segments.iter().map(|segment| (number(segment, "address"), number(segment, "total_size")));
    (bounds.collect(), [sum("active_allocated"), sum("active_pending_free")])
}

#[test]
fn events_can_be_undone_from_the_final_state() {
    for (seed, from, has_state) in [(1, 0, false), (2, 0, true), (3, 0, false), (4, 300_000, true), (5, 400_000, true)]
    {
        println!("seed {seed}");
        let mut allocator = Allocator::new(seed, from);
        while allocator.now < 800_000 {
            allocator.step();
        }
        if has_state {
            allocator.record_state();
        }
        let expected = allocator.expected();
        assert!(expected.0.len() > 3 && expected.1.iter().all(|bytes| *bytes > 0), "{expected:?}");
        let recording = allocator.tape.memory.recording();
        let Some(read) = read_snapshot(&recording, &ExportOptions::default()) else { return };
        assert_eq!(snapshot_totals(&read["snapshot"]), expected, "seed {seed}");
        let events = read["snapshot"]["device_traces"][0].as_array().unwrap().len();
        assert_eq!(events, usize::try_from(800 - from.saturating_sub(1000) / 1000).unwrap());
    }
}

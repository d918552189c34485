//! A ledger, compared with a model that recomputes everything after each event.

use std::collections::{BTreeMap, HashMap, HashSet};

use stackweave_heap::{Block, CallSite, Figures, Ledger, LedgerOptions, Totals, stands_for};
use stackweave_testkit::random::Random;
use stackweave_testkit::scale;

const PAGE: u64 = 4096;

#[derive(Clone, Copy, Debug)]
enum Event {
    Allocate { address: u64, size: u64, site: CallSite },
    Free { address: u64 },
    Map { address: u64, size: u64, site: CallSite },
    Unmap { address: u64, size: u64 },
    Keep { address: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct ModelBlock {
    size: u64,
    site: CallSite,
    /// The number of allocations of its thread up to this one.
    turn: u64,
    /// A unique number.
    number: u64,
}

#[derive(Clone, Debug, Default)]
struct State {
    blocks: HashMap<u64, ModelBlock>,
    /// By page: the mapping, and how many of its bytes are in it.
    pages: BTreeMap<u64, (ModelBlock, u64)>,
    totals: Totals,
    temporary: HashMap<(CallSite, u64), (u64, u64)>,
}

/// Live blocks and bytes, by call site and size class.
type Live = HashMap<(CallSite, u64), (u64, u64)>;

#[derive(Default)]
struct Naive {
    state: State,
    /// The state before the last free of each thread, with its address.
    before: HashMap<u32, (u64, State)>,
    counts: HashMap<(CallSite, u64), (u64, u64)>,
    turns: HashMap<u32, u64>,
    peak: (u64, u64, Live),
    temporary: u64,
}

fn class(size: u64) -> u64 {
    if size == 0 { 0 } else { size.next_power_of_two() }
}

impl State {
    /// Returns live mappings, in parts without gaps.
    fn parts(&self) -> Vec<(u64, u64, ModelBlock)> {
        let mut parts: Vec<(u64, u64, ModelBlock)> = Vec::new();
        for (page, (block, bytes)) in &self.pages {
            match parts.last_mut() {
                Some((start, length, of)) if of == block && *start + *length == page * PAGE => *length += bytes,
                _ => parts.push((page * PAGE, *bytes, *block)),
            }
        }
        parts
    }

    fn live(&self) -> Live {
        let mut live = Live::new();
        let blocks = self.blocks.values().map(|block| (*block, block.size));
        let parts = self.parts().into_iter().map(|(_, length, block)| (block, length));
        for (block, bytes) in blocks.chain(parts) {
            let sum = live.entry((block.site, class(block.size))).or_default();
            *sum = (sum.0 + 1, sum.1 + bytes);
        }
        live
    }

    fn unmap(&mut self, address: u64, size: u64) -> usize {
        let pages = address / PAGE..(address + size).div_ceil(PAGE);
        let hit = |start: u64, length: u64| start < pages.end * PAGE && start + length > pages.start * PAGE;
        let parts = self.parts().iter().filter(|part| hit(part.0, part.1)).count();
        self.pages.retain(|page, _| !pages.contains(page));
        parts
    }
}

impl Naive {
    fn take(&mut self, thread: u32, size: u64, site: CallSite, number: u64) -> ModelBlock {
        let turn = self.turns.entry(thread).or_default();
        *turn += 1;
        let count = self.counts.entry((site, class(size))).or_default();
        *count = (count.0 + 1, count.1 + size);
        ModelBlock { size, site, turn: *turn, number }
    }

    fn is_temporary(&self, block: &ModelBlock) -> bool {
        self.turns[&block.site.thread] - block.turn <= self.temporary
    }

    fn free(&mut self, block: ModelBlock) {
        if self.is_temporary(&block) {
            let sum = self.state.temporary.entry((block.site, class(block.size))).or_default();
            *sum = (sum.0 + 1, sum.1 + block.size);
        }
    }

    fn record(&mut self, ticks: u64, thread: u32, event: Event) {
        match event {
            Event::Allocate { address, size, site } => {
                let block = self.take(thread, size, site, ticks);
                self.state.totals.replaced += u64::from(self.state.blocks.insert(address, block).is_some());
            }
            Event::Map { address, size, site } => {
                let block = self.take(thread, size, site, ticks);
                self.state.totals.replaced += self.state.unmap(address, size) as u64;
                for page in 0..size.div_ceil(PAGE) {
                    let bytes = (size - page * PAGE).min(PAGE);
                    self.state.pages.insert(address / PAGE + page, (block, bytes));
                }
            }
            Event::Free { address } => {
                self.before.insert(thread, (address, self.state.clone()));
                match self.state.blocks.remove(&address) {
                    Some(block) => {
                        self.free(block);
                        self.state.totals.frees += 1;
                    }
                    None => self.state.totals.unknown_frees += 1,
                }
            }
            Event::Unmap { address, size } => {
                self.before.insert(thread, (address, self.state.clone()));
                let before = self.state.parts();
                let hit = self.state.unmap(address, size) > 0;
                let after = self.state.parts();
                for (_, length, block) in before {
                    if length == block.size && !after.iter().any(|part| part.2 == block) {
                        self.free(block);
                    }
                }
                self.state.totals.frees += u64::from(hit);
                self.state.totals.unknown_frees += u64::from(!hit);
            }
            // Only directly after the free that failed.
            Event::Keep { address } => {
                let (of, state) = self.before.remove(&thread).unwrap();
                assert_eq!(of, address);
                self.state = state;
            }
        }
        let live = self.state.live();
        let bytes = live.values().map(|sum| sum.1).sum();
        if bytes > self.peak.0 {
            self.peak = (bytes, ticks, live);
        }
    }

    fn restart_peak(&mut self, ticks: u64) {
        let live = self.state.live();
        self.peak = (live.values().map(|sum| sum.1).sum(), ticks, live);
    }

    fn figures<K: Ord>(&self, key: impl Fn(CallSite, u64) -> K) -> BTreeMap<K, Figures> {
        let mut all: BTreeMap<K, Figures> = BTreeMap::new();
        let mut sum = |sums: &HashMap<(CallSite, u64), (u64, u64)>, add: fn(&mut Figures, (u64, u64))| {
            for ((site, class), figures) in sums {
                add(all.entry(key(*site, *class)).or_default(), *figures);
            }
        };
        sum(&self.counts, |of, sum| (of.allocations, of.bytes) = (of.allocations + sum.0, of.bytes + sum.1));
        sum(&self.state.live(), |of, sum| {
            (of.live_blocks, of.live_bytes) = (of.live_blocks + sum.0, of.live_bytes + sum.1);
        });
        sum(&self.peak.2, |of, sum| {
            (of.peak_blocks, of.peak_bytes) = (of.peak_blocks + sum.0, of.peak_bytes + sum.1);
        });
        sum(&self.state.temporary, |of, sum| {
            (of.temporary, of.temporary_bytes) = (of.temporary + sum.0, of.temporary_bytes + sum.1);
        });
        all
    }
}

fn record(ledger: &mut Ledger, ticks: u64, thread: u32, event: Event) {
    match event {
        Event::Allocate { address, size, site } => {
            let site = ledger.site(site);
            ledger.prefetch(address);
            ledger.allocate(ticks, thread, address, size, site);
        }
        Event::Free { address } => ledger.free(ticks, thread, address),
        Event::Map { address, size, site } => {
            let site = ledger.site(site);
            ledger.map(ticks, thread, address, size, site);
        }
        Event::Unmap { address, size } => ledger.unmap(ticks, thread, address, size),
        Event::Keep { address } => ledger.keep(thread, address),
    }
}

/// A program that allocates and frees at few addresses, in phases that rise and fall.
struct Program {
    random: Random,
    live: Vec<u64>,
}

impl Program {
    fn site(&mut self, thread: u32) -> CallSite {
        let number = |bits: usize| u32::try_from(bits).unwrap();
        CallSite {
            stack: number(self.random.below(5)),
            thread,
            allocator: number(self.random.below(2)),
            tag: number(self.random.below(3) / 2),
        }
    }

    fn address(&mut self) -> u64 {
        0x7f00_0000_1000 + self.random.below(64) as u64 * 16
    }

    fn size(&mut self) -> u64 {
        let most = [0, 1, 16, 300, 5000][self.random.below(5)];
        self.random.below(most + 1) as u64
    }

    fn pages(&mut self) -> (u64, u64) {
        let length = (1 + self.random.below(6)) as u64 * PAGE - [0, 100][self.random.below(2)];
        (0x10_0000 + self.random.below(12) as u64 * PAGE, length)
    }

    /// Returns the events of one call, all of one thread.
    fn call(&mut self, thread: u32, is_rising: bool) -> Vec<Event> {
        let site = self.site(thread);
        match self.random.below(20) {
            0..=1 => {
                let (address, size) = self.pages();
                vec![Event::Map { address, size, site }]
            }
            2 => {
                let (address, size) = self.pages();
                let unmap = Event::Unmap { address, size };
                if self.random.below(4) == 0 { vec![unmap, Event::Keep { address }] } else { vec![unmap] }
            }
            // An address that may or may not be live.
            3 => vec![Event::Free { address: self.address() }],
            4 => vec![Event::Allocate { address: self.address(), size: self.size(), site }],
            5..=8 if !self.live.is_empty() => {
                let at = self.random.below(self.live.len());
                let (address, size) = (self.live[at], self.size());
                if self.random.below(5) == 0 {
                    return vec![Event::Free { address }, Event::Keep { address }];
                }
                self.live[at] = self.address();
                vec![Event::Free { address }, Event::Allocate { address: self.live[at], size, site }]
            }
            9..=13 if !is_rising && !self.live.is_empty() => {
                let at = self.random.below(self.live.len());
                vec![Event::Free { address: self.live.swap_remove(at) }]
            }
            _ => {
                let (address, size) = (self.address(), self.size());
                self.live.push(address);
                vec![Event::Allocate { address, size, site }]
            }
        }
    }
}

fn check(ledger: &Ledger, naive: &Naive, context: &str) {
    let sites: BTreeMap<CallSite, Figures> = ledger.sites().collect();
    let expected = naive.figures(|site, _| site);
    assert!(sites.len() == expected.len(), "{context}");
    for (site, figures) in &expected {
        assert_eq!(sites.get(site), Some(figures), "{context}, {site:?}");
    }
    let sizes: BTreeMap<u64, Figures> = ledger.sizes().collect();
    assert_eq!(sizes, naive.figures(|_, class| class), "{context}");
    let figures = naive.figures(|_, _| ()).remove(&()).unwrap_or_default();
    let expected = Totals { figures, peak_ticks: naive.peak.1, ..naive.state.totals };
    assert_eq!(ledger.totals(), expected, "{context}");
    assert_eq!(ledger.live_bytes(), figures.live_bytes, "{context}");
}

fn blocks_of(ledger: &Ledger) -> Vec<(u64, u64, CallSite)> {
    let mut blocks: Vec<_> =
        ledger.blocks().map(|block| (block.address, block.size, ledger.site_of(block.site))).collect();
    blocks.sort_unstable();
    blocks
}

#[test]
fn it_equals_a_full_recomputation() {
    for seed in 0..60 {
        let temporary = [0, 1, 3][seed as usize % 3];
        let mut program = Program { random: Random::new(seed), live: Vec::new() };
        let mut ledger = Ledger::new(LedgerOptions { temporary, sample_every: None });
        let mut naive = Naive { temporary: temporary.into(), ..Naive::default() };
        let (mut ticks, mut random_check) = (0, Random::new(seed + 1000));
        for step in 0..600 {
            let thread = 1 + u32::try_from(program.random.below(3)).unwrap();
            if step == 300 && seed % 2 == 0 {
                ledger.restart_peak(ticks);
                naive.restart_peak(ticks);
            }
            for event in program.call(thread, step / 60 % 2 == 0) {
                ticks += 1;
                record(&mut ledger, ticks, thread, event);
                naive.record(ticks, thread, event);
                if random_check.below(6) == 0 {
                    check(&ledger, &naive, &format!("seed {seed}, event {ticks}: {event:?}"));
                }
            }
        }
        let blocks = naive.state.blocks.iter().map(|(address, block)| (*address, block.size, block.site));
        let parts = naive.state.parts().into_iter().map(|(start, length, block)| (start, length, block.site));
        let mut expected: Vec<_> = blocks.chain(parts).collect();
        expected.sort_unstable();
        assert_eq!(blocks_of(&ledger), expected, "seed {seed}");
        assert!(!ledger.is_incomplete());
    }
}

#[test]
fn a_mapping_is_found_by_any_of_its_addresses_and_a_block_by_its_first() {
    let mut ledger = Ledger::new(LedgerOptions::default());
    let site = ledger.site(CallSite { stack: 3, ..CallSite::default() });
    ledger.allocate(1, 1, 0x500, 24, site);
    ledger.map(2, 1, 0x8000, 0x4000, site);
    ledger.unmap(3, 1, 0x9000, 0x1000);
    assert_eq!(ledger.block(0x500), Some(Block { address: 0x500, size: 24, site }));
    assert_eq!(ledger.block(0x508), None);
    assert_eq!(ledger.block(0x8fff), Some(Block { address: 0x8000, size: 0x1000, site }));
    assert_eq!(ledger.block(0x9000), None);
    assert_eq!(ledger.block(0xbfff), Some(Block { address: 0xa000, size: 0x2000, site }));
    assert_eq!(ledger.block(0xc000), None);
}

/// Events of threads that were stopped are recorded late: the sums are those of the right order.
#[test]
fn late_events_count_as_in_their_order() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let (mut events, mut live) = (Vec::new(), BTreeMap::new());
        for ticks in 1..=400_u64 {
            let address = 0x1000 + random.below(40) as u64 * 16;
            let thread = 1 + u32::try_from(random.below(4)).unwrap();
            if live.remove(&address).is_some() {
                events.push((ticks, thread, Event::Free { address }));
            } else {
                let site = CallSite { stack: 1 + ticks as u32 % 5, thread, ..CallSite::default() };
                let size = 1 + random.below(1000) as u64;
                live.insert(address, (size, site));
                events.push((ticks, thread, Event::Allocate { address, size, site }));
            }
        }
        let mut in_time = Ledger::new(LedgerOptions { temporary: 0, sample_every: None });
        for (ticks, thread, event) in &events {
            record(&mut in_time, *ticks, *thread, *event);
        }
        // At most one event of each address is late.
        let mut late = Ledger::new(LedgerOptions { temporary: 0, sample_every: None });
        let mut moved = HashSet::new();
        let mut order: Vec<(u64, usize)> = Vec::new();
        for (at, (ticks, _, event)) in events.iter().enumerate() {
            let (Event::Allocate { address, .. } | Event::Free { address }) = event else { unreachable!() };
            let is_moved = random.below(4) == 0 && moved.insert(*address);
            order.push((ticks * 2 + if is_moved { 1 + random.below(200) as u64 } else { 0 }, at));
        }
        order.sort_unstable();
        // No second event of the address may come between, as the order would be ambiguous.
        let skips = |at: usize, until: u64| {
            let address = |at: usize| match events[at].2 {
                Event::Allocate { address, .. } | Event::Free { address } => address,
                _ => unreachable!(),
            };
            let own = events[at].0 * 2;
            events
                .iter()
                .enumerate()
                .filter(|(other, event)| address(*other) == address(at) && event.0 * 2 > own && event.0 * 2 < until)
                .count()
        };
        if order.iter().any(|(until, at)| skips(*at, *until) > 1) {
            continue;
        }
        for (_, at) in &order {
            let (ticks, thread, event) = events[*at];
            record(&mut late, ticks, thread, event);
        }
        assert_eq!(blocks_of(&late), blocks_of(&in_time), "seed {seed}");
        let sums = |ledger: &Ledger| {
            let totals = ledger.totals();
            let of = totals.figures;
            (
                of.allocations,
                of.bytes,
                of.live_blocks,
                of.live_bytes,
                totals.frees,
                totals.unknown_frees,
                totals.replaced,
            )
        };
        assert_eq!(sums(&late), sums(&in_time), "seed {seed}");
    }
}

#[test]
fn the_highest_value_since_the_last_query_is_known_with_its_time() {
    let mut ledger = Ledger::new(LedgerOptions::default());
    let site = ledger.site(CallSite::default());
    ledger.allocate(10, 1, 16, 100, site);
    ledger.allocate(20, 1, 32, 50, site);
    ledger.free(30, 1, 16);
    assert_eq!((ledger.take_highest(), ledger.live_bytes()), ((20, 150), 50));
    assert_eq!(ledger.take_highest(), (30, 50));
    ledger.free(40, 1, 32);
    ledger.allocate(50, 1, 32, 20, site);
    assert_eq!((ledger.take_highest(), ledger.take_highest()), ((30, 50), (50, 20)));
}

#[test]
fn events_of_damaged_recordings_do_no_harm() {
    let mut ledger = Ledger::new(LedgerOptions { temporary: u32::MAX, sample_every: Some(0) });
    let mut random = Random::new(9);
    for _ in 0..3000 {
        let edge = |random: &mut Random| [0, 1, 4096, 1 << 40, 1 << 56, u64::MAX - 4095, u64::MAX][random.below(7)];
        let (ticks, address, size) = (edge(&mut random), edge(&mut random), edge(&mut random));
        let thread = [0, 1, 5000][random.below(3)];
        let site = ledger.site(CallSite { thread, ..CallSite::default() });
        match random.below(5) {
            0 => ledger.allocate(ticks, thread, address, size, site),
            1 => ledger.free(ticks, thread, address),
            2 => ledger.map(ticks, thread, address, size, site),
            3 => ledger.unmap(ticks, thread, address, size),
            _ => ledger.keep(thread, address),
        }
    }
    assert!(ledger.totals().figures.allocations > 0 && ledger.bytes_used() > 0);
}

#[test]
fn a_sample_estimates_the_whole() {
    let (every, mut random) = (4096_u64, Random::new(3));
    let mut ledger = Ledger::new(LedgerOptions { temporary: 1, sample_every: Some(every) });
    let (mut true_blocks, mut true_bytes, mut sums) = (0.0, 0.0, (0.0, 0.0));
    // The standard error of bytes is about 0.3 % of 400,000 blocks, and 1 % of 40,000; that of blocks 2 % and 6 %.
    let (count, most_of_bytes, most_of_blocks) = scale((40_000_u64, 0.05, 0.3), (400_000, 0.015, 0.1));
    for number in 0..count {
        let most = [40, 400, 20_000][random.below(3)];
        let size = 1 + random.below(most) as u64;
        (true_blocks, true_bytes) = (true_blocks + 1.0, true_bytes + size as f64);
        let is_hit = (random.bits() >> 11) as f64 / (1_u64 << 53) as f64;
        if is_hit < 1.0 - (-(size as f64) / every as f64).exp() {
            let site = ledger.site(CallSite { stack: 1, ..CallSite::default() });
            ledger.allocate(number, 1, 16 + number * 16, size, site);
            let (blocks, bytes) = stands_for(size, every);
            sums = (sums.0 + blocks, sums.1 + bytes);
        }
    }
    let of = ledger.totals().figures;
    assert!((of.allocations as f64 - sums.0).abs() / sums.0 < 1e-3 && (of.bytes as f64 - sums.1).abs() / sums.1 < 1e-3);
    assert_eq!((of.allocations, of.bytes), (of.live_blocks, of.live_bytes));
    assert!((of.bytes as f64 - true_bytes).abs() / true_bytes < most_of_bytes, "{} {true_bytes}", of.bytes);
    let error_of_blocks = (of.allocations as f64 - true_blocks).abs() / true_blocks;
    assert!(error_of_blocks < most_of_blocks, "{} {true_blocks}", of.allocations);
    let blocks: Vec<u64> = ledger.blocks().map(|block| block.address).collect();
    for address in blocks {
        ledger.free(500_000, 1, address);
    }
    assert_eq!((ledger.totals().figures.live_blocks, ledger.live_bytes()), (0, 0));
}

/// Returns the processor time of the calling thread.
fn thread_nanoseconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: valid memory for a time.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Prints the time of an event: `cargo test --release -p stackweave-heap --test it model:: -- --ignored --nocapture`.
#[test]
#[ignore = "prints figures"]
fn print_the_time_of_an_event() {
    for live in [1_000_usize, 100_000, 10_000_000] {
        for batch in [1, 32] {
            let (mut random, mut ledger) = (Random::new(1), Ledger::new(LedgerOptions::default()));
            let mut blocks: Vec<u64> = (0..live as u64).map(|number| 0x7f00_0000_0000 + number * 48).collect();
            let started = thread_nanoseconds();
            for (ticks, address) in (0..).zip(&blocks) {
                let site = ledger.site(CallSite { stack: 1 + *address as u32 % 100, thread: 1, allocator: 1, tag: 0 });
                ledger.allocate(ticks, 1, *address, 40, site);
            }
            let filling = (thread_nanoseconds() - started) / live as f64;
            let rounds = 4_000_000_usize;
            let order: Vec<usize> = (0..rounds).map(|_| random.below(live)).collect();
            let started = thread_nanoseconds();
            for (turn, chunk) in order.chunks(batch).enumerate() {
                for at in chunk {
                    ledger.prefetch(blocks[*at]);
                }
                for at in chunk {
                    let ticks = (live + turn * batch) as u64;
                    ledger.free(ticks, 1, blocks[*at]);
                    let site = ledger.site(CallSite { stack: 1 + *at as u32 % 100, thread: 1, allocator: 1, tag: 0 });
                    ledger.allocate(ticks, 1, blocks[*at], 64, site);
                }
            }
            let event = (thread_nanoseconds() - started) / (2 * rounds) as f64;
            blocks.clear();
            println!(
                "{live} live, batches of {batch}: {filling:.1} ns to fill, {event:.1} ns an event, {:.1} bytes a block",
                ledger.bytes_used() as f64 / live as f64
            );
        }
    }
}

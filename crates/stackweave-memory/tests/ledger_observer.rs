//! The figures in a recording of memory follow from its events.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "a failure fails the test")]

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use stackweave_core::{EventKind, NoNames, Role};
use stackweave_heap::{CallSite, Figures, Ledger, LedgerOptions, Totals};
use stackweave_memory::{
    HostEventKind, LedgerObserver, MemoryKinds, MemoryMode, MemoryOptions, MemorySnapshot, observer,
};
use stackweave_recording::events::{self, Allocator};
use stackweave_recording::{ProcessRecording, Recorder, RecorderOptions, Recording, TimedEvent};
use stackweave_store::{StackTable, label, locate_label};
use stackweave_testkit::folder::Folder;
use stackweave_testkit::random::Random;

static STACKS: StackTable = StackTable::new();

fn start(path: &Path, options: &MemoryOptions) -> (Recorder, MemoryKinds) {
    let recording = RecorderOptions { flush_every: Duration::from_millis(3), ..RecorderOptions::new(path) };
    let recorder = Recorder::start_observed(recording, &STACKS, Arc::new(NoNames), Some(observer(options))).unwrap();
    let kinds = MemoryKinds::register(&recorder, options.mode).unwrap();
    (recorder, kinds)
}

fn query<T: Send + 'static>(recorder: &Recorder, question: fn(&mut LedgerObserver) -> T) -> T {
    recorder.query_observer(move |observer| question(observer.downcast_mut().unwrap())).unwrap()
}

/// An allocator whose blocks any thread frees: an address is allocated before that is recorded, and recorded before it
/// is freed.
#[derive(Default)]
struct Pool {
    next: u64,
    free: Vec<u64>,
    live: Vec<u64>,
}

fn churn(recorder: &Recorder, kinds: &MemoryKinds, pool: &Mutex<Pool>, (thread, calls): (u64, usize)) {
    let mut random = Random::new(thread);
    let places = [1, 2, 3].map(|name| label(&format!("place {name}"), "", 0).unwrap());
    let step = label(&format!("step {thread}"), "", 0).unwrap();
    for call in 0..calls {
        let stack =
            STACKS.intern(&[places[random.below(3)], places[random.below(3)]]).map_or(0, |stack| stack.get().into());
        let size = random.below(5000) as u64;
        match random.below(24) {
            0 => recorder.record(kinds.tag, &[[0, step.to_bits()][random.below(2)]]),
            1 => {
                let address = (1 + thread) << 32 | (random.below(8) as u64) << 14;
                recorder.record(kinds.of(Allocator::Mmap), &[address, 0x4000 + size, stack]);
                recorder.record(kinds.munmap, &[address + 0x1000, 0x1000]);
            }
            2 => {
                let device = random.below(2) as u64;
                recorder.record(
                    kinds.of_host(HostEventKind::Allocate),
                    &[thread << 40 | size << 9, 512 + size, stack, device, 0, 0],
                );
                recorder.record(kinds.of_host(HostEventKind::Segment), &[thread << 40, 1 << 30, stack, device, 0, 0]);
                if call % 3 != 0 {
                    recorder
                        .record(kinds.of_host(HostEventKind::Free), &[thread << 40 | size << 9, 0, 0, device, 0, 0]);
                }
            }
            3..=13 => {
                let address = {
                    let mut pool = pool.lock().unwrap();
                    pool.next += 64;
                    let fresh = 0x7000_0000_0000 + pool.next;
                    pool.free.pop().unwrap_or(fresh)
                };
                let allocator = [Allocator::Malloc, Allocator::Calloc][random.below(2)];
                recorder.record(kinds.of(allocator), &[address, size, stack]);
                pool.lock().unwrap().live.push(address);
            }
            _ => {
                let freed = {
                    let mut pool = pool.lock().unwrap();
                    let length = pool.live.len();
                    (length > 0).then(|| pool.live.swap_remove(random.below(length)))
                };
                let Some(address) = freed else { continue };
                recorder.record(kinds.free, &[address]);
                if random.below(10) == 0 {
                    recorder.record(kinds.kept, &[address]);
                    pool.lock().unwrap().live.push(address);
                } else {
                    pool.lock().unwrap().free.push(address);
                }
            }
        }
    }
}

/// An allocation site as it is in the file: stack and tag by number, the allocator by name.
type FileSite = (u64, String, u64, u32);

/// The figures of a device.
#[derive(Debug, Default, PartialEq)]
struct Usage {
    rows: BTreeMap<FileSite, Figures>,
    sizes: BTreeMap<u64, Figures>,
    totals: Totals,
}

fn figures(words: &[u64]) -> Figures {
    let at = |number: usize| words.get(number).copied().unwrap_or(0);
    Figures {
        allocations: at(0),
        bytes: at(1),
        live_blocks: at(2),
        live_bytes: at(3),
        peak_blocks: at(4),
        peak_bytes: at(5),
        temporary: at(6),
        temporary_bytes: at(7),
    }
}

fn name_of(process: &ProcessRecording, frame: u64) -> String {
    let names = process.dictionary().names(u32::try_from(frame).unwrap());
    process.dictionary().string(names.first().unwrap().name).unwrap().to_owned()
}

/// An event of a recording.
struct ReadEvent {
    ticks: u64,
    thread: u32,
    kind: EventKind,
    words: Vec<u64>,
}

/// Returns the only process of a recording, and its events in the order of their times.
fn read(path: &Path) -> (ProcessRecording, Vec<ReadEvent>) {
    let recording = Recording::open(path).unwrap();
    assert_eq!(recording.report(), Vec::<String>::new());
    let process = recording.processes()[0].clone();
    let mut events = Vec::new();
    let mut add = |timed: TimedEvent<'_>| {
        let kind = process.dictionary().kind(timed.event.kind).unwrap().clone();
        events.push(ReadEvent {
            ticks: timed.event.ticks,
            thread: timed.thread,
            kind,
            words: timed.event.words.to_vec(),
        });
        ControlFlow::Continue(())
    };
    process.visit_in_time_order(None, &mut |_| (), &mut add).unwrap();
    (process, events)
}

/// Returns the last snapshot of a recording, by device.
fn written(process: &ProcessRecording, events: &[ReadEvent]) -> BTreeMap<i64, Usage> {
    let mut snapshots: BTreeMap<u64, BTreeMap<i64, Usage>> = BTreeMap::new();
    for ReadEvent { ticks, kind, words, .. } in events {
        let (snapshot, device) = match kind {
            kind if *kind == events::MEMORY_USAGE => (words[3], words[5]),
            kind if kind.role == Role::Usage => (words[0], words[1]),
            _ => continue,
        };
        let usage = snapshots.entry(snapshot).or_default().entry(device.cast_signed()).or_default();
        if *kind == events::MEMORY_USAGE {
            let place = (words[0], name_of(process, words[1]), words[2], u32::try_from(words[4]).unwrap());
            assert!(usage.rows.insert(place, figures(&words[6..])).is_none());
        } else if *kind == events::MEMORY_SIZES {
            assert!(usage.sizes.insert(words[2], figures(&words[3..])).is_none());
        } else {
            usage.totals = Totals {
                figures: figures(&words[3..11]),
                peak_ticks: ticks - words[2],
                frees: words[11],
                unknown_frees: words[12],
                replaced: words[13],
            };
        }
    }
    snapshots.pop_last().unwrap().1
}

/// Computes the same from the events.
fn replayed(events: &[ReadEvent], options: LedgerOptions) -> BTreeMap<i64, Usage> {
    let mut ledgers: BTreeMap<i64, Ledger> = BTreeMap::from([(-1, Ledger::new(options))]);
    let (mut tags, mut allocators) = (BTreeMap::new(), Vec::new());
    for ReadEvent { ticks, thread, kind, words } in events {
        if kind.role == Role::Tag {
            tags.insert(*thread, words[0]);
            continue;
        }
        let of = |name: &str| kind.fields.iter().position(|field| field.name == name).map(|at| words[at]);
        let device = of("device").map_or(-1, u64::cast_signed);
        if matches!(kind.role, Role::Map | Role::Unmap) && device != -1 {
            continue;
        }
        let Some(address) = of("address") else { continue };
        let allocator = allocators.iter().position(|name| *name == kind.name).unwrap_or_else(|| {
            allocators.push(kind.name.clone());
            allocators.len() - 1
        });
        let number = |word: u64| u32::try_from(word).unwrap();
        let ledger = ledgers.entry(device).or_insert_with(|| Ledger::new(options));
        let place = ledger.site(CallSite {
            stack: number(of("stack").unwrap_or(0)),
            thread: *thread,
            allocator: number(allocator as u64 + 1),
            tag: number(tags.get(thread).copied().unwrap_or(0)),
        });
        let size = of("size").unwrap_or(0);
        match kind.role {
            Role::Allocate => ledger.allocate(*ticks, *thread, address, size, place),
            Role::Free => ledger.free(*ticks, *thread, address),
            Role::Map => ledger.map(*ticks, *thread, address, size, place),
            Role::Unmap => ledger.unmap(*ticks, *thread, address, size),
            Role::Keep => ledger.keep(*thread, address),
            _ => {}
        }
    }
    let usage = |ledger: &Ledger| Usage {
        rows: ledger
            .sites()
            .map(|(place, figures)| {
                let allocator = allocators[place.allocator as usize - 1].to_string();
                ((place.stack.into(), allocator, place.tag.into(), place.thread), figures)
            })
            .collect(),
        // A snapshot has no figures of temporary blocks for a size class.
        sizes: ledger
            .sizes()
            .map(|(most, figures)| (most, Figures { temporary: 0, temporary_bytes: 0, ..figures }))
            .collect(),
        totals: ledger.totals(),
    };
    ledgers.iter().map(|(device, ledger)| (*device, usage(ledger))).collect()
}

fn assert_same(written: &BTreeMap<i64, Usage>, replayed: &BTreeMap<i64, Usage>, context: &str) {
    assert_eq!(written.keys().collect::<Vec<_>>(), replayed.keys().collect::<Vec<_>>(), "{context}");
    for (device, usage) in written {
        assert_eq!(usage.totals, replayed[device].totals, "{context}, device {device}");
        assert_eq!(usage.sizes, replayed[device].sizes, "{context}, device {device}");
        assert_eq!(usage.rows.len(), replayed[device].rows.len(), "{context}, device {device}");
        for (place, figures) in &usage.rows {
            assert_eq!(Some(figures), replayed[device].rows.get(place), "{context}, {device}, {place:?}");
        }
    }
}

#[test]
fn the_snapshot_is_the_sum_of_the_events() {
    for (threads, mode) in
        [(1, MemoryMode::History), (4, MemoryMode::History), (3, MemoryMode::Sampled { every: 4096 })]
    {
        let folder = Folder::new();
        let options = MemoryOptions { mode, curve_every: Duration::from_millis(1), ..MemoryOptions::default() };
        let (recorder, kinds) = start(&folder.file("out.swv"), &options);
        let pool = Mutex::new(Pool::default());
        thread::scope(|scope| {
            for thread in 0..threads {
                let (recorder, kinds, pool) = (&recorder, &kinds, &pool);
                scope.spawn(move || churn(recorder, kinds, pool, (thread, 30_000)));
            }
        });
        let live = query(&recorder, |ledgers| ledgers.snapshot());
        let summary = recorder.stop();
        assert_eq!((summary.error, summary.lost.values().sum::<u64>()), (None, 0));
        let (process, events) = read(&folder.file("out.swv"));
        let every = if let MemoryMode::Sampled { every } = mode { Some(every) } else { None };
        let context = format!("{threads} threads, {mode:?}");
        let written = written(&process, &events);
        assert_same(&written, &replayed(&events, LedgerOptions { temporary: 1, sample_every: every }), &context);
        // The same as the answer to a query before the end.
        let queried: Vec<(i64, Totals)> = live.devices.iter().map(|device| (device.device, device.totals)).collect();
        for (device, totals) in queried {
            assert_eq!(written[&device].totals, totals, "{context}");
        }
        let own = &written[&-1].totals;
        assert!(own.frees > 5000 && own.unknown_frees == 0 && own.figures.temporary > 20, "{context}: {own:?}");
    }
}

#[test]
fn an_aggregate_has_the_figures_and_none_of_the_events() {
    let folder = Folder::new();
    let record = |name: &str, mode: MemoryMode| {
        let (recorder, kinds) = start(&folder.file(name), &MemoryOptions { mode, ..MemoryOptions::default() });
        churn(&recorder, &kinds, &Mutex::new(Pool::default()), (7, 20_000));
        let summary = recorder.stop();
        assert_eq!((summary.error, summary.lost.values().sum::<u64>()), (None, 0));
        read(&folder.file(name))
    };
    let (process, events) = record("aggregate.swv", MemoryMode::Aggregate);
    let figure_roles = [Role::Usage, Role::Counter];
    assert!(events.iter().all(|event| figure_roles.contains(&event.kind.role)), "only figures are written");
    let (history, all) = record("history.swv", MemoryMode::History);
    let tags =
        |usage: &Usage| usage.rows.iter().map(|(place, figures)| (place.1.clone(), *figures)).collect::<Vec<_>>();
    let (aggregate, whole) = (written(&process, &events), written(&history, &all));
    for (device, usage) in &aggregate {
        let whole = &whole[device];
        assert_eq!(Totals { peak_ticks: 0, ..usage.totals }, Totals { peak_ticks: 0, ..whole.totals });
        assert_eq!((&usage.sizes, tags(usage).len()), (&whole.sizes, tags(whole).len()));
    }
    let sizes = ["aggregate.swv", "history.swv"].map(|name| std::fs::metadata(folder.file(name)).unwrap().len());
    assert!(sizes[0] * 4 < sizes[1], "{sizes:?}");
}

#[test]
fn queries_return_what_is_live_and_where_it_was_allocated() {
    let folder = Folder::new();
    let (recorder, kinds) = start(&folder.file("out.swv"), &MemoryOptions::default());
    let (place, step) = (label("load", "", 0).unwrap(), label("step 3", "", 0).unwrap());
    let stack = STACKS.intern(&[place]).unwrap();
    recorder.record(kinds.tag, &[step.to_bits()]);
    recorder.record(kinds.of(Allocator::Malloc), &[0x1000, 100, stack.get().into()]);
    recorder.record(kinds.of(Allocator::Mmap), &[0x10_0000, 0x8000, 0]);
    recorder.record(kinds.free, &[0x99]);
    let block = recorder.query_observer(|observer| observer.downcast_ref::<LedgerObserver>().unwrap().block(0x1000));
    let block = block.flatten().unwrap();
    assert_eq!((block.address, block.size, block.stack, block.tag), (0x1000, 100, Some(stack), Some(step)));
    assert_eq!(&*locate_label(block.allocator.unwrap()).unwrap().name, "malloc");
    let mapping =
        recorder.query_observer(|observer| observer.downcast_ref::<LedgerObserver>().unwrap().block(0x10_7fff));
    assert_eq!(mapping.flatten().map(|block| (block.address, block.size)), Some((0x10_0000, 0x8000)));
    assert_eq!(query(&recorder, |ledgers| ledgers.live_blocks()).len(), 2);
    let stats = query(&recorder, |ledgers| ledgers.stats());
    assert_eq!((stats.events, stats.unknown_events, stats.totals.unknown_frees, stats.is_incomplete), (3, 0, 1, false));
    recorder.stop();
    // Also after the end.
    let snapshot: MemorySnapshot = query(&recorder, |ledgers| ledgers.snapshot());
    assert_eq!(snapshot.devices[0].totals.figures.live_bytes, 100 + 0x8000);
    assert_eq!(snapshot.devices[0].rows.len(), 2);
}

#[test]
fn a_snapshot_is_written_when_it_is_requested() {
    let folder = Folder::new();
    let (recorder, kinds) = start(&folder.file("out.swv"), &MemoryOptions::default());
    for size in [10, 20] {
        recorder.record(kinds.of(Allocator::Malloc), &[0x1000 * size, size, 0]);
        let ticks = recorder.ticks_now();
        let is_written = recorder.query_observer_with_notes(move |observer, notes| {
            observer.downcast_mut::<LedgerObserver>().unwrap().write_snapshot(ticks, notes)
        });
        assert_eq!(is_written, Some(true));
    }
    recorder.stop();
    let (_, events) = read(&folder.file("out.swv"));
    let totals = events.iter().filter(|event| event.kind == events::MEMORY_TOTAL);
    let live: Vec<(u64, u64)> = totals.map(|event| (event.words[0], event.words[6])).collect();
    assert_eq!(live, [(1, 10), (2, 30), (3, 30)]);
}

#[test]
fn spikes_are_in_the_curve_and_points_only_where_something_changes() {
    let folder = Folder::new();
    let options = MemoryOptions { curve_every: Duration::from_millis(5), ..MemoryOptions::default() };
    let (recorder, kinds) = start(&folder.file("out.swv"), &options);
    recorder.record(kinds.of(Allocator::Malloc), &[0x10, 1000, 0]);
    // A query is a round of the writer, and a point is due by then.
    let add_point = || {
        thread::sleep(Duration::from_millis(6));
        query(&recorder, |_| ());
    };
    add_point();
    recorder.record(kinds.of(Allocator::Malloc), &[0x2000, 5_000_000, 0]);
    recorder.record(kinds.free, &[0x2000]);
    add_point();
    add_point();
    recorder.stop();
    let (process, events) = read(&folder.file("out.swv"));
    let points = |name: &str| -> Vec<f64> {
        let counters = events.iter().filter(|event| event.kind == events::COUNTER);
        let of_name = counters.filter(|event| name_of(&process, event.words[0]) == name);
        of_name.map(|event| f64::from_bits(event.words[1])).collect()
    };
    let heap = points("memory.heap");
    assert!(heap.ends_with(&[1000.0, 5_001_000.0, 1000.0]) && heap.len() <= 4, "{heap:?}");
    assert!(points("memory.rss").iter().all(|bytes| *bytes > 100_000.0));
    assert!(!points("memory.rss").is_empty());
}

#[test]
fn reaching_a_size_writes_a_snapshot() {
    let folder = Folder::new();
    let options =
        MemoryOptions { curve_every: Duration::from_millis(1), dump_at_rss: Some(1), ..MemoryOptions::default() };
    let (recorder, kinds) = start(&folder.file("out.swv"), &options);
    recorder.record(kinds.of(Allocator::Malloc), &[0x1000, 10, 0]);
    for _ in 0..5 {
        query(&recorder, |_| thread::sleep(Duration::from_millis(2)));
    }
    recorder.stop();
    let (_, events) = read(&folder.file("out.swv"));
    // Once when it was reached, and once at the end.
    assert_eq!(events.iter().filter(|event| event.kind == events::MEMORY_TOTAL).count(), 2);
}

#[test]
fn a_forked_child_has_its_own_ledgers() {
    let folder = Folder::new();
    let (recorder, kinds) = start(&folder.file("out.swv"), &MemoryOptions::default());
    recorder.record(kinds.of(Allocator::Malloc), &[0x1000, 10, 0]);
    query(&recorder, |_| ());
    // SAFETY: the child records, stops, and exits without running what its parent has set up.
    let child = unsafe { libc::fork() };
    if child == 0 {
        recorder.record(kinds.of(Allocator::Malloc), &[0x2000, 7, 0]);
        recorder.record(kinds.free, &[0x1000]);
        recorder.stop();
        // SAFETY: has no conditions.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: a child of this process; `status` is writable.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
    recorder.stop();
    let mut totals: Vec<(u64, u64)> = folder
        .paths()
        .iter()
        .map(|path| {
            let (process, events) = read(path);
            let own = &written(&process, &events)[&-1].totals;
            (own.figures.live_bytes, own.unknown_frees)
        })
        .collect();
    totals.sort_unstable();
    assert_eq!(totals, [(7, 1), (10, 0)]);
}

//! Keeps the ledgers of a recording, on its writer's thread, from the events as they are written.
//!
//! Memory: 21 to 43 bytes for each live block, 50 to 55 for each allocation site, the events that wait to be merged (at
//! most 64 MiB; usually what threads record in one round of the writer), and 120 bytes for each site while a snapshot
//! is written.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use stackweave_core::EventKind;
use stackweave_heap::{LedgerOptions, Totals};
use stackweave_recording::events;
use stackweave_recording::{KindNumber, MakeObserver, Notes, Observer};
use stackweave_store::label;

use crate::curve::UsageCurve;
use crate::device_ledgers::DeviceLedgers;
use crate::event_layout::{KindShape, KindShapes};
use crate::foreign_hooks::ForeignHookState;
use crate::merge::MergeBuffers;
use crate::options::{MemoryMode, MemoryOptions};
use crate::platform;
use crate::snapshot::{BlockOrigin, MemorySnapshot, SnapshotKinds, SnapshotWriter};
use crate::suppress::SuppressGuard;

/// The least time between two snapshots of a recording without a history. They also take at most a hundredth of the
/// time.
const SNAPSHOT_EVERY: Duration = Duration::from_secs(10);
/// The pauses before the first snapshots, in milliseconds, so that a short program that is killed leaves some: they are
/// written after 0.2, 0.5, 1, 2, 5 and 10 seconds.
const FIRST_PAUSES: [u64; 6] = [200, 300, 500, 1_000, 3_000, 5_000];
const SNAPSHOT_SHARE: u32 = 100;

/// Statistics of the ledgers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LedgerStats {
    /// Events that were applied.
    pub events: u64,
    /// The number of times that events could not be decoded.
    pub unknown_events: u64,
    /// Allocation sites.
    pub places: usize,
    /// The memory of the ledgers, in bytes.
    pub bytes_used: usize,
    /// Whether some blocks are only counted, because memory was short.
    pub is_incomplete: bool,
    /// The totals of the process's own memory.
    pub totals: Totals,
    /// The time from its peak to the last applied event.
    pub peak_ago: Duration,
}

/// The length of a tick, measured against the clock.
#[derive(Debug, Default)]
struct TickRate {
    first: Option<(Instant, u64)>,
    last: Option<(Instant, u64)>,
}

impl TickRate {
    fn observe(&mut self, ticks: u64) {
        if self.last.is_none_or(|last| last.1 < ticks) {
            self.last = Some((Instant::now(), ticks));
            self.first = self.first.or(self.last);
        }
    }

    fn duration(&self, ticks: u64) -> Duration {
        let (Some(first), Some(last)) = (self.first, self.last) else { return Duration::ZERO };
        let (seconds, between) = (last.0.duration_since(first.0).as_secs_f64(), last.1 - first.1);
        let duration = if between == 0 { 0.0 } else { ticks as f64 * (seconds / between as f64) };
        Duration::try_from_secs_f64(duration).unwrap_or(Duration::ZERO)
    }
}

/// A size that triggers an action each time it is reached.
#[derive(Debug)]
struct Threshold {
    bytes: u64,
    is_armed: bool,
}

impl Threshold {
    /// Returns whether the size is reached for the first time since it was a tenth below.
    fn is_reached(&mut self, bytes: u64) -> bool {
        let is_reached = self.is_armed && bytes >= self.bytes;
        self.is_armed = !is_reached && (self.is_armed || bytes < self.bytes - self.bytes / 10);
        is_reached
    }
}

/// Keeps the ledgers of a recording.
pub struct LedgerObserver {
    shapes: KindShapes,
    buffers: MergeBuffers,
    ledgers: DeviceLedgers,
    curve: UsageCurve,
    curve_every: Duration,
    foreign_hooks: ForeignHookState,
    counter: Option<KindNumber>,
    usage: [Option<KindNumber>; 3],
    has_history: bool,
    settled: u64,
    tick_rate: TickRate,
    snapshots: u64,
    /// The snapshot that is being written.
    writing: Option<SnapshotWriter>,
    /// The time at which the next snapshot is due, and how many events were applied at the last.
    next_snapshot: Instant,
    snapshot_events: u64,
    dump_at: Threshold,
    /// Whether events were lost because memory was short.
    has_lost: bool,
}

impl fmt::Debug for LedgerObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LedgerObserver").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

/// Creates the observer that a memory recorder needs. From then on, what the writer's thread allocates is not recorded.
pub fn observer(options: &MemoryOptions) -> MakeObserver {
    let options = options.clone();
    Arc::new(move || {
        SuppressGuard::for_ever();
        platform::reset_foreign_slots();
        Box::new(LedgerObserver::new(&options))
    })
}

impl LedgerObserver {
    /// Creates the ledgers of a recording without events.
    pub fn new(options: &MemoryOptions) -> Self {
        let sample_every = match options.mode {
            MemoryMode::Sampled { every } => Some(every.max(1)),
            MemoryMode::History | MemoryMode::Aggregate => None,
        };
        Self {
            shapes: KindShapes::default(),
            buffers: MergeBuffers::default(),
            ledgers: DeviceLedgers::new(LedgerOptions { temporary: options.temporary, sample_every }),
            curve: UsageCurve::new(options.curve_every),
            curve_every: options.curve_every,
            foreign_hooks: ForeignHookState::new(options.own_memory),
            counter: None,
            usage: [None; 3],
            has_history: options.mode == MemoryMode::History,
            settled: 0,
            tick_rate: TickRate::default(),
            snapshots: 0,
            writing: None,
            next_snapshot: Instant::now() + pause_after(0),
            snapshot_events: 0,
            dump_at: Threshold { bytes: options.dump_at_rss.unwrap_or(u64::MAX), is_armed: true },
            has_lost: false,
        }
    }

    /// Returns what was live, and what was live at the peak, when the ledgers were last updated.
    pub fn snapshot(&self) -> MemorySnapshot {
        let ago = |ticks: u64| self.tick_rate.duration(self.settled.saturating_sub(ticks));
        MemorySnapshot { ticks: self.settled, devices: self.ledgers.device_snapshots(ago) }
    }

    /// Returns the live block that begins at this address, or the mapping that contains it.
    pub fn block(&self, address: u64) -> Option<BlockOrigin> {
        self.ledgers.block(address)
    }

    /// Returns all live blocks, in no order.
    pub fn live_blocks(&self) -> Vec<BlockOrigin> {
        self.ledgers.live_blocks()
    }

    /// Returns the live blocks of devices.
    pub(crate) fn device_blocks(&self) -> impl Iterator<Item = BlockOrigin> {
        self.ledgers.device_blocks()
    }

    /// Writes the first part of a snapshot to the recording; [`Observer::more`] writes the others. Returns false if its
    /// kinds are not declared.
    pub fn write_snapshot(&mut self, ticks: u64, notes: &mut Notes) -> bool {
        let [Some(usage), Some(sizes), Some(total)] = self.usage else { return false };
        self.snapshots += 1;
        let kinds = SnapshotKinds { usage, sizes, total };
        self.writing = Some(SnapshotWriter::new(ticks.max(self.settled), self.snapshots, kinds));
        self.snapshot_events = self.ledgers.applied;
        self.more(notes);
        true
    }

    /// Returns statistics of the ledgers.
    pub fn stats(&self) -> LedgerStats {
        let ledgers = &self.ledgers.all;
        let totals = ledgers.first().map_or_else(Totals::default, |own| own.ledger.totals());
        LedgerStats {
            events: self.ledgers.applied,
            unknown_events: self.buffers.unknown,
            places: ledgers.iter().map(|of_device| of_device.ledger.sites().count()).sum(),
            bytes_used: self.ledgers.bytes_used() + self.buffers.bytes_used(),
            is_incomplete: self.has_lost || ledgers.iter().any(|of_device| of_device.ledger.is_incomplete()),
            totals,
            peak_ago: self.tick_rate.duration(self.settled.saturating_sub(totals.peak_ticks)),
        }
    }

    /// Applies the events before `until`.
    fn apply_until(&mut self, until: u64) {
        let ledgers = &mut self.ledgers;
        self.buffers.merge_until(until, &self.shapes, &mut |event| ledgers.add(event));
        ledgers.apply_batch();
    }
}

/// Returns the pause before the next snapshot, after this many.
fn pause_after(snapshots: u64) -> Duration {
    let first = usize::try_from(snapshots).ok().and_then(|index| FIRST_PAUSES.get(index));
    first.map_or(SNAPSHOT_EVERY, |milliseconds| Duration::from_millis(*milliseconds))
}

impl Observer for LedgerObserver {
    fn kind(&mut self, number: KindNumber, kind: &EventKind) {
        let allocator = label(&kind.name, "", 0).map_or(0, |label| self.ledgers.labels.number(label.to_bits()));
        self.shapes.add(number, KindShape::of(kind, allocator));
        let known = [events::MEMORY_USAGE, events::MEMORY_SIZES, events::MEMORY_TOTAL];
        for (slot, known) in self.usage.iter_mut().zip(known) {
            if *kind == known {
                *slot = Some(number);
            }
        }
        if *kind == events::COUNTER {
            self.counter = Some(number);
        }
    }

    fn events(&mut self, thread: u32, words: &[u64]) {
        match self.buffers.push(thread, words) {
            Ok(false) => {}
            Ok(true) => {
                let ledgers = &mut self.ledgers;
                self.buffers.merge_oldest(&self.shapes, &mut |event| ledgers.add(event));
                ledgers.apply_batch();
            }
            Err(_) => {
                self.apply_until(u64::MAX);
                self.has_lost |= self.buffers.push(thread, words).is_err();
            }
        }
    }

    fn settle(&mut self, ticks: u64, notes: &mut Notes) {
        platform::recheck_slots();
        self.apply_until(ticks);
        self.settled = self.settled.max(ticks);
        self.tick_rate.observe(self.settled);
        let counter = self.counter;
        if let Some(counter) = counter {
            self.foreign_hooks.settle(self.settled, (counter, notes));
        }
        let resident = counter.and_then(|counter| self.curve.settle(self.settled, &mut self.ledgers, (counter, notes)));
        let is_due = !self.has_history && self.ledgers.applied != self.snapshot_events;
        // A snapshot can't be written before its kinds are declared: a request waits until then.
        let can_write = self.usage.iter().all(Option::is_some);
        let is_reached = can_write && resident.is_some_and(|bytes| self.dump_at.is_reached(bytes));
        if is_reached || can_write && platform::take_dump_request() {
            notes.request_dump();
        } else if is_due && Instant::now() >= self.next_snapshot {
            self.write_snapshot(ticks, notes);
        }
    }

    fn end(&mut self, ticks: u64, notes: &mut Notes) {
        self.apply_until(u64::MAX);
        self.settled = self.settled.max(ticks);
        self.tick_rate.observe(self.settled);
        if let Some(counter) = self.counter {
            self.curve.add(self.settled, &mut self.ledgers, (counter, notes));
            self.foreign_hooks.add(self.settled, (counter, notes));
        }
        self.write_snapshot(ticks, notes);
    }

    fn dump(&mut self, ticks: u64, notes: &mut Notes) {
        if let Some(counter) = self.counter {
            self.foreign_hooks.add_all(ticks.max(self.settled), (counter, notes));
        }
        self.write_snapshot(ticks, notes);
    }

    fn more(&mut self, notes: &mut Notes) -> bool {
        let Some(mut writing) = self.writing.take() else { return false };
        if writing.write_part(&self.ledgers, notes) {
            self.writing = Some(writing);
        } else {
            self.next_snapshot =
                Instant::now() + pause_after(self.snapshots).max(writing.began.elapsed() * SNAPSHOT_SHARE);
        }
        true
    }

    fn interval(&self) -> Duration {
        self.curve_every
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use stackweave_core::NoNames;
    use stackweave_recording::{Recorder, RecorderOptions};
    use stackweave_store::StackTable;
    use stackweave_testkit::folder::Folder;

    use super::*;
    use crate::event_kinds::MemoryKinds;

    static STACKS: StackTable = StackTable::new();

    /// Without a history in the file, the last of these is what a killed program leaves.
    #[test]
    fn recordings_without_a_history_write_snapshots_periodically() {
        for (mode, expected) in [(MemoryMode::History, [0, 0]), (MemoryMode::Aggregate, [1, 2])] {
            let folder = Folder::new();
            let recorder =
                Recorder::start(RecorderOptions::new(folder.file("out.swv")), &STACKS, Arc::new(NoNames)).unwrap();
            let kinds = MemoryKinds::register(&recorder, mode).unwrap();
            let mut ledgers = LedgerObserver::new(&MemoryOptions { mode, ..MemoryOptions::default() });
            ledgers.kind(kinds.free, &events::FREE);
            for (number, kind) in [
                (kinds.usage, events::MEMORY_USAGE),
                (kinds.sizes, events::MEMORY_SIZES),
                (kinds.total, events::MEMORY_TOTAL),
            ] {
                ledgers.kind(number, &kind);
            }
            let mut notes = Notes::default();
            let mut written = Vec::new();
            for ticks in [100, 200] {
                ledgers.next_snapshot = Instant::now() + SNAPSHOT_EVERY;
                ledgers.events(1, &[ticks << 8 | u64::from(kinds.free.get()), 0x10]);
                ledgers.settle(ticks + 1, &mut notes);
                assert_eq!(ledgers.snapshots, written.last().copied().unwrap_or(0), "not yet");
                ledgers.next_snapshot = Instant::now();
                ledgers.settle(ticks + 2, &mut notes);
                ledgers.next_snapshot = Instant::now();
                // Nothing was recorded in the meantime.
                ledgers.settle(ticks + 3, &mut notes);
                written.push(ledgers.snapshots);
            }
            assert_eq!(written, expected, "{mode:?}");
            ledgers.end(300, &mut notes);
            assert_eq!(ledgers.snapshots, expected[1] + 1);
        }
    }

    #[test]
    fn the_first_snapshots_are_written_early() {
        let times = (0..8).scan(Duration::ZERO, |time, snapshots| {
            *time += pause_after(snapshots);
            Some(time.as_millis())
        });
        assert_eq!(times.collect::<Vec<_>>(), [200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 30_000]);
    }

    #[test]
    fn a_threshold_triggers_once_each_time_it_is_reached() {
        let mut threshold = Threshold { bytes: 1000, is_armed: true };
        let sizes = [900, 999, 1000, 1001, 950, 1000, 899, 999, 1200, 1300];
        let reached: Vec<u64> = sizes.into_iter().filter(|bytes| threshold.is_reached(*bytes)).collect();
        assert_eq!(reached, [1000, 1200]);
        assert!(!Threshold { bytes: u64::MAX, is_armed: true }.is_reached(1 << 50));
    }

    #[test]
    fn the_tick_rate_is_measured_against_the_clock() {
        let mut rate = TickRate::default();
        assert_eq!(rate.duration(5), Duration::ZERO);
        let began = Instant::now();
        rate.first = Some((began, 1000));
        rate.last = Some((began + Duration::from_secs(2), 7000));
        assert_eq!(rate.duration(1500), Duration::from_millis(500));
    }
}

//! The ledgers of a process: one for its own memory, one for each device of a host.
//!
//! Hot file, on the writer's thread: allocates only for new devices, sites and labels.

use std::collections::HashMap;
use std::mem;
use std::time::Duration;

use stackweave_core::{EventKind, RawFrame, StackId};
use stackweave_heap::{Block, CallSite, CallSiteId, Figures, Ledger, LedgerOptions};
use stackweave_recording::events::HeapChange;

use crate::event_layout::LedgerFields;
use crate::merge::MergedEvent;
use crate::snapshot::{BlockOrigin, DeviceSnapshot, SnapshotRow};

/// Changes are applied in batches of this size, so that the processor prefetches the table entries that they need.
const BATCH: usize = 32;
/// Events of further devices are ignored.
const MAX_DEVICES: usize = 256;

/// Numbers for the words of labels; 0 is none.
#[derive(Debug)]
pub(crate) struct LabelNumbers {
    words: Vec<u64>,
    numbers: HashMap<u64, u32>,
}

impl Default for LabelNumbers {
    fn default() -> Self {
        Self { words: vec![0], numbers: HashMap::from([(0, 0)]) }
    }
}

impl LabelNumbers {
    pub(crate) fn number(&mut self, word: u64) -> u32 {
        let next = self.words.len() as u32;
        let number = *self.numbers.entry(word).or_insert(next);
        if number == next {
            self.words.push(word);
        }
        number
    }

    fn frame(&self, number: u32) -> Option<RawFrame> {
        let word = self.words.get(number as usize).copied().filter(|word| *word != 0)?;
        RawFrame::from_bits(word)
    }
}

/// A change of a ledger that is still to be applied.
#[derive(Clone, Copy, Debug)]
struct PendingChange {
    change: HeapChange,
    ledger: u32,
    thread: u32,
    ticks: u64,
    address: u64,
    size: u64,
    place: Option<CallSiteId>,
}

#[derive(Debug)]
pub(crate) struct DeviceLedger {
    pub(crate) device: i64,
    pub(crate) ledger: Ledger,
}

#[derive(Debug)]
pub(crate) struct DeviceLedgers {
    options: LedgerOptions,
    /// The process's own is the first.
    pub(crate) all: Vec<DeviceLedger>,
    pub(crate) labels: LabelNumbers,
    /// The tag of each thread, by the slot of its buffer.
    tags: Vec<u32>,
    batch: Vec<PendingChange>,
    /// The number of changes that were applied.
    pub(crate) applied: u64,
}

impl DeviceLedgers {
    pub(crate) fn new(options: LedgerOptions) -> Self {
        let own = DeviceLedger { device: EventKind::OWN_DEVICE, ledger: Ledger::new(options) };
        Self {
            options,
            all: vec![own],
            labels: LabelNumbers::default(),
            tags: Vec::new(),
            batch: Vec::with_capacity(BATCH),
            applied: 0,
        }
    }

    /// Adds an event. It is applied soon, at the latest by [`DeviceLedgers::apply_batch`].
    #[inline]
    pub(crate) fn add(&mut self, event: MergedEvent<'_>) {
        let Some(fields) = &event.shape.fields else { return };
        let LedgerFields { change, ref layout, .. } = *fields;
        if change == HeapChange::Tag {
            return self.set_tag(event.slot, layout.frame().word(event.words));
        }
        let Some(index) = self.ledger_of(layout.device(event.words)) else { return };
        let allocates = matches!(change, HeapChange::Allocate | HeapChange::Map);
        let place = allocates.then(|| self.place(index, fields, &event));
        let (address, size) = (layout.address().word(event.words), layout.size().word(event.words));
        let (thread, ticks) = (event.thread, event.ticks);
        let pending = PendingChange { change, ledger: index as u32, thread, ticks, address, size, place };
        let ledger = &self.all[index].ledger;
        if self.batch.is_empty() && !ledger.gains_by_prefetch() {
            self.applied += 1;
            return self.apply(pending);
        }
        ledger.prefetch(address);
        self.batch.push(pending);
        if self.batch.len() == BATCH {
            self.apply_batch();
        }
    }

    fn place(&mut self, index: usize, fields: &LedgerFields, event: &MergedEvent<'_>) -> CallSiteId {
        let stack = fields.layout.stack().word(event.words);
        let tag = self.tags.get(event.slot).copied().unwrap_or(0);
        let place = CallSite { stack: stack as u32, thread: event.thread, allocator: fields.allocator, tag };
        self.all[index].ledger.site(place)
    }

    #[cold]
    fn set_tag(&mut self, slot: usize, word: u64) {
        let number = self.labels.number(word);
        if self.tags.len() <= slot {
            self.tags.resize(slot + 1, 0);
        }
        self.tags[slot] = number;
    }

    #[inline]
    fn ledger_of(&mut self, device: i64) -> Option<usize> {
        if device == EventKind::OWN_DEVICE { Some(0) } else { self.ledger_of_device(device) }
    }

    fn ledger_of_device(&mut self, device: i64) -> Option<usize> {
        let known = self.all.iter().position(|known| known.device == device);
        known.or_else(|| {
            (self.all.len() < MAX_DEVICES).then(|| {
                self.all.push(DeviceLedger { device, ledger: Ledger::new(self.options) });
                self.all.len() - 1
            })
        })
    }

    /// Applies the changes of the batch.
    pub(crate) fn apply_batch(&mut self) {
        self.applied += self.batch.len() as u64;
        let mut batch = mem::take(&mut self.batch);
        for pending in batch.drain(..) {
            self.apply(pending);
        }
        self.batch = batch;
    }

    #[inline]
    fn apply(&mut self, pending: PendingChange) {
        let PendingChange { thread, ticks, address, size, .. } = pending;
        let ledger = &mut self.all[pending.ledger as usize].ledger;
        match (pending.change, pending.place) {
            (HeapChange::Allocate, Some(place)) => ledger.allocate(ticks, thread, address, size, place),
            (HeapChange::Map, Some(place)) => ledger.map(ticks, thread, address, size, place),
            (HeapChange::Free, _) => ledger.free(ticks, thread, address),
            (HeapChange::Unmap, _) => ledger.unmap(ticks, thread, address, size),
            (HeapChange::Keep, _) => ledger.keep(thread, address),
            (HeapChange::Tag | HeapChange::Allocate | HeapChange::Map, _) => {}
        }
    }

    /// Returns a snapshot of each ledger; `ago` converts ticks to the time that has passed since.
    pub(crate) fn device_snapshots(&self, ago: impl Fn(u64) -> Duration) -> Vec<DeviceSnapshot> {
        let snapshot = |of_device: &DeviceLedger| {
            let totals = of_device.ledger.totals();
            DeviceSnapshot {
                device: of_device.device,
                totals,
                peak_ago: ago(totals.peak_ticks),
                rows: of_device.ledger.sites().map(|(place, figures)| self.row(place, figures)).collect(),
                sizes: of_device.ledger.sizes().collect(),
            }
        };
        self.all.iter().map(snapshot).collect()
    }

    pub(crate) fn row(&self, place: CallSite, figures: Figures) -> SnapshotRow {
        SnapshotRow {
            stack: StackId::new(place.stack),
            allocator: self.labels.frame(place.allocator),
            tag: self.labels.frame(place.tag),
            thread: place.thread,
            figures,
        }
    }

    /// Returns the live block at this address. The process's own ledger is searched first.
    pub(crate) fn block(&self, address: u64) -> Option<BlockOrigin> {
        let find =
            |of_device: &DeviceLedger| of_device.ledger.block(address).map(|block| self.origin(of_device, block));
        self.all.iter().find_map(find)
    }

    pub(crate) fn live_blocks(&self) -> Vec<BlockOrigin> {
        self.blocks_of(&self.all).collect()
    }

    /// Returns the live blocks of devices only: the process's own may be very many.
    pub(crate) fn device_blocks(&self) -> impl Iterator<Item = BlockOrigin> {
        self.blocks_of(self.all.get(1..).unwrap_or_default())
    }

    fn blocks_of<'b>(&'b self, ledgers: &'b [DeviceLedger]) -> impl Iterator<Item = BlockOrigin> + 'b {
        ledgers
            .iter()
            .flat_map(move |of_device| of_device.ledger.blocks().map(move |block| self.origin(of_device, block)))
    }

    fn origin(&self, of_device: &DeviceLedger, block: Block) -> BlockOrigin {
        let place = of_device.ledger.site_of(block.site);
        BlockOrigin {
            address: block.address,
            size: block.size,
            device: of_device.device,
            stack: StackId::new(place.stack),
            allocator: self.labels.frame(place.allocator),
            tag: self.labels.frame(place.tag),
            thread: place.thread,
        }
    }

    pub(crate) fn bytes_used(&self) -> usize {
        let labels = self.labels.words.capacity() * 8 + self.labels.numbers.capacity() * 16;
        self.all.iter().map(|of_device| of_device.ledger.bytes_used()).sum::<usize>()
            + labels
            + self.tags.capacity() * 4
    }
}

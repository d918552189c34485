//! The ledgers of a process: one for its own memory, one for each device of a host.
//!
//! Hot file, on the writer's thread: allocates only for what is new.

use std::collections::HashMap;
use std::mem;
use std::time::Duration;

use stackweave_core::{EventKind, RawFrame, StackId};
use stackweave_heap::{Block, Figures, Ledger, LedgerOptions, Place, PlaceId};
use stackweave_recording::events::HeapChange;

use crate::event_layout::Fields;
use crate::merge::Taken;
use crate::snapshot::{BlockOrigin, DeviceSnapshot, UsageRow};

/// So many events are looked ahead: what they need is on its way from memory meanwhile.
const BATCH: usize = 32;
/// Events of more devices are not kept.
const MOST_DEVICES: usize = 256;

/// Words for names, as numbers; 0 is none.
#[derive(Debug)]
pub(crate) struct Labels {
    words: Vec<u64>,
    numbers: HashMap<u64, u32>,
}

impl Default for Labels {
    fn default() -> Self {
        Self { words: vec![0], numbers: HashMap::from([(0, 0)]) }
    }
}

impl Labels {
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

/// An event that is about to be entered.
#[derive(Clone, Copy, Debug)]
struct Entry {
    change: HeapChange,
    book: u32,
    thread: u32,
    ticks: u64,
    address: u64,
    size: u64,
    place: Option<PlaceId>,
}

#[derive(Debug)]
pub(crate) struct Book {
    pub(crate) device: i64,
    pub(crate) ledger: Ledger,
}

#[derive(Debug)]
pub(crate) struct Books {
    options: LedgerOptions,
    /// The process's own first.
    pub(crate) all: Vec<Book>,
    pub(crate) labels: Labels,
    /// The tag of each thread, by its slot.
    tags: Vec<u32>,
    batch: Vec<Entry>,
    /// How many events were entered.
    pub(crate) entered: u64,
}

impl Books {
    pub(crate) fn new(options: LedgerOptions) -> Self {
        let own = Book { device: EventKind::OWN_DEVICE, ledger: Ledger::new(options) };
        Self {
            options,
            all: vec![own],
            labels: Labels::default(),
            tags: Vec::new(),
            batch: Vec::with_capacity(BATCH),
            entered: 0,
        }
    }

    /// Takes an event in. It is entered soon, at the latest by [`Books::enter`].
    #[inline]
    pub(crate) fn take(&mut self, event: Taken<'_>) {
        let Some(fields) = &event.shape.fields else { return };
        let Fields { change, ref layout, .. } = *fields;
        if change == HeapChange::Tag {
            return self.set_tag(event.slot, layout.frame().word(event.words));
        }
        let Some(book) = self.book_of(layout.device(event.words)) else { return };
        let allocates = matches!(change, HeapChange::Allocate | HeapChange::Map);
        let place = allocates.then(|| self.place(book, fields, &event));
        let (address, size) = (layout.address().word(event.words), layout.size().word(event.words));
        let (book, thread, ticks) = (book as u32, event.thread, event.ticks);
        let entry = Entry { change, book, thread, ticks, address, size, place };
        let ledger = &self.all[book as usize].ledger;
        if self.batch.is_empty() && !ledger.gains_by_prefetch() {
            self.entered += 1;
            return self.enter_one(entry);
        }
        ledger.prefetch(address);
        self.batch.push(entry);
        if self.batch.len() == BATCH {
            self.enter();
        }
    }

    fn place(&mut self, book: usize, fields: &Fields, event: &Taken<'_>) -> PlaceId {
        let stack = fields.layout.stack().word(event.words);
        let tag = self.tags.get(event.slot).copied().unwrap_or(0);
        let place = Place { stack: stack as u32, thread: event.thread, allocator: fields.allocator, tag };
        self.all[book].ledger.place(place)
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
    fn book_of(&mut self, device: i64) -> Option<usize> {
        if device == EventKind::OWN_DEVICE { Some(0) } else { self.book_of_device(device) }
    }

    fn book_of_device(&mut self, device: i64) -> Option<usize> {
        let known = self.all.iter().position(|book| book.device == device);
        known.or_else(|| {
            (self.all.len() < MOST_DEVICES).then(|| {
                self.all.push(Book { device, ledger: Ledger::new(self.options) });
                self.all.len() - 1
            })
        })
    }

    /// Enters what was taken in.
    pub(crate) fn enter(&mut self) {
        self.entered += self.batch.len() as u64;
        let mut batch = mem::take(&mut self.batch);
        for entry in batch.drain(..) {
            self.enter_one(entry);
        }
        self.batch = batch;
    }

    #[inline]
    fn enter_one(&mut self, entry: Entry) {
        let Entry { thread, ticks, address, size, .. } = entry;
        let ledger = &mut self.all[entry.book as usize].ledger;
        match (entry.change, entry.place) {
            (HeapChange::Allocate, Some(place)) => ledger.allocate(ticks, thread, address, size, place),
            (HeapChange::Map, Some(place)) => ledger.map(ticks, thread, address, size, place),
            (HeapChange::Free, _) => ledger.free(ticks, thread, address),
            (HeapChange::Unmap, _) => ledger.unmap(ticks, thread, address, size),
            (HeapChange::Keep, _) => ledger.keep(thread, address),
            (HeapChange::Tag | HeapChange::Allocate | HeapChange::Map, _) => {}
        }
    }

    /// What each knows now; `ago` says how long ago a time was.
    pub(crate) fn device_snapshots(&self, ago: impl Fn(u64) -> Duration) -> Vec<DeviceSnapshot> {
        let snapshot = |book: &Book| {
            let totals = book.ledger.totals();
            DeviceSnapshot {
                device: book.device,
                totals,
                peak_ago: ago(totals.peak_ticks),
                rows: book.ledger.places().map(|(place, figures)| self.row(place, figures)).collect(),
                sizes: book.ledger.sizes().collect(),
            }
        };
        self.all.iter().map(snapshot).collect()
    }

    pub(crate) fn row(&self, place: Place, figures: Figures) -> UsageRow {
        UsageRow {
            stack: StackId::new(place.stack),
            allocator: self.labels.frame(place.allocator),
            tag: self.labels.frame(place.tag),
            thread: place.thread,
            figures,
        }
    }

    /// The live block at this address, of the process first.
    pub(crate) fn block(&self, address: u64) -> Option<BlockOrigin> {
        self.all.iter().find_map(|book| book.ledger.block(address).map(|block| self.origin(book, block)))
    }

    pub(crate) fn live_blocks(&self) -> Vec<BlockOrigin> {
        self.blocks_of(&self.all).collect()
    }

    /// Those of devices: the process's own may be very many.
    pub(crate) fn device_blocks(&self) -> impl Iterator<Item = BlockOrigin> {
        self.blocks_of(self.all.get(1..).unwrap_or_default())
    }

    fn blocks_of<'b>(&'b self, books: &'b [Book]) -> impl Iterator<Item = BlockOrigin> + 'b {
        books.iter().flat_map(move |book| book.ledger.blocks().map(move |block| self.origin(book, block)))
    }

    fn origin(&self, book: &Book, block: Block) -> BlockOrigin {
        let place = book.ledger.place_of(block.place);
        BlockOrigin {
            address: block.address,
            size: block.size,
            device: book.device,
            stack: StackId::new(place.stack),
            allocator: self.labels.frame(place.allocator),
            tag: self.labels.frame(place.tag),
            thread: place.thread,
        }
    }

    pub(crate) fn bytes_used(&self) -> usize {
        let labels = self.labels.words.capacity() * 8 + self.labels.numbers.capacity() * 16;
        self.all.iter().map(|book| book.ledger.bytes_used()).sum::<usize>() + labels + self.tags.capacity() * 4
    }
}

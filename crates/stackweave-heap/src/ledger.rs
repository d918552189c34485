//! What is live, and what was at the peak.
//!
//! Hot file: allocates only for what is new, a place, a thread, a mapping, or a table that is full; no lock. Where there is no
//! memory it goes on counting, and says that it is incomplete.

use std::collections::HashMap;

use crate::account::Account;
use crate::block_table::{BlockTable, Entry};
use crate::figures::{Figures, Place, Totals};
use crate::high_water::HighWater;
use crate::out_of_order::Early;
use crate::places::{PlaceId, Places};
use crate::ranges::{Cut, Range, Ranges};
use crate::recent::{Freed, Recent};
use crate::sampling::{Scale, Weight};

/// How a ledger counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerOptions {
    /// A block is temporary if its thread has allocated at most so many others when it is freed. At most 1,023.
    pub temporary: u32,
    /// If allocations are a sample, one byte in how many was hit. Then all figures are estimates of all allocations.
    pub sample_every: Option<u64>,
}

impl Default for LedgerOptions {
    fn default() -> Self {
        Self { temporary: 1, sample_every: None }
    }
}

/// A block that is live, or what is left of a mapping in one piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Where it begins.
    pub address: u64,
    /// Its bytes, as the program requested them.
    pub size: u64,
    /// Where it was allocated.
    pub place: PlaceId,
}

/// One class for nothing, one for each power of two, and one for what is greater.
const CLASSES: usize = 66;

/// What is live, and what was at the peak.
///
/// A [`Place`]'s thread must be the one that allocates, or else no block of it is seen to be temporary.
#[derive(Debug)]
pub struct Ledger {
    scale: Scale,
    sum: HighWater,
    places: Places,
    classes: [Account; CLASSES],
    blocks: BlockTable,
    ranges: Ranges,
    /// How many mappings there were.
    mappings: u64,
    recent: Recent,
    /// What each thread unmapped last, and whether that was temporary.
    unmapped: HashMap<u32, Vec<(Range, bool)>>,
    /// The time of the latest event.
    now: u64,
    early_frees: Early,
    early_allocations: Early,
    frees: u64,
    unknown_frees: u64,
    replaced: u64,
    is_incomplete: bool,
}

impl Ledger {
    /// Returns a ledger where nothing has happened.
    pub fn new(options: LedgerOptions) -> Self {
        Self {
            scale: Scale::new(options.sample_every),
            sum: HighWater::default(),
            places: Places::new(),
            classes: [Account::default(); CLASSES],
            blocks: BlockTable::default(),
            ranges: Ranges::default(),
            mappings: 0,
            recent: Recent::new(options.temporary),
            unmapped: HashMap::new(),
            now: 0,
            early_frees: Early::default(),
            early_allocations: Early::default(),
            frees: 0,
            unknown_frees: 0,
            replaced: 0,
            is_incomplete: false,
        }
    }

    /// Returns the number of a place, a new one if it is new.
    #[inline]
    pub fn place(&mut self, place: Place) -> PlaceId {
        self.places.intern(place)
    }

    /// Returns the place that has this number.
    pub fn place_of(&self, place: PlaceId) -> Place {
        self.places.get(place)
    }

    /// Enters that a thread allocates a block.
    #[inline]
    #[expect(clippy::too_many_arguments, reason = "the words of an event, as they come")]
    pub fn allocate(&mut self, ticks: u64, thread: u32, address: u64, size: u64, place: PlaceId) {
        let weight = self.scale.weight(size);
        if self.is_late(ticks) && self.early_frees.take_after(ticks, address) {
            self.count(size, place, weight);
            self.unknown_frees -= 1;
            self.frees += 1;
            return;
        }
        self.recent.allocated(thread, address);
        match self.blocks.insert(address, Entry { size, place }) {
            Ok(None) => {}
            Ok(Some(old)) => {
                self.replaced += 1;
                self.early_allocations.push(ticks, address);
                self.lose(old.size, old.place, self.scale.weight(old.size));
            }
            Err(_) => {
                self.is_incomplete = true;
                self.count(size, place, weight);
                return;
            }
        }
        self.gain_counted(ticks, size, place, weight);
    }

    /// Enters that a thread frees a block.
    #[inline]
    pub fn free(&mut self, ticks: u64, thread: u32, address: u64) {
        if self.is_late(ticks) && self.early_allocations.take_after(ticks, address) {
            self.replaced -= 1;
            self.frees += 1;
            return;
        }
        let Some(entry) = self.blocks.remove(address) else {
            self.unknown_frees += 1;
            self.early_frees.push(ticks, address);
            return self.recent.freed(thread, address, Freed::Unknown);
        };
        let weight = self.scale.weight(entry.size);
        let was_temporary = self.recent.is_recent(self.places.get(entry.place).thread, address);
        self.recent.freed(thread, address, Freed::Block { entry, was_temporary });
        self.frees += 1;
        self.lose(entry.size, entry.place, weight);
        if was_temporary {
            self.places.update(entry.place, |account| account.count_temporary(weight));
            self.classes[class_of(entry.size)].count_temporary(weight);
        }
    }

    /// Enters that a thread maps addresses, in the place of what was mapped there.
    #[expect(clippy::too_many_arguments, reason = "the words of an event, as they come")]
    pub fn map(&mut self, ticks: u64, thread: u32, address: u64, size: u64, place: PlaceId) {
        self.is_late(ticks);
        for cut in self.ranges.cut(address, size, self.scale) {
            self.replaced += 1;
            self.lose_cut(&cut);
        }
        let weight = self.scale.weight(size);
        self.recent.allocated(thread, address);
        if size != 0 && self.has_memory() {
            self.mappings += 1;
            let (end, mapping) = (address.saturating_add(size), self.mappings);
            self.ranges.insert(Range { start: address, end, size, place, mapping, weight });
            self.gain_counted(ticks, size, place, weight);
        } else {
            self.count(size, place, weight);
        }
    }

    /// Enters that a thread unmaps addresses: mappings, or parts of them.
    pub fn unmap(&mut self, ticks: u64, thread: u32, address: u64, size: u64) {
        self.is_late(ticks);
        let cuts = self.ranges.cut(address, size, self.scale);
        if cuts.is_empty() {
            self.unknown_frees += 1;
            return self.recent.freed(thread, address, Freed::Unknown);
        }
        self.frees += 1;
        self.recent.freed(thread, address, Freed::Range);
        let gone = cuts.iter().map(|cut| (cut.gone, self.lose_and_judge(cut))).collect();
        self.unmapped.insert(thread, gone);
    }

    /// Returns whether what was unmapped was a whole mapping, and temporary.
    fn lose_and_judge(&mut self, cut: &Cut) -> bool {
        self.lose_cut(cut);
        let range = cut.before;
        let is_whole = range.end - range.start == range.size && cut.left == [None; 2];
        let is_temporary = is_whole && self.recent.is_recent(self.place_of(range.place).thread, range.start);
        if is_temporary {
            self.places.update(range.place, |account| account.count_temporary(range.weight));
            self.classes[class_of(range.size)].count_temporary(range.weight);
        }
        is_temporary
    }

    /// Enters that what the thread freed last, at this address, was not freed after all.
    pub fn keep(&mut self, thread: u32, address: u64) {
        match self.recent.take_freed(thread, address) {
            Freed::Nothing => {}
            Freed::Unknown => {
                self.unknown_frees -= 1;
                self.early_frees.take_after(0, address);
            }
            Freed::Block { entry, was_temporary } => self.keep_block(address, entry, was_temporary),
            Freed::Range => {
                self.frees -= 1;
                for (piece, was_temporary) in self.unmapped.remove(&thread).into_iter().flatten() {
                    self.keep_range(piece, was_temporary);
                }
            }
        }
    }

    fn keep_block(&mut self, address: u64, entry: Entry, was_temporary: bool) {
        if self.blocks.get(address).is_some() || self.blocks.insert(address, entry).is_err() {
            return;
        }
        let weight = self.scale.weight(entry.size);
        self.frees -= 1;
        self.gain(self.now, entry.size, entry.place, weight);
        if was_temporary {
            self.places.update(entry.place, |account| account.uncount_temporary(weight));
            self.classes[class_of(entry.size)].uncount_temporary(weight);
        }
    }

    fn keep_range(&mut self, piece: Range, was_temporary: bool) {
        let Some((joined, now)) = self.ranges.restore(piece, self.scale) else { return };
        for other in joined.into_iter().flatten() {
            self.lose(other.size, other.place, other.weight);
        }
        self.gain(self.now, now.size, now.place, now.weight);
        if was_temporary {
            self.places.update(now.place, |account| account.uncount_temporary(now.weight));
            self.classes[class_of(now.size)].uncount_temporary(now.weight);
        }
    }

    /// Prefetches what will be needed to enter an event of this block, some events before.
    #[inline]
    pub fn prefetch(&self, address: u64) {
        self.blocks.prefetch(address);
    }

    /// Returns whether that helps: not while all blocks are in the processor's caches.
    #[inline]
    pub fn gains_by_prefetch(&self) -> bool {
        !self.blocks.is_small()
    }

    /// Returns whether an event is earlier than one that was entered already.
    #[inline]
    fn is_late(&mut self, ticks: u64) -> bool {
        let is_late = ticks < self.now;
        self.now = self.now.max(ticks);
        is_late
    }

    /// Returns whether a mapping can be kept. The map of them has no fallible insert, so this reserves as much as it would at most.
    fn has_memory(&mut self) -> bool {
        let has_memory = Vec::<u8>::new().try_reserve_exact(4096).is_ok();
        self.is_incomplete |= !has_memory;
        has_memory
    }

    #[inline]
    fn count(&mut self, size: u64, place: PlaceId, weight: Weight) {
        self.places.update(place, |account| account.count(weight));
        self.classes[class_of(size)].count(weight);
    }

    /// Something is live from now on.
    #[inline]
    fn gain(&mut self, ticks: u64, size: u64, place: PlaceId, weight: Weight) {
        let rises = self.sum.will_rise(weight.bytes);
        let sum = &self.sum;
        let change = |account: &mut Account| {
            account.keep_peak(sum);
            account.add((weight.blocks, weight.bytes));
        };
        self.places.update(place, change);
        change(&mut self.classes[class_of(size)]);
        self.sum.add(ticks, (weight.blocks, weight.bytes), rises);
    }

    /// The same of what was allocated just now: both at once, since nothing is done more often.
    #[inline]
    fn gain_counted(&mut self, ticks: u64, size: u64, place: PlaceId, weight: Weight) {
        let rises = self.sum.will_rise(weight.bytes);
        let sum = &self.sum;
        let change = |account: &mut Account| {
            account.keep_peak(sum);
            account.count(weight);
            account.add((weight.blocks, weight.bytes));
        };
        self.places.update(place, change);
        change(&mut self.classes[class_of(size)]);
        self.sum.add(ticks, (weight.blocks, weight.bytes), rises);
    }

    /// Something is not live any more.
    #[inline]
    fn lose(&mut self, size: u64, place: PlaceId, weight: Weight) {
        self.sum.leave_peak();
        let sum = &self.sum;
        let change = |account: &mut Account| {
            account.keep_peak(sum);
            account.subtract((weight.blocks, weight.bytes));
        };
        self.places.update(place, change);
        change(&mut self.classes[class_of(size)]);
        self.sum.subtract((weight.blocks, weight.bytes));
    }

    fn lose_cut(&mut self, cut: &Cut) {
        self.lose(cut.before.size, cut.before.place, cut.before.weight);
        for piece in cut.left.iter().flatten() {
            let weight = (piece.weight.blocks, piece.weight.bytes);
            self.places.update(piece.place, |account| account.add(weight));
            self.classes[class_of(piece.size)].add(weight);
            self.sum.add(self.now, weight, false);
        }
    }

    /// Returns the live block that begins at this address, or the piece of a mapping that holds it.
    pub fn block(&self, address: u64) -> Option<Block> {
        let found = self.blocks.get(address).map(|entry| Block { address, size: entry.size, place: entry.place });
        found.or_else(|| self.ranges.containing(address).map(|piece| block_of(&piece)))
    }

    /// Returns all that is live, in no order.
    pub fn blocks(&self) -> impl Iterator<Item = Block> {
        let blocks = self.blocks.iter().map(|(address, entry)| Block { address, size: entry.size, place: entry.place });
        blocks.chain(self.ranges.iter().map(block_of))
    }

    /// Returns the places that have allocated, in the order in which they came.
    pub fn places(&self) -> impl Iterator<Item = (Place, Figures)> {
        self.places_from(0).map(|(_, place, figures)| (place, figures))
    }

    /// Returns the places from this number on that have allocated, with their numbers.
    pub fn places_from(&self, first: usize) -> impl Iterator<Item = (usize, Place, Figures)> {
        let records = self.places.iter().enumerate().skip(first);
        let places = records.map(|(number, (place, account))| (number, place, account.figures(&self.sum, self.scale)));
        places.filter(|(_, _, figures)| *figures != Figures::default())
    }

    /// Returns the size classes that have allocations, smallest first: blocks of more than half of that many bytes, and at most so
    /// many.
    pub fn sizes(&self) -> impl Iterator<Item = (u64, Figures)> {
        let classes = self.classes.iter().map(|account| account.figures(&self.sum, self.scale));
        let powers = (0..64).map(|bit| 1 << bit);
        let most = [0].into_iter().chain(powers).chain([u64::MAX]);
        most.zip(classes).filter(|(_, figures)| *figures != Figures::default())
    }

    /// Returns the sums over all places.
    pub fn totals(&self) -> Totals {
        let mut all = Account::default();
        for class in &self.classes {
            all.add_counts(class);
        }
        let whole = |sum| self.scale.whole(sum);
        let figures = Figures {
            live_blocks: whole(self.sum.live_blocks),
            live_bytes: whole(self.sum.live_bytes),
            peak_blocks: whole(self.sum.peak_blocks),
            peak_bytes: whole(self.sum.peak_bytes),
            ..all.figures(&self.sum, self.scale)
        };
        Totals {
            figures,
            peak_ticks: self.sum.peak_ticks,
            frees: self.frees,
            unknown_frees: self.unknown_frees,
            replaced: self.replaced,
        }
    }

    /// Makes what is live now the peak, reached at this time, whatever was before: for a report of a part of the events.
    pub fn restart_peak(&mut self, ticks: u64) {
        self.sum.restart_peak(ticks);
    }

    /// Returns the bytes that are live.
    #[inline]
    pub fn live_bytes(&self) -> u64 {
        self.scale.whole(self.sum.live_bytes)
    }

    /// Returns when most bytes were live since the last call, and how many.
    pub fn take_highest(&mut self) -> (u64, u64) {
        let highest = (self.sum.recent_ticks, self.scale.whole(self.sum.recent_bytes));
        (self.sum.recent_ticks, self.sum.recent_bytes) = (self.now, self.sum.live_bytes);
        highest
    }

    /// Returns whether some blocks or places are not known one by one, for want of memory. They are counted, but are not live.
    pub fn is_incomplete(&self) -> bool {
        self.is_incomplete || self.places.is_incomplete
    }

    /// Returns the memory of the ledger itself.
    pub fn bytes_used(&self) -> usize {
        let early = self.early_frees.bytes_used() + self.early_allocations.bytes_used();
        let unmapped = self.unmapped.values().map(|gone| size_of_val(&**gone) + 32).sum::<usize>();
        let tables = self.blocks.bytes_used() + self.ranges.bytes_used() + self.places.bytes_used();
        size_of::<Self>() + tables + self.recent.bytes_used() + early + unmapped
    }
}

fn block_of(piece: &Range) -> Block {
    Block { address: piece.start, size: piece.end - piece.start, place: piece.place }
}

/// Returns the number of a block's size class.
#[inline]
fn class_of(size: u64) -> usize {
    if size == 0 { 0 } else { (u64::BITS - (size - 1).leading_zeros()) as usize + 1 }
}

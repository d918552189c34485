//! The ledger of live memory, with the memory at the peak.
//!
//! Hot file: allocates only for a new call site, thread or mapping, or for a table that is full; no lock. If memory
//! can't be allocated, it continues to count, and reports that it is incomplete.

use std::collections::HashMap;

use crate::account::Account;
use crate::block_table::{BlockTable, Entry};
use crate::call_sites::{CallSiteId, CallSites};
use crate::figures::{CallSite, Figures, Totals};
use crate::high_water::HighWater;
use crate::out_of_order::EarlyEvents;
use crate::ranges::{Cut, MappedRange, Ranges};
use crate::recent::{Freed, Recent};
use crate::sampling::{Scale, Weight};

/// The counting options of a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerOptions {
    /// A block is temporary if its thread has allocated at most this many others when it is freed. At most 1,023.
    pub temporary: u32,
    /// For sampled allocations, one byte in this many was sampled on average. All figures are then estimates.
    pub sample_every: Option<u64>,
}

impl Default for LedgerOptions {
    fn default() -> Self {
        Self { temporary: 1, sample_every: None }
    }
}

/// A live block, or a contiguous part of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The start address.
    pub address: u64,
    /// The size in bytes, as requested by the program.
    pub size: u64,
    /// The call site of the allocation.
    pub site: CallSiteId,
}

/// One class for size 0, one for each power of two, and one for greater sizes.
const CLASSES: usize = 66;

/// The ledger of live memory, with the memory at the peak.
///
/// The thread of a [`CallSite`] must be the one that allocates; otherwise none of its blocks are temporary.
#[derive(Debug)]
pub struct Ledger {
    scale: Scale,
    sum: HighWater,
    sites: CallSites,
    classes: [Account; CLASSES],
    blocks: BlockTable,
    ranges: Ranges,
    /// The number of mappings so far.
    mappings: u64,
    recent: Recent,
    /// The ranges that each thread unmapped last, and whether they were temporary.
    unmapped: HashMap<u32, Vec<(MappedRange, bool)>>,
    /// The time of the latest event.
    now: u64,
    early_frees: EarlyEvents,
    early_allocations: EarlyEvents,
    frees: u64,
    unknown_frees: u64,
    replaced: u64,
    is_incomplete: bool,
}

impl Ledger {
    /// Creates an empty ledger.
    pub fn new(options: LedgerOptions) -> Self {
        Self {
            scale: Scale::new(options.sample_every),
            sum: HighWater::default(),
            sites: CallSites::new(),
            classes: [Account::default(); CLASSES],
            blocks: BlockTable::default(),
            ranges: Ranges::default(),
            mappings: 0,
            recent: Recent::new(options.temporary),
            unmapped: HashMap::new(),
            now: 0,
            early_frees: EarlyEvents::default(),
            early_allocations: EarlyEvents::default(),
            frees: 0,
            unknown_frees: 0,
            replaced: 0,
            is_incomplete: false,
        }
    }

    /// Returns the number of a call site; a new one gets a number.
    #[inline]
    pub fn site(&mut self, site: CallSite) -> CallSiteId {
        self.sites.intern(site)
    }

    /// Returns the call site with this number.
    pub fn site_of(&self, site: CallSiteId) -> CallSite {
        self.sites.get(site)
    }

    /// Records that a thread allocates a block.
    #[inline]
    #[expect(clippy::too_many_arguments, reason = "the fields of an event")]
    pub fn allocate(&mut self, ticks: u64, thread: u32, address: u64, size: u64, site: CallSiteId) {
        let weight = self.scale.weight(size);
        if self.is_late(ticks) && self.early_frees.take_after(ticks, address) {
            self.count(size, site, weight);
            self.unknown_frees -= 1;
            self.frees += 1;
            return;
        }
        self.recent.allocated(thread, address);
        match self.blocks.insert(address, Entry { size, site }) {
            Ok(None) => {}
            Ok(Some(old)) => {
                self.replaced += 1;
                self.early_allocations.push(ticks, address);
                self.lose(old.size, old.site, self.scale.weight(old.size));
            }
            Err(_) => {
                self.is_incomplete = true;
                self.count(size, site, weight);
                return;
            }
        }
        self.gain_counted(ticks, size, site, weight);
    }

    /// Records that a thread frees a block.
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
        let was_temporary = self.recent.is_recent(self.sites.get(entry.site).thread, address);
        self.recent.freed(thread, address, Freed::Block { entry, was_temporary });
        self.frees += 1;
        self.lose(entry.size, entry.site, weight);
        if was_temporary {
            self.sites.update(entry.site, |account| account.count_temporary(weight));
            self.classes[class_of(entry.size)].count_temporary(weight);
        }
    }

    /// Records that a thread maps addresses, and replaces earlier mappings there.
    #[expect(clippy::too_many_arguments, reason = "the fields of an event")]
    pub fn map(&mut self, ticks: u64, thread: u32, address: u64, size: u64, site: CallSiteId) {
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
            self.ranges.insert(MappedRange { start: address, end, size, site, mapping, weight });
            self.gain_counted(ticks, size, site, weight);
        } else {
            self.count(size, site, weight);
        }
    }

    /// Records that a thread unmaps addresses: mappings, or parts of them.
    pub fn unmap(&mut self, ticks: u64, thread: u32, address: u64, size: u64) {
        self.is_late(ticks);
        let cuts = self.ranges.cut(address, size, self.scale);
        if cuts.is_empty() {
            self.unknown_frees += 1;
            return self.recent.freed(thread, address, Freed::Unknown);
        }
        self.frees += 1;
        self.recent.freed(thread, address, Freed::MappedRange);
        let gone = cuts.iter().map(|cut| (cut.gone, self.lose_and_judge(cut))).collect();
        self.unmapped.insert(thread, gone);
    }

    /// Removes an unmapped part. Returns whether it was a whole mapping, and temporary.
    fn lose_and_judge(&mut self, cut: &Cut) -> bool {
        self.lose_cut(cut);
        let range = cut.before;
        let is_whole = range.end - range.start == range.size && cut.left == [None; 2];
        let is_temporary = is_whole && self.recent.is_recent(self.site_of(range.site).thread, range.start);
        if is_temporary {
            self.sites.update(range.site, |account| account.count_temporary(range.weight));
            self.classes[class_of(range.size)].count_temporary(range.weight);
        }
        is_temporary
    }

    /// Records that the last free of the thread, at this address, has failed.
    pub fn keep(&mut self, thread: u32, address: u64) {
        match self.recent.take_freed(thread, address) {
            Freed::Nothing => {}
            Freed::Unknown => {
                self.unknown_frees -= 1;
                self.early_frees.take_after(0, address);
            }
            Freed::Block { entry, was_temporary } => self.keep_block(address, entry, was_temporary),
            Freed::MappedRange => {
                self.frees -= 1;
                for (part, was_temporary) in self.unmapped.remove(&thread).into_iter().flatten() {
                    self.keep_range(part, was_temporary);
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
        self.gain(self.now, entry.size, entry.site, weight);
        if was_temporary {
            self.sites.update(entry.site, |account| account.uncount_temporary(weight));
            self.classes[class_of(entry.size)].uncount_temporary(weight);
        }
    }

    fn keep_range(&mut self, part: MappedRange, was_temporary: bool) {
        let Some((joined, now)) = self.ranges.restore(part, self.scale) else { return };
        for other in joined.into_iter().flatten() {
            self.lose(other.size, other.site, other.weight);
        }
        self.gain(self.now, now.size, now.site, now.weight);
        if was_temporary {
            self.sites.update(now.site, |account| account.uncount_temporary(now.weight));
            self.classes[class_of(now.size)].uncount_temporary(now.weight);
        }
    }

    /// Prefetches the data of a block, some events before they are needed.
    #[inline]
    pub fn prefetch(&self, address: u64) {
        self.blocks.prefetch(address);
    }

    /// Returns whether prefetching helps: not while all blocks are in the processor's caches.
    #[inline]
    pub fn gains_by_prefetch(&self) -> bool {
        !self.blocks.is_small()
    }

    /// Returns whether an event is earlier than one that was recorded before.
    #[inline]
    fn is_late(&mut self, ticks: u64) -> bool {
        let is_late = ticks < self.now;
        self.now = self.now.max(ticks);
        is_late
    }

    /// Returns whether a mapping can be stored. The map has no fallible insert, so this reserves as much memory as it
    /// needs at most.
    fn has_memory(&mut self) -> bool {
        let has_memory = Vec::<u8>::new().try_reserve_exact(4096).is_ok();
        self.is_incomplete |= !has_memory;
        has_memory
    }

    #[inline]
    fn count(&mut self, size: u64, site: CallSiteId, weight: Weight) {
        self.sites.update(site, |account| account.count(weight));
        self.classes[class_of(size)].count(weight);
    }

    /// Adds live memory.
    #[inline]
    fn gain(&mut self, ticks: u64, size: u64, site: CallSiteId, weight: Weight) {
        let rises = self.sum.will_rise(weight.bytes);
        let sum = &self.sum;
        let change = |account: &mut Account| {
            account.keep_peak(sum);
            account.add((weight.blocks, weight.bytes));
        };
        self.sites.update(site, change);
        change(&mut self.classes[class_of(size)]);
        self.sum.add(ticks, (weight.blocks, weight.bytes), rises);
    }

    /// Adds live memory and counts its allocation, at once because this is the most frequent change.
    #[inline]
    fn gain_counted(&mut self, ticks: u64, size: u64, site: CallSiteId, weight: Weight) {
        let rises = self.sum.will_rise(weight.bytes);
        let sum = &self.sum;
        let change = |account: &mut Account| {
            account.keep_peak(sum);
            account.count(weight);
            account.add((weight.blocks, weight.bytes));
        };
        self.sites.update(site, change);
        change(&mut self.classes[class_of(size)]);
        self.sum.add(ticks, (weight.blocks, weight.bytes), rises);
    }

    /// Removes live memory.
    #[inline]
    fn lose(&mut self, size: u64, site: CallSiteId, weight: Weight) {
        self.sum.leave_peak();
        let sum = &self.sum;
        let change = |account: &mut Account| {
            account.keep_peak(sum);
            account.subtract((weight.blocks, weight.bytes));
        };
        self.sites.update(site, change);
        change(&mut self.classes[class_of(size)]);
        self.sum.subtract((weight.blocks, weight.bytes));
    }

    fn lose_cut(&mut self, cut: &Cut) {
        self.lose(cut.before.size, cut.before.site, cut.before.weight);
        for part in cut.left.iter().flatten() {
            let weight = (part.weight.blocks, part.weight.bytes);
            self.sites.update(part.site, |account| account.add(weight));
            self.classes[class_of(part.size)].add(weight);
            self.sum.add(self.now, weight, false);
        }
    }

    /// Returns the live block that begins at this address, or the part of a mapping that contains it.
    pub fn block(&self, address: u64) -> Option<Block> {
        let found = self.blocks.get(address).map(|entry| Block { address, size: entry.size, site: entry.site });
        found.or_else(|| self.ranges.containing(address).map(|part| block_of(&part)))
    }

    /// Returns all live blocks, unsorted.
    pub fn blocks(&self) -> impl Iterator<Item = Block> {
        let blocks = self.blocks.iter().map(|(address, entry)| Block { address, size: entry.size, site: entry.site });
        blocks.chain(self.ranges.iter().map(block_of))
    }

    /// Returns the call sites that have allocated, in the order of their first allocation.
    pub fn sites(&self) -> impl Iterator<Item = (CallSite, Figures)> {
        self.sites_from(0).map(|(_, site, figures)| (site, figures))
    }

    /// Returns the call sites from this number on that have allocated, with their numbers.
    pub fn sites_from(&self, first: usize) -> impl Iterator<Item = (usize, CallSite, Figures)> {
        let records = self.sites.iter().enumerate().skip(first);
        let sites = records.map(|(number, (site, account))| (number, site, account.figures(&self.sum, self.scale)));
        sites.filter(|(_, _, figures)| *figures != Figures::default())
    }

    /// Returns the size classes with allocations, smallest first: each is for blocks up to its size, and larger than
    /// half of it.
    pub fn sizes(&self) -> impl Iterator<Item = (u64, Figures)> {
        let classes = self.classes.iter().map(|account| account.figures(&self.sum, self.scale));
        let powers = (0..64).map(|bit| 1 << bit);
        let most = [0].into_iter().chain(powers).chain([u64::MAX]);
        most.zip(classes).filter(|(_, figures)| *figures != Figures::default())
    }

    /// Returns the sums over all call sites.
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

    /// Makes the live memory the peak, reached at this time: for a report of a time range.
    pub fn restart_peak(&mut self, ticks: u64) {
        self.sum.restart_peak(ticks);
    }

    /// Returns the bytes that are live.
    #[inline]
    pub fn live_bytes(&self) -> u64 {
        self.scale.whole(self.sum.live_bytes)
    }

    /// Returns the time and the value of the highest live bytes since the last call.
    pub fn take_highest(&mut self) -> (u64, u64) {
        let highest = (self.sum.recent_ticks, self.scale.whole(self.sum.recent_bytes));
        (self.sum.recent_ticks, self.sum.recent_bytes) = (self.now, self.sum.live_bytes);
        highest
    }

    /// Returns whether some blocks or call sites could not be stored, for lack of memory. They are counted, but are not
    /// live.
    pub fn is_incomplete(&self) -> bool {
        self.is_incomplete || self.sites.is_incomplete
    }

    /// Returns the size of the ledger itself.
    pub fn bytes_used(&self) -> usize {
        let early = self.early_frees.bytes_used() + self.early_allocations.bytes_used();
        let unmapped = self.unmapped.values().map(|gone| size_of_val(&**gone) + 32).sum::<usize>();
        let tables = self.blocks.bytes_used() + self.ranges.bytes_used() + self.sites.bytes_used();
        size_of::<Self>() + tables + self.recent.bytes_used() + early + unmapped
    }
}

fn block_of(part: &MappedRange) -> Block {
    Block { address: part.start, size: part.end - part.start, site: part.site }
}

/// Returns the size class of a block.
#[inline]
fn class_of(size: u64) -> usize {
    if size == 0 { 0 } else { (u64::BITS - (size - 1).leading_zeros()) as usize + 1 }
}

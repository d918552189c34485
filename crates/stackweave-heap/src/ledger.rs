//! The ledger of live memory, with the memory at the peak.
//!
//! Hot file: allocates only for a new call site, thread or mapping, or for a table that is full; no lock. If memory
//! can't be allocated, it continues to count, and reports that it is incomplete.

use crate::account::Account;
use crate::call_sites::{CallSiteId, CallSites};
use crate::figures::{CallSite, Figures, Totals};
use crate::high_water::HighWater;
use crate::live_blocks::LiveBlock;
use crate::live_heap::{Kept, LiveHeap};
use crate::live_ranges::{Cut, MappingPart, Restored};
use crate::out_of_order::EarlyEvents;
use crate::recent_blocks::RecentBlocks;
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
    /// The note about a free is whether the memory was temporary.
    live: LiveHeap<CallSiteId, bool>,
    recent: RecentBlocks,
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
            live: LiveHeap::default(),
            recent: RecentBlocks::new(options.temporary),
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
        match self.live.allocate(address, size, site) {
            Ok(None) => {}
            Ok(Some(old)) => {
                self.replaced += 1;
                self.early_allocations.push(ticks, address);
                self.lose(old.size, old.value, self.scale.weight(old.size));
            }
            Err(_) => {
                self.is_incomplete = true;
                self.count(size, site, weight);
                return;
            }
        }
        self.gain_counted(ticks, size, site, weight);
    }

    /// Records that a thread frees a block. A free of address 0 has no effect.
    #[inline]
    pub fn free(&mut self, ticks: u64, thread: u32, address: u64) {
        if address == 0 {
            return;
        }
        if self.is_late(ticks) && self.early_allocations.take_after(ticks, address) {
            self.replaced -= 1;
            self.frees += 1;
            return;
        }
        let is_temporary =
            |block: &LiveBlock<CallSiteId>| self.recent.is_recent(self.sites.get(block.value).thread, address);
        let Some((block, is_temporary)) = self.live.free(thread, address, is_temporary) else {
            self.unknown_frees += 1;
            self.early_frees.push(ticks, address);
            return;
        };
        let weight = self.scale.weight(block.size);
        self.frees += 1;
        self.lose(block.size, block.value, weight);
        if is_temporary {
            self.count_temporary(block.size, block.value, weight);
        }
    }

    /// Records that a thread maps addresses, and replaces earlier mappings there.
    #[expect(clippy::too_many_arguments, reason = "the fields of an event")]
    pub fn map(&mut self, ticks: u64, thread: u32, address: u64, size: u64, site: CallSiteId) {
        self.is_late(ticks);
        let (replaced, part) = self.live.map(address, size, site);
        for cut in replaced {
            self.replaced += 1;
            self.lose_cut(&cut);
        }
        self.recent.allocated(thread, address);
        if let Some(part) = part {
            self.gain_counted(ticks, size, site, self.weight(&part));
        } else {
            self.is_incomplete |= size != 0;
            self.count(size, site, self.scale.weight(size));
        }
    }

    /// Records that a thread unmaps addresses: mappings, or parts of them.
    pub fn unmap(&mut self, ticks: u64, thread: u32, address: u64, size: u64) {
        self.is_late(ticks);
        let is_temporary = |cut: &Cut<CallSiteId>| {
            let part = cut.gone;
            part.size() == part.whole && self.recent.is_recent(self.sites.get(part.value).thread, part.start)
        };
        let cuts = self.live.unmap(thread, address, size, is_temporary);
        if cuts.is_empty() {
            self.unknown_frees += 1;
            return;
        }
        self.frees += 1;
        for (cut, is_temporary) in cuts {
            self.lose_cut(&cut);
            if is_temporary {
                self.count_temporary(cut.gone.whole, cut.gone.value, self.weight(&cut.gone));
            }
        }
    }

    /// Records that the last free of the thread, at this address, has failed.
    pub fn keep(&mut self, thread: u32, address: u64) {
        match self.live.keep(thread, address) {
            Kept::Nothing => {}
            Kept::Unknown => {
                self.unknown_frees -= 1;
                self.early_frees.take_after(0, address);
            }
            Kept::Block(block, was_temporary) => {
                self.frees -= 1;
                let weight = self.scale.weight(block.size);
                self.gain(self.now, block.size, block.value, weight);
                if was_temporary {
                    self.uncount_temporary(block.size, block.value, weight);
                }
            }
            Kept::Ranges(restored) => {
                self.frees -= 1;
                for (_, was_temporary, restored) in restored {
                    self.keep_range(&restored, was_temporary);
                }
            }
        }
    }

    fn keep_range(&mut self, restored: &Restored<CallSiteId>, was_temporary: bool) {
        for other in restored.joined.iter().flatten() {
            self.lose(other.whole, other.value, self.weight(other));
        }
        let now = &restored.now;
        let weight = self.weight(now);
        self.gain(self.now, now.whole, now.value, weight);
        if was_temporary {
            self.uncount_temporary(now.whole, now.value, weight);
        }
    }

    #[inline]
    fn count_temporary(&mut self, size: u64, site: CallSiteId, weight: Weight) {
        self.sites.update(site, |account| account.count_temporary(weight));
        self.classes[class_of(size)].count_temporary(weight);
    }

    fn uncount_temporary(&mut self, size: u64, site: CallSiteId, weight: Weight) {
        self.sites.update(site, |account| account.uncount_temporary(weight));
        self.classes[class_of(size)].uncount_temporary(weight);
    }

    /// Prefetches the data of a block, some events before they are needed.
    #[inline]
    pub fn prefetch(&self, address: u64) {
        self.live.prefetch(address);
    }

    /// Returns whether prefetching helps: not while all blocks are in the processor's caches.
    #[inline]
    pub fn gains_by_prefetch(&self) -> bool {
        self.live.gains_by_prefetch()
    }

    /// Returns whether an event is earlier than one that was recorded before.
    #[inline]
    fn is_late(&mut self, ticks: u64) -> bool {
        let is_late = ticks < self.now;
        self.now = self.now.max(ticks);
        is_late
    }

    /// Returns the weight of a part of a mapping.
    fn weight(&self, part: &MappingPart<CallSiteId>) -> Weight {
        self.scale.weight_of_part(part.whole, part.size())
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

    fn lose_cut(&mut self, cut: &Cut<CallSiteId>) {
        self.lose(cut.before.whole, cut.before.value, self.weight(&cut.before));
        for part in cut.left.iter().flatten() {
            let Weight { blocks, bytes } = self.weight(part);
            self.sites.update(part.value, |account| account.add((blocks, bytes)));
            self.classes[class_of(part.whole)].add((blocks, bytes));
            self.sum.add(self.now, (blocks, bytes), false);
        }
    }

    /// Returns the live block that begins at this address, or the part of a mapping that contains it.
    pub fn block(&self, address: u64) -> Option<Block> {
        let found = self.live.block(address).map(|block| Block { address, size: block.size, site: block.value });
        found.or_else(|| self.live.range(address).map(|part| block_of(&part)))
    }

    /// Returns all live blocks, unsorted.
    pub fn blocks(&self) -> impl Iterator<Item = Block> {
        let blocks = self.live.blocks().map(|(address, block)| Block { address, size: block.size, site: block.value });
        blocks.chain(self.live.ranges().map(block_of))
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

    /// Returns the blocks that are live.
    #[inline]
    pub fn live_blocks(&self) -> u64 {
        self.scale.whole(self.sum.live_blocks)
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
        size_of::<Self>() + self.live.bytes_used() + self.sites.bytes_used() + self.recent.bytes_used() + early
    }
}

fn block_of(part: &MappingPart<CallSiteId>) -> Block {
    Block { address: part.start, size: part.size(), site: part.value }
}

/// Returns the size class of a block.
#[inline]
fn class_of(size: u64) -> usize {
    if size == 0 { 0 } else { (u64::BITS - (size - 1).leading_zeros()) as usize + 1 }
}

//! The blocks and segments of a device, updated by events.

use std::collections::BTreeMap;

use stackweave_recording::events::MemoryEvent;

use super::device_curve::{Axis, Curve, DevicePoint};
use crate::word_hash::WordMap;

/// The current memory of a device, and its history.
#[derive(Debug, Default)]
pub(super) struct Account {
    now: DevicePoint,
    pub(super) curve: Curve,
    pub(super) pools: Vec<Pool>,
    /// The index of each pool, by its number.
    indexes: WordMap<u64, usize>,
    /// By address: the bytes, and the index of the pool.
    blocks: WordMap<u64, (u64, usize)>,
    pending: WordMap<u64, (u64, usize)>,
    segments: BTreeMap<u64, (u64, usize)>,
    /// The pools that the current event has changed.
    changed: Vec<usize>,
}

/// The current memory of a pool, and its history.
#[derive(Debug)]
pub(super) struct Pool {
    pub(super) number: u64,
    now: DevicePoint,
    pub(super) curve: Curve,
}

/// One of the sums.
type Sum = fn(&mut DevicePoint) -> &mut u64;
const ALLOCATED: Sum = |point| &mut point.allocated;
const PENDING: Sum = |point| &mut point.pending;
const RESERVED: Sum = |point| &mut point.reserved;

impl Account {
    /// Adds a block that counts for this many bytes. A live block at its address is removed: its free was lost.
    pub(super) fn allocate(&mut self, block: &MemoryEvent, bytes: u64) {
        let pool = self.pool(block.pool);
        if let Some((before, of)) = self.blocks.insert(block.address, (bytes, pool)) {
            self.subtract(ALLOCATED, of, before);
        }
        self.complete(block.address);
        self.add(ALLOCATED, pool, bytes);
    }

    pub(super) fn free(&mut self, address: u64, waits: bool) {
        let Some((bytes, pool)) = self.blocks.remove(&address) else { return };
        self.subtract(ALLOCATED, pool, bytes);
        if waits && self.pending.insert(address, (bytes, pool)).is_none() {
            self.add(PENDING, pool, bytes);
        }
    }

    pub(super) fn complete(&mut self, address: u64) {
        if let Some((bytes, pool)) = self.pending.remove(&address) {
            self.subtract(PENDING, pool, bytes);
        }
    }

    /// Adds a segment, and replaces earlier ones there.
    pub(super) fn reserve(&mut self, segment: &MemoryEvent) {
        let MemoryEvent { address, size, .. } = *segment;
        self.cut(address, size);
        let pool = self.pool(segment.pool);
        if size > 0 {
            self.segments.insert(address, (size, pool));
        }
        self.add(RESERVED, pool, size);
    }

    pub(super) fn release(&mut self, address: u64, size: u64) {
        let size = if size > 0 { size } else { self.segments.get(&address).map_or(0, |(length, _)| *length) };
        self.cut(address, size);
    }

    /// Removes these addresses from the segments.
    fn cut(&mut self, address: u64, size: u64) {
        let end = address.saturating_add(size);
        let reaches = |(start, (length, _)): &(&u64, &(u64, usize))| start.saturating_add(*length) > address;
        let over: Vec<(u64, u64, usize)> = self
            .segments
            .range(..end)
            .rev()
            .take_while(reaches)
            .map(|(start, (length, pool))| (*start, *length, *pool))
            .collect();
        for (start, length, pool) in over {
            self.segments.remove(&start);
            let behind = start.saturating_add(length);
            if start < address {
                self.segments.insert(start, (address - start, pool));
            }
            if behind > end {
                self.segments.insert(end, (behind - end, pool));
            }
            self.subtract(RESERVED, pool, behind.min(end) - start.max(address));
        }
    }

    /// Adds points to the curves that the event has changed.
    pub(super) fn draw(&mut self, axis: &Axis, time_ns: u64) {
        if self.changed.is_empty() {
            return;
        }
        self.now.time_ns = time_ns;
        self.curve.put(axis, self.now);
        self.changed.sort_unstable();
        self.changed.dedup();
        for at in self.changed.drain(..) {
            let pool = &mut self.pools[at];
            pool.now.time_ns = time_ns;
            pool.curve.put(axis, pool.now);
        }
    }

    /// Returns the current bytes of its segments.
    pub(super) fn reserved(&self) -> u64 {
        self.now.reserved
    }

    fn pool(&mut self, number: u64) -> usize {
        *self.indexes.entry(number).or_insert_with(|| {
            self.pools.push(Pool { number, now: DevicePoint::default(), curve: Curve::default() });
            self.pools.len() - 1
        })
    }

    fn add(&mut self, sum: Sum, pool: usize, bytes: u64) {
        for point in [&mut self.now, &mut self.pools[pool].now] {
            *sum(point) = sum(point).saturating_add(bytes);
        }
        self.changed.push(pool);
    }

    fn subtract(&mut self, sum: Sum, pool: usize, bytes: u64) {
        for point in [&mut self.now, &mut self.pools[pool].now] {
            *sum(point) = sum(point).saturating_sub(bytes);
        }
        self.changed.push(pool);
    }
}

//! The sums of a device's blocks and segments, updated by events.

use stackweave_heap::Scale;
use stackweave_recording::events::Region;

use super::device_curve::{Axis, DeviceCurve, DevicePoint};
use super::live_devices::{LiveChanges, LiveRange};
use crate::word_hash::WordMap;

/// How a block or segment was allocated.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeviceBlockOrigin {
    /// The index of its pool.
    pub(super) pool: usize,
    pub(super) stack: u32,
}

/// The current memory of a device, and its history.
#[derive(Debug, Default)]
pub(super) struct DeviceAccount {
    /// The sums, of weights.
    now: DevicePoint,
    pub(super) curve: DeviceCurve,
    pub(super) pools: Vec<DevicePool>,
    /// The index of each pool, by its number.
    indexes: WordMap<u64, usize>,
    /// The blocks that were freed and can't be reused yet, by address.
    pending: WordMap<u64, LiveRange<DeviceBlockOrigin>>,
    /// The pools that the current event has changed.
    changed: Vec<usize>,
}

/// The current memory of a pool, and its history.
#[derive(Debug)]
pub(super) struct DevicePool {
    pub(super) number: u64,
    now: DevicePoint,
    pub(super) curve: DeviceCurve,
}

/// One of the sums.
type Sum = fn(&mut DevicePoint) -> &mut u64;
const ALLOCATED: Sum = |point| &mut point.allocated;
const PENDING: Sum = |point| &mut point.pending;
const RESERVED: Sum = |point| &mut point.reserved;

impl DeviceAccount {
    /// Applies changes of memory.
    pub(super) fn change(&mut self, changes: &LiveChanges<DeviceBlockOrigin>, scale: Scale) {
        for range in &changes.gone {
            let (sum, bytes) = sum_of(range, scale);
            self.subtract(sum, range.value.pool, bytes);
        }
        for range in &changes.come {
            let (sum, bytes) = sum_of(range, scale);
            self.add(sum, range.value.pool, bytes);
        }
    }

    /// Keeps a block that was freed until its free is complete.
    pub(super) fn wait(&mut self, block: &LiveRange<DeviceBlockOrigin>, scale: Scale) {
        self.complete(block.address, scale);
        self.pending.insert(block.address, *block);
        self.add(PENDING, block.value.pool, scale.weight(block.size).bytes);
    }

    pub(super) fn complete(&mut self, address: u64, scale: Scale) {
        if let Some(block) = self.pending.remove(&address) {
            self.subtract(PENDING, block.value.pool, scale.weight(block.size).bytes);
        }
    }

    /// Adds points to the curves that the event has changed.
    pub(super) fn draw(&mut self, axis: &Axis, time_ns: u64, scale: Scale) {
        if self.changed.is_empty() {
            return;
        }
        let point = |now: DevicePoint| {
            let (allocated, pending) = (scale.whole(now.allocated), scale.whole(now.pending));
            DevicePoint { time_ns, allocated, pending, ..now }
        };
        self.curve.put(axis, point(self.now));
        self.changed.sort_unstable();
        self.changed.dedup();
        for at in self.changed.drain(..) {
            let pool = &mut self.pools[at];
            pool.curve.put(axis, point(pool.now));
        }
    }

    /// Returns the block at an address whose free is pending.
    pub(super) fn pending(&self, address: u64) -> Option<&LiveRange<DeviceBlockOrigin>> {
        self.pending.get(&address)
    }

    /// Returns the current bytes of its segments.
    pub(super) fn reserved(&self) -> u64 {
        self.now.reserved
    }

    /// Returns the index of a pool; a new one is added.
    pub(super) fn pool(&mut self, number: u64) -> usize {
        *self.indexes.entry(number).or_insert_with(|| {
            self.pools.push(DevicePool { number, now: DevicePoint::default(), curve: DeviceCurve::default() });
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

/// Returns the sum that a block or segment counts in, and its bytes. Segments are never sampled.
fn sum_of(range: &LiveRange<DeviceBlockOrigin>, scale: Scale) -> (Sum, u64) {
    match range.region {
        Region::Segment(_) => (RESERVED, range.size),
        Region::Block(_) | Region::Mapping => (ALLOCATED, scale.weight(range.size).bytes),
    }
}

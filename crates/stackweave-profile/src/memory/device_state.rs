//! The states that an allocator has reported: each of its segments and blocks at a moment.

use std::collections::BTreeMap;

use stackweave_core::EventKind;
use stackweave_recording::events::{HostState, HostStateRow};

/// The memory of a device at a moment, as reported by its allocator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceState {
    /// The time, in nanoseconds since the process began to record.
    pub time_ns: u64,
    /// The reason why it was recorded: 0 for the end of the recording, 1 for a failed request, 2 for a request by the
    /// program.
    pub reason: u64,
    /// The number of segments.
    pub segments: u64,
    /// The number of blocks in them, allocated or free.
    pub blocks: u64,
    /// The bytes of the segments.
    pub reserved: u64,
    /// The bytes of allocated blocks, with their real size.
    pub allocated: u64,
    /// The bytes of allocated blocks, as requested.
    pub requested: u64,
    /// The bytes of blocks that were freed, and can't be reused yet.
    pub pending: u64,
    /// The bytes of free blocks.
    pub free: u64,
    /// The largest free block.
    pub largest_free: u64,
    /// The pools, by number.
    pub pools: Vec<PoolState>,
    /// The segments with their blocks, in the order of the recording.
    pub listing: Vec<ListedSegment>,
}

/// A segment of an allocator, with its blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedSegment {
    /// The segment.
    pub row: HostStateRow,
    /// Its blocks, in the order of the recording. Blocks whose free is pending have the stack of their allocation.
    pub blocks: Vec<HostStateRow>,
}

/// The memory of a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolState {
    /// The number of the pool.
    pub pool: u64,
    /// The bytes of its segments.
    pub reserved: u64,
    /// The bytes of its allocated blocks.
    pub allocated: u64,
    /// The bytes of its free blocks.
    pub free: u64,
}

impl DeviceState {
    /// Returns the share of free memory outside of the largest free block: 0 for a single block, near 1 for many small
    /// ones.
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    pub fn fragmentation(&self) -> f64 {
        if self.free == 0 { 0.0 } else { 1.0 - self.largest_free as f64 / self.free as f64 }
    }

    /// Returns the bytes by which allocated blocks are larger than requested.
    pub fn rounding(&self) -> u64 {
        self.allocated.saturating_sub(self.requested)
    }
}

/// A state that is being read.
#[derive(Debug, Default)]
struct StateBuilder {
    state: DeviceState,
    pools: BTreeMap<u64, PoolState>,
}

impl StateBuilder {
    fn segment(&mut self, row: &HostStateRow) {
        self.state.segments += 1;
        grow(&mut self.state.reserved, row.size);
        grow(&mut self.pool(row.pool).reserved, row.size);
        self.state.listing.push(ListedSegment { row: *row, blocks: Vec::new() });
    }

    fn block(&mut self, row: &HostStateRow) {
        self.state.blocks += 1;
        if row.is_allocated() {
            grow(&mut self.state.allocated, row.size);
            grow(&mut self.state.requested, row.requested);
            grow(&mut self.pool(row.pool).allocated, row.size);
        } else if row.is_active() {
            grow(&mut self.state.pending, row.size);
        } else {
            grow(&mut self.state.free, row.size);
            self.state.largest_free = self.state.largest_free.max(row.size);
            grow(&mut self.pool(row.pool).free, row.size);
        }
        if let Some(segment) = self.state.listing.last_mut() {
            segment.blocks.push(*row);
        }
    }

    fn pool(&mut self, pool: u64) -> &mut PoolState {
        self.pools.entry(pool).or_insert_with(|| PoolState { pool, ..PoolState::default() })
    }
}

/// Adds with saturation: a damaged file may contain any sizes.
fn grow(sum: &mut u64, bytes: u64) {
    *sum = sum.saturating_add(bytes);
}

/// The states that are being read, by thread, with time, reason and devices.
#[derive(Debug, Default)]
pub(super) struct OpenStates(BTreeMap<u32, OpenState>);

#[derive(Debug)]
struct OpenState {
    time_ns: u64,
    reason: u64,
    devices: BTreeMap<i64, StateBuilder>,
}

/// A state that is complete.
#[derive(Debug)]
pub(super) struct CompleteState {
    pub(super) time_ns: u64,
    pub(super) reason: u64,
    pub(super) devices: BTreeMap<i64, DeviceState>,
}

impl OpenStates {
    /// Adds a row of a thread. Returns the state that it completes; one without an end is ignored.
    pub(super) fn add(&mut self, thread: u32, time_ns: u64, state: &HostState) -> Option<CompleteState> {
        match state {
            HostState::Begin { reason } => {
                self.0.insert(thread, OpenState { time_ns, reason: *reason, devices: BTreeMap::new() });
            }
            HostState::End => return self.0.remove(&thread).map(OpenState::finish),
            HostState::Segment(row) if row.device != EventKind::OWN_DEVICE => {
                self.0.get_mut(&thread)?.device(row.device).segment(row);
            }
            HostState::Block(row) if row.device != EventKind::OWN_DEVICE => {
                self.0.get_mut(&thread)?.device(row.device).block(row);
            }
            HostState::Segment(_) | HostState::Block(_) | HostState::Other => {}
        }
        None
    }
}

impl OpenState {
    fn device(&mut self, device: i64) -> &mut StateBuilder {
        self.devices.entry(device).or_default()
    }

    fn finish(self) -> CompleteState {
        let Self { time_ns, reason, devices } = self;
        let state = |StateBuilder { state, pools }| DeviceState {
            time_ns,
            reason,
            pools: pools.into_values().collect(),
            ..state
        };
        let devices = devices.into_iter().map(|(device, making)| (device, state(making))).collect();
        CompleteState { time_ns, reason, devices }
    }
}

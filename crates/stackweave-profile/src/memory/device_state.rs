//! The accounts that an allocator gives of itself: each segment and block that it has at a moment.

use std::collections::BTreeMap;

use stackweave_core::EventKind;
use stackweave_recording::events::{State, StateRow};

/// What an allocator had of a device's memory at a moment, by its own account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceState {
    /// When, in nanoseconds since the process began to record.
    pub time_ns: u64,
    /// Why it was asked: 0 for the end of the recording, 1 for a request that there was no room for, 2 for a program's wish.
    pub reason: u64,
    /// How many segments it had.
    pub segments: u64,
    /// How many blocks these were cut into, in use or not.
    pub blocks: u64,
    /// The bytes of the segments.
    pub reserved: u64,
    /// The bytes of the blocks in use, as large as they really are.
    pub allocated: u64,
    /// The bytes that were asked for of these.
    pub requested: u64,
    /// The bytes of blocks that were given back, and may not be given out again yet.
    pub pending: u64,
    /// The bytes of blocks that nobody uses.
    pub free: u64,
    /// The largest of these blocks.
    pub largest_free: u64,
    /// Each pool, by number.
    pub pools: Vec<PoolState>,
}

/// The same of one of its pools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolState {
    /// Its number.
    pub pool: u64,
    /// The bytes of its segments.
    pub reserved: u64,
    /// The bytes of its blocks in use.
    pub allocated: u64,
    /// The bytes of those that nobody uses.
    pub free: u64,
}

impl DeviceState {
    /// How much of what is free does not lie in the largest free block: 0 for one block, near 1 for many small ones.
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    pub fn fragmentation(&self) -> f64 {
        if self.free == 0 { 0.0 } else { 1.0 - self.largest_free as f64 / self.free as f64 }
    }

    /// The bytes that blocks in use are larger than they were asked to be.
    pub fn rounding(&self) -> u64 {
        self.allocated.saturating_sub(self.requested)
    }
}

/// What an account has said of a device so far.
#[derive(Debug, Default)]
struct Making {
    state: DeviceState,
    pools: BTreeMap<u64, PoolState>,
}

impl Making {
    fn segment(&mut self, row: &StateRow) {
        self.state.segments += 1;
        grow(&mut self.state.reserved, row.size);
        grow(&mut self.pool(row.pool).reserved, row.size);
    }

    fn block(&mut self, row: &StateRow) {
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
    }

    fn pool(&mut self, pool: u64) -> &mut PoolState {
        self.pools.entry(pool).or_insert_with(|| PoolState { pool, ..PoolState::default() })
    }
}

/// Sizes in a bad file may be anything.
fn grow(sum: &mut u64, bytes: u64) {
    *sum = sum.saturating_add(bytes);
}

/// The accounts that are being given, by thread: when and why each began, and what it has said of each device.
#[derive(Debug, Default)]
pub(super) struct Accounts(BTreeMap<u32, Open>);

#[derive(Debug)]
struct Open {
    time_ns: u64,
    reason: u64,
    devices: BTreeMap<i64, Making>,
}

/// One account, when it is at its end.
#[derive(Debug)]
pub(super) struct WholeAccount {
    pub(super) time_ns: u64,
    pub(super) reason: u64,
    pub(super) devices: BTreeMap<i64, DeviceState>,
}

impl Accounts {
    /// Takes in a row that a thread has recorded. Returns the account that it ends: one without an end is none.
    pub(super) fn add(&mut self, thread: u32, time_ns: u64, state: &State) -> Option<WholeAccount> {
        match state {
            State::Begin { reason } => {
                self.0.insert(thread, Open { time_ns, reason: *reason, devices: BTreeMap::new() });
            }
            State::End => return self.0.remove(&thread).map(Open::finish),
            State::Segment(row) if row.device != EventKind::OWN_DEVICE => {
                self.0.get_mut(&thread)?.device(row.device).segment(row);
            }
            State::Block(row) if row.device != EventKind::OWN_DEVICE => {
                self.0.get_mut(&thread)?.device(row.device).block(row);
            }
            State::Segment(_) | State::Block(_) | State::Other => {}
        }
        None
    }
}

impl Open {
    fn device(&mut self, device: i64) -> &mut Making {
        self.devices.entry(device).or_default()
    }

    fn finish(self) -> WholeAccount {
        let Self { time_ns, reason, devices } = self;
        let state =
            |Making { state, pools }| DeviceState { time_ns, reason, pools: pools.into_values().collect(), ..state };
        let devices = devices.into_iter().map(|(device, making)| (device, state(making))).collect();
        WholeAccount { time_ns, reason, devices }
    }
}

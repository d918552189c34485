//! The accounts that an allocator gives of itself: each segment and block that it has at a moment.

use std::collections::BTreeMap;

use super::device_kinds::{DeviceEvent, Room};

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
    fn segment(&mut self, room: Room) {
        self.state.segments += 1;
        grow(&mut self.state.reserved, room.size);
        grow(&mut self.pool(room.pool).reserved, room.size);
    }

    fn block(&mut self, room: Room, asked: u64, (is_allocated, is_active): (bool, bool)) {
        self.state.blocks += 1;
        if is_allocated {
            grow(&mut self.state.allocated, room.size);
            grow(&mut self.state.requested, asked);
            grow(&mut self.pool(room.pool).allocated, room.size);
        } else if is_active {
            grow(&mut self.state.pending, room.size);
        } else {
            grow(&mut self.state.free, room.size);
            self.state.largest_free = self.state.largest_free.max(room.size);
            grow(&mut self.pool(room.pool).free, room.size);
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
pub(super) struct Given {
    pub(super) time_ns: u64,
    pub(super) reason: u64,
    pub(super) devices: BTreeMap<i64, DeviceState>,
}

impl Accounts {
    /// Takes in an event of a thread, and gives the account that it ends. One without an end is none.
    pub(super) fn see(&mut self, thread: u32, time_ns: u64, event: DeviceEvent) -> Option<Given> {
        match event {
            DeviceEvent::AccountBegins { reason } => {
                self.0.insert(thread, Open { time_ns, reason, devices: BTreeMap::new() });
                None
            }
            DeviceEvent::AccountEnds => self.0.remove(&thread).map(Open::finish),
            DeviceEvent::Segment(room) => {
                self.0.get_mut(&thread)?.device(room.device).segment(room);
                None
            }
            DeviceEvent::Block { room, asked, is_allocated, is_active } => {
                self.0.get_mut(&thread)?.device(room.device).block(room, asked, (is_allocated, is_active));
                None
            }
            _ => None,
        }
    }
}

impl Open {
    fn device(&mut self, device: i64) -> &mut Making {
        self.devices.entry(device).or_default()
    }

    fn finish(self) -> Given {
        let Self { time_ns, reason, devices } = self;
        let state =
            |Making { state, pools }| DeviceState { time_ns, reason, pools: pools.into_values().collect(), ..state };
        let devices = devices.into_iter().map(|(device, making)| (device, state(making))).collect();
        Given { time_ns, reason, devices }
    }
}

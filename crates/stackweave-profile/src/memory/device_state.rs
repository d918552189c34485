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
    /// Each pool: its number, and the bytes of its segments, of its blocks in use, and of those that nobody uses.
    pub pools: Vec<(u64, u64, u64, u64)>,
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

    fn segment(&mut self, room: Room) {
        self.segments += 1;
        self.reserved = self.reserved.saturating_add(room.size);
        self.pool(room.pool).1 += room.size;
    }

    fn block(&mut self, room: Room, asked: u64, (is_allocated, is_active): (bool, bool)) {
        self.blocks += 1;
        if is_allocated {
            self.allocated = self.allocated.saturating_add(room.size);
            self.requested = self.requested.saturating_add(asked);
            self.pool(room.pool).2 += room.size;
        } else if is_active {
            self.pending = self.pending.saturating_add(room.size);
        } else {
            self.free = self.free.saturating_add(room.size);
            self.largest_free = self.largest_free.max(room.size);
            self.pool(room.pool).3 += room.size;
        }
    }

    fn pool(&mut self, number: u64) -> &mut (u64, u64, u64, u64) {
        let at = self.pools.binary_search_by_key(&number, |pool| pool.0).unwrap_or_else(|at| {
            self.pools.insert(at, (number, 0, 0, 0));
            at
        });
        &mut self.pools[at]
    }
}

/// The accounts that are being given, by thread: what each has said of each device.
#[derive(Debug, Default)]
pub(super) struct Accounts(BTreeMap<u32, Given>);

/// One account, when it is at its end.
#[derive(Debug, Default)]
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
                self.0.insert(thread, Given { time_ns, reason, devices: BTreeMap::new() });
                None
            }
            DeviceEvent::AccountEnds => self.0.remove(&thread),
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

impl Given {
    fn device(&mut self, device: i64) -> &mut DeviceState {
        let (time_ns, reason) = (self.time_ns, self.reason);
        self.devices.entry(device).or_insert_with(|| DeviceState { time_ns, reason, ..DeviceState::default() })
    }
}

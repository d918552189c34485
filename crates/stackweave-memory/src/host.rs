//! Memory that a host gives out: blocks of its own allocator, on a device or not.
//!
//! Hot file: see `entry.rs`. All is inlined into the function that the host calls: stacks begin with its caller.

use crate::entry::{Event, is_sampled, place};
use crate::sampled_blocks;
use crate::state::{self, way};

/// A block of a host's allocator, or a segment that it gives out blocks of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostBlock {
    /// Where it is. Blocks of different devices may have the same address.
    pub address: u64,
    /// Its bytes.
    pub size: u64,
    /// The device that it lies on.
    pub device: i64,
    /// The stream that it is used on.
    pub stream: u64,
    /// The pool that it comes from.
    pub pool: u64,
}

impl HostBlock {
    fn words(&self, stack: u64) -> [u64; 6] {
        [self.address, self.size, stack, self.device.cast_unsigned(), self.stream, self.pool]
    }
}

/// One number for an address of a device, among all of all devices.
fn key(address: u64, device: i64) -> u64 {
    address ^ device.cast_unsigned().rotate_right(8)
}

/// A host has taken a block. Nothing happens unless memory is recorded.
#[inline(always)]
pub fn host_allocate(block: HostBlock) {
    allocate_at(place(), block);
}

/// The same, with an address in the stack frame of the function that the host has called.
#[inline(always)]
pub(crate) fn allocate_at(place: usize, block: HostBlock) {
    let way = state::current_way();
    if !matches!(way, way::ALL | way::SAMPLED) {
        return;
    }
    let Some(event) = Event::begin(place) else { return };
    if event.wants(way, usize::try_from(block.size).unwrap_or(usize::MAX)) {
        if way == way::SAMPLED {
            sampled_blocks::insert(key(block.address, block.device));
        }
        let stack = event.stack();
        event.active.recorder.record_fixed(event.active.kinds.host_allocate, block.words(stack));
    }
}

/// A host gives a block back.
#[inline(always)]
pub fn host_free(address: u64, device: i64, stream: u64) {
    free_at(place(), address, device, stream);
}

/// The same, with an address in the stack frame of the function that the host has called.
#[inline(always)]
pub(crate) fn free_at(place: usize, address: u64, device: i64, stream: u64) {
    let way = state::current_way();
    if way == way::OFF {
        return;
    }
    let Some(event) = Event::begin(place) else { return };
    let key = key(address, device);
    if !is_sampled(way) || sampled_blocks::may_hold(key) && sampled_blocks::remove(key) {
        let stack = if event.active.free_stacks { event.stack() } else { 0 };
        let words = [address, stack, device.cast_unsigned(), stream];
        event.active.recorder.record_fixed(event.active.kinds.host_free, words);
    }
}

/// A host has got room for blocks.
#[inline(always)]
pub fn host_segment(segment: HostBlock) {
    segment_at(place(), segment);
}

/// The same, with an address in the stack frame of the function that the host has called.
#[inline(always)]
pub(crate) fn segment_at(place: usize, segment: HostBlock) {
    if !matches!(state::current_way(), way::ALL | way::SAMPLED) {
        return;
    }
    let Some(event) = Event::begin(place) else { return };
    let stack = event.stack();
    event.active.recorder.record_fixed(event.active.kinds.segment, segment.words(stack));
}

/// A host gives room back.
#[inline(always)]
pub fn host_segment_free(segment: HostBlock) {
    segment_free_at(place(), segment);
}

/// The same, with an address in the stack frame of the function that the host has called.
#[inline(always)]
pub(crate) fn segment_free_at(place: usize, segment: HostBlock) {
    if state::current_way() == way::OFF {
        return;
    }
    let Some(event) = Event::begin(place) else { return };
    let HostBlock { address, size, device, stream, .. } = segment;
    let stack = if event.active.free_stacks { event.stack() } else { 0 };
    let words = [address, size, stack, device.cast_unsigned(), stream];
    event.active.recorder.record_fixed(event.active.kinds.segment_free, words);
}

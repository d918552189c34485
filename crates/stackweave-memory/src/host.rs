//! Memory that a host gives out: blocks of its own allocator, on a device or not.
//!
//! Hot file: see `hook_event.rs`. All is inlined into the function that the host calls: stacks begin with its caller.

use crate::hook_event::{HookEvent, is_sampled, place};
use crate::host_event::HostEvent;
use crate::host_words::{self, HostWords};
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
    /// In an account: the bytes that were asked for.
    pub asked: u64,
    /// In an account: what is true of it.
    pub flags: u64,
}

impl HostBlock {
    fn words(&self, stack: u64) -> [u64; 6] {
        [self.address, self.size, stack, self.device.cast_unsigned(), self.stream, self.pool]
    }

    /// One number for its address, among all of all devices.
    fn key(&self) -> u64 {
        self.address ^ self.device.cast_unsigned().rotate_right(8)
    }
}

/// Something happens in a host's allocator. `text` is what an annotation or a tag says. Nothing happens unless memory is recorded.
#[inline(always)]
pub fn tell_host(event: HostEvent, block: &HostBlock, text: Option<&str>) {
    tell_at(place(), event, block, text);
}

/// The same, with an address in the stack frame of the function that the host has called.
#[inline(always)]
pub(crate) fn tell_at(place: usize, what: HostEvent, block: &HostBlock, text: Option<&str>) {
    let way = state::current_way();
    if way == way::OFF {
        return;
    }
    let Some(event) = HookEvent::begin(place) else { return };
    let errno = event.block.errno();
    let is_on = matches!(way, way::ALL | way::SAMPLED);
    match what {
        HostEvent::Allocate if is_on => take(&event, way, what, block, || event.stack()),
        HostEvent::Present if is_on => take(&event, way, what, block, host_words::stack_of_before),
        HostEvent::Free | HostEvent::FreeRequested => give(&event, way, what, block),
        HostEvent::FreeCompleted if !is_sampled(way) => complete(&event, block),
        HostEvent::Segment | HostEvent::SegmentMap if is_on => record(&event, what, block, event.stack()),
        HostEvent::SegmentFree | HostEvent::SegmentUnmap => record(&event, what, block, free_stack(&event)),
        HostEvent::SegmentPresent if is_on => record(&event, what, block, host_words::stack_of_before()),
        HostEvent::Allocate
        | HostEvent::Present
        | HostEvent::FreeCompleted
        | HostEvent::Segment
        | HostEvent::SegmentPresent
        | HostEvent::SegmentMap => {}
        _ => HostWords { what, block, text }.record(&event),
    }
    event.block.set_errno(errno);
}

#[inline(always)]
fn record(event: &HookEvent, what: HostEvent, block: &HostBlock, stack: u64) {
    event.active.recorder.record_fixed(event.active.kinds.host[what.place()], block.words(stack));
}

#[inline(always)]
fn free_stack(event: &HookEvent) -> u64 {
    if event.active.free_stacks { event.stack() } else { 0 }
}

#[inline(always)]
fn take(event: &HookEvent, way: usize, what: HostEvent, block: &HostBlock, stack: impl FnOnce() -> u64) {
    if event.wants(way, usize::try_from(block.size).unwrap_or(usize::MAX)) {
        if way == way::SAMPLED {
            sampled_blocks::insert(block.key());
        }
        record(event, what, block, stack());
    }
}

#[inline(always)]
fn give(event: &HookEvent, way: usize, what: HostEvent, block: &HostBlock) {
    // Of a sampled block the completion is not told: its free is one event.
    let what = if is_sampled(way) { HostEvent::Free } else { what };
    let key = block.key();
    if !is_sampled(way) || sampled_blocks::may_hold(key) && sampled_blocks::remove(key) {
        let stack = free_stack(event);
        event.block.last_free.set((key, stack));
        record(event, what, block, stack);
    }
}

/// Mostly this follows the request at once, in the same call: then their stacks are one.
#[inline(always)]
fn complete(event: &HookEvent, block: &HostBlock) {
    let (key, stack) = event.block.last_free.take();
    let stack = if key == block.key() { stack } else { free_stack(event) };
    record(event, HostEvent::FreeCompleted, block, stack);
}

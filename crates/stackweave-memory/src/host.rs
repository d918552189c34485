//! Events of a host's own allocator: memory on a device or not.
//!
//! Hot file: see `hook_event.rs`. Everything is inlined into the function that the host calls: stacks begin with its
//! caller.

use crate::hook_event::{HookEvent, is_sampled, stack_address};
use crate::host_event::HostEventKind;
use crate::rare_host_events::{self, RareHostEvent};
use crate::sampled_blocks;
use crate::state::{self, hook_mode};

/// A block of a host's allocator, or a segment that the host divides into blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostBlock {
    /// The address. Blocks of different devices may have the same address.
    pub address: u64,
    /// The size in bytes.
    pub size: u64,
    /// The device that the block is on.
    pub device: i64,
    /// The stream that uses the block.
    pub stream: u64,
    /// The pool that the block is from.
    pub pool: u64,
    /// In a state snapshot: the bytes that the program requested.
    pub requested: u64,
    /// In a state snapshot: the flags of the block, as described at [`HostEventKind`].
    pub flags: u64,
}

impl HostBlock {
    fn words(&self, stack: u64) -> [u64; 6] {
        [self.address, self.size, stack, self.device.cast_unsigned(), self.stream, self.pool]
    }

    /// Returns a number for the block that is unique among all devices.
    fn key(&self) -> u64 {
        self.address ^ self.device.cast_unsigned().rotate_right(8)
    }
}

/// Records an event of a host's allocator. `text` is that of an annotation or a tag. Does nothing unless memory is
/// recorded.
#[inline(always)]
pub fn record_host_event(kind: HostEventKind, block: &HostBlock, text: Option<&str>) {
    record_at(stack_address(), kind, block, text);
}

/// Records an event; `stack_address` is in the stack frame of the function that the host has called.
#[inline(always)]
pub(crate) fn record_at(stack_address: usize, kind: HostEventKind, block: &HostBlock, text: Option<&str>) {
    let mode = state::current_mode();
    if mode == hook_mode::OFF {
        return;
    }
    let Some(event) = HookEvent::begin(stack_address) else { return };
    let errno = event.thread.errno();
    let is_on = matches!(mode, hook_mode::ALL | hook_mode::SAMPLED);
    match kind {
        HostEventKind::Allocate if is_on => record_allocation(&event, mode, kind, block, || event.stack()),
        HostEventKind::Present if is_on => {
            record_allocation(&event, mode, kind, block, rare_host_events::stack_of_before);
        }
        HostEventKind::Free | HostEventKind::FreeRequested => record_free(&event, mode, kind, block),
        HostEventKind::FreeCompleted if !is_sampled(mode) => record_completion(&event, block),
        HostEventKind::Segment | HostEventKind::SegmentMap if is_on => record(&event, kind, block, event.stack()),
        HostEventKind::SegmentFree | HostEventKind::SegmentUnmap => record(&event, kind, block, free_stack(&event)),
        HostEventKind::SegmentPresent if is_on => record(&event, kind, block, rare_host_events::stack_of_before()),
        HostEventKind::Allocate
        | HostEventKind::Present
        | HostEventKind::FreeCompleted
        | HostEventKind::Segment
        | HostEventKind::SegmentPresent
        | HostEventKind::SegmentMap => {}
        _ => RareHostEvent { kind, block, text }.record(&event),
    }
    event.thread.set_errno(errno);
}

#[inline(always)]
fn record(event: &HookEvent, kind: HostEventKind, block: &HostBlock, stack: u64) {
    event.active.recorder.record_fixed(event.active.kinds.host[kind.index()], block.words(stack));
}

#[inline(always)]
fn free_stack(event: &HookEvent) -> u64 {
    if event.active.free_stacks { event.stack() } else { 0 }
}

#[inline(always)]
fn record_allocation(
    event: &HookEvent,
    mode: usize,
    kind: HostEventKind,
    block: &HostBlock,
    stack: impl FnOnce() -> u64,
) {
    if event.wants(mode, usize::try_from(block.size).unwrap_or(usize::MAX)) {
        if mode == hook_mode::SAMPLED {
            sampled_blocks::insert(block.key());
        }
        record(event, kind, block, stack());
    }
}

#[inline(always)]
fn record_free(event: &HookEvent, mode: usize, kind: HostEventKind, block: &HostBlock) {
    // A sampled recording has one event for the free of a block, and omits its completion.
    let kind = if is_sampled(mode) { HostEventKind::Free } else { kind };
    let key = block.key();
    if !is_sampled(mode) || sampled_blocks::may_hold(key) && sampled_blocks::remove(key) {
        let stack = free_stack(event);
        event.thread.last_free.set((key, stack));
        record(event, kind, block, stack);
    }
}

/// Records that a free has completed. Usually this follows the request at once, in the same call: then they share a
/// stack.
#[inline(always)]
fn record_completion(event: &HookEvent, block: &HostBlock) {
    let (key, stack) = event.thread.last_free.take();
    let stack = if key == block.key() { stack } else { free_stack(event) };
    record(event, HostEventKind::FreeCompleted, block, stack);
}

//! Rare events of hosts: snapshots, blocks that existed before the recording, failures, annotations and tags.
//!
//! Allocates and locks: not for signal handlers.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

use stackweave_core::RawFrame;
use stackweave_recording::events;
use stackweave_store::label;

use crate::hook_event::HookEvent;
use crate::host::HostBlock;
use crate::host_event::HostEventKind;
use crate::ledger_observer::LedgerObserver;

/// The only frame in the stack of a block that existed before the recording.
const BEFORE: &str = "allocated before the recording";
/// The label of a snapshot that was requested.
const SNAPSHOT: &str = "snapshot";

/// The stacks of all live blocks of devices, by device and address.
type BlockStacks = HashMap<(i64, u64), u64>;

/// The stacks for each snapshot in progress, by the thread that records it.
static STACKS: Mutex<BTreeMap<u32, BlockStacks>> = Mutex::new(BTreeMap::new());

/// A rare event with its arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RareHostEvent<'a> {
    pub(crate) kind: HostEventKind,
    pub(crate) block: &'a HostBlock,
    pub(crate) text: Option<&'a str>,
}

impl RareHostEvent<'_> {
    #[cold]
    #[inline(never)]
    pub(crate) fn record(self, event: &HookEvent) {
        let (recorder, kinds) = (&event.active.recorder, &event.active.kinds);
        let HostBlock { address, size, stream, pool, requested, flags, .. } = *self.block;
        let device = self.block.device.cast_unsigned();
        match self.kind {
            HostEventKind::Snapshot => {
                recorder.record_fixed(kinds.snapshot, [word(SNAPSHOT), size, event.stack(), device]);
            }
            HostEventKind::OutOfMemory => {
                let frame = event.active.out_of_memory.map_or(0, RawFrame::to_bits);
                let words = [frame, size, event.stack(), device, stream, pool, address];
                recorder.record_fixed(kinds.out_of_memory, words);
            }
            HostEventKind::Annotate => {
                let frame = word(self.text.unwrap_or_default());
                recorder.record_fixed(kinds.annotate, [frame, address, event.stack(), device]);
            }
            HostEventKind::Tag => {
                let frame = self.text.filter(|text| !text.is_empty()).map_or(0, word);
                if event.thread.tag.swap(frame, Ordering::Relaxed) != frame {
                    recorder.record_fixed(kinds.tag, [frame]);
                }
            }
            HostEventKind::StateBegin => {
                let known = recorder.query_observer(|observer| observer.downcast_ref().map(stacks_of_blocks)).flatten();
                stacks().insert(event.thread.number(), known.unwrap_or_default());
                recorder.record_fixed(kinds.state, [events::STATE_BEGINS, flags]);
            }
            HostEventKind::SegmentState => {
                recorder.record_fixed(kinds.segment_state, [address, size, 0, device, stream, pool, flags]);
            }
            HostEventKind::BlockState => {
                let known = |stacks: &BlockStacks| stacks.get(&(self.block.device, address)).copied();
                let known = || stacks().get(&event.thread.number()).and_then(known).unwrap_or(0);
                let stack = if flags & events::BLOCK_IS_ALLOCATED == 0 { 0 } else { known() };
                recorder
                    .record_fixed(kinds.block_state, [address, size, stack, device, stream, pool, requested, flags]);
            }
            HostEventKind::StateEnd => {
                stacks().remove(&event.thread.number());
                recorder.record_fixed(kinds.state, [events::STATE_ENDS, flags]);
            }
            // `host.rs` records these.
            HostEventKind::Allocate
            | HostEventKind::Present
            | HostEventKind::Free
            | HostEventKind::Segment
            | HostEventKind::SegmentFree
            | HostEventKind::FreeRequested
            | HostEventKind::FreeCompleted
            | HostEventKind::SegmentPresent
            | HostEventKind::SegmentMap
            | HostEventKind::SegmentUnmap => {}
        }
    }
}

/// Drops the snapshots that were not recorded to their end.
pub(crate) fn drop_unfinished_snapshots() {
    stacks().clear();
}

fn stacks() -> MutexGuard<'static, BTreeMap<u32, BlockStacks>> {
    STACKS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn stacks_of_blocks(ledgers: &LedgerObserver) -> BlockStacks {
    ledgers
        .device_blocks()
        .filter_map(|block| Some(((block.device, block.address), block.stack?.get().into())))
        .collect()
}

fn word(name: &str) -> u64 {
    label(name, "", 0).map_or(0, RawFrame::to_bits)
}

/// Returns the stack of what existed before the recording: a label.
#[cold]
#[inline(never)]
pub(crate) fn stack_of_before() -> u64 {
    let stack = label(BEFORE, "", 0).and_then(|frame| stackweave_capture::stacks().intern(&[frame]));
    stack.map_or(0, |stack| stack.get().into())
}

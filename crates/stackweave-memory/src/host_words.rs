//! What a host tells rarely: of its accounts, of what was there before, of failures.
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
use crate::host_event::HostEvent;
use crate::ledger_observer::LedgerObserver;

/// What a stack of blocks says that were there before.
const BEFORE: &str = "allocated before the recording";
/// What an account that is asked for is called.
const SNAPSHOT: &str = "snapshot";

/// The stacks of all live blocks of devices, by device and address.
type Stacks = HashMap<(i64, u64), u64>;

/// Those of each account that is being told, by the thread that tells it.
static STACKS: Mutex<BTreeMap<u32, Stacks>> = Mutex::new(BTreeMap::new());

/// An event with all that it says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostWords<'a> {
    pub(crate) what: HostEvent,
    pub(crate) block: &'a HostBlock,
    pub(crate) text: Option<&'a str>,
}

impl HostWords<'_> {
    #[cold]
    #[inline(never)]
    pub(crate) fn record(self, event: &HookEvent) {
        let (recorder, kinds) = (&event.active.recorder, &event.active.kinds);
        let HostBlock { address, size, stream, pool, asked, flags, .. } = *self.block;
        let device = self.block.device.cast_unsigned();
        match self.what {
            HostEvent::Snapshot => {
                recorder.record_fixed(kinds.snapshot, [word(SNAPSHOT), size, event.stack(), device]);
            }
            HostEvent::OutOfMemory => {
                let frame = event.active.out_of_memory.map_or(0, RawFrame::to_bits);
                let words = [frame, size, event.stack(), device, stream, pool, address];
                recorder.record_fixed(kinds.out_of_memory, words);
            }
            HostEvent::Annotate => {
                let frame = word(self.text.unwrap_or_default());
                recorder.record_fixed(kinds.annotate, [frame, address, event.stack(), device]);
            }
            HostEvent::Tag => {
                let frame = self.text.filter(|text| !text.is_empty()).map_or(0, word);
                if event.block.tag.swap(frame, Ordering::Relaxed) != frame {
                    recorder.record_fixed(kinds.tag, [frame]);
                }
            }
            HostEvent::StateBegin => {
                let known = recorder.ask(|observer| observer.downcast_ref().map(stacks_of_blocks)).flatten();
                stacks().insert(event.block.thread(), known.unwrap_or_default());
                recorder.record_fixed(kinds.state, [events::ACCOUNT_BEGINS, flags]);
            }
            HostEvent::SegmentState => {
                recorder.record_fixed(kinds.segment_state, [address, size, 0, device, stream, pool, flags]);
            }
            HostEvent::BlockState => {
                let known = |stacks: &Stacks| stacks.get(&(self.block.device, address)).copied();
                let known = || stacks().get(&event.block.thread()).and_then(known).unwrap_or(0);
                let stack = if flags & events::BLOCK_IS_ALLOCATED == 0 { 0 } else { known() };
                recorder.record_fixed(kinds.block_state, [address, size, stack, device, stream, pool, asked, flags]);
            }
            HostEvent::StateEnd => {
                stacks().remove(&event.block.thread());
                recorder.record_fixed(kinds.state, [events::ACCOUNT_ENDS, flags]);
            }
            // These are recorded where they are told.
            HostEvent::Allocate
            | HostEvent::Present
            | HostEvent::Free
            | HostEvent::Segment
            | HostEvent::SegmentFree
            | HostEvent::FreeRequested
            | HostEvent::FreeCompleted
            | HostEvent::SegmentPresent
            | HostEvent::SegmentMap
            | HostEvent::SegmentUnmap => {}
        }
    }
}

/// Accounts that were not told to their end are over.
pub(crate) fn forget_accounts() {
    stacks().clear();
}

fn stacks() -> MutexGuard<'static, BTreeMap<u32, Stacks>> {
    STACKS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn stacks_of_blocks(ledgers: &LedgerObserver) -> Stacks {
    ledgers
        .device_blocks()
        .filter_map(|block| Some(((block.device, block.address), block.stack?.get().into())))
        .collect()
}

fn word(name: &str) -> u64 {
    label(name, "", 0).map_or(0, RawFrame::to_bits)
}

/// The stack of what was there before: a word for it.
#[cold]
#[inline(never)]
pub(crate) fn stack_of_before() -> u64 {
    let stack = label(BEFORE, "", 0).and_then(|frame| stackweave_capture::stacks().intern(&[frame]));
    stack.map_or(0, |stack| stack.get().into())
}

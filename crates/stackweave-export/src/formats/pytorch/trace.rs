//! The events of one device.

use std::collections::HashMap;
use std::io;

use crate::activity::{LiveMemory, LiveRange};
use crate::formats::pytorch::account::Account;
use crate::formats::pytorch::host::{HostEvent, HostEventKind};
use crate::formats::pytorch::pickle::{Pickle, Shared};
use crate::formats::pytorch::ranges::Clusters;
use crate::formats::pytorch::read::{Change, DeviceMemory};
use crate::formats::pytorch::segments::{Segment, is_large};
use crate::formats::pytorch::stacks::Stacks;
use stackweave_recording::events::{self, HostAction, MemoryEvent, Region};

/// What is remembered of memory that is live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) stack: u32,
    pub(super) tag: u32,
    pub(super) stream: u64,
    pub(super) pool: u64,
    /// The bytes that were asked for: an allocator may have given more.
    pub(super) asked: u64,
    /// Of a segment: for large blocks.
    pub(super) is_large: bool,
    /// Of a segment: it may grow.
    pub(super) is_expandable: bool,
}

/// The memory of one device of a process.
#[derive(Debug)]
pub(super) struct Device {
    pub(super) number: i64,
    /// The place of its process.
    pub(super) process: usize,
    pub(super) live: LiveMemory<Origin>,
    /// The segments that were not recorded.
    pub(super) clusters: Clusters,
    /// What was freed and may not be allocated again yet, by address.
    pub(super) pending: HashMap<u64, LiveRange<Origin>>,
    /// The account that is being read.
    pub(super) account: Option<Account>,
    /// The segments of an account, if nothing has changed since.
    pub(super) whole: Option<Vec<Segment>>,
    /// The number of the account that counts.
    counts: Option<u64>,
    /// Whether its host records all that `PyTorch`'s allocator does.
    is_exact: bool,
    pub(super) gone: Vec<LiveRange<Origin>>,
    pub(super) come: Vec<LiveRange<Origin>>,
}

/// An event with all that it says.
#[derive(Debug)]
pub(super) struct Entry<'e> {
    pub(super) action: &'static str,
    pub(super) address: u64,
    pub(super) size: u64,
    pub(super) origin: &'e Origin,
    /// The stack, if it is not that of the origin.
    pub(super) stack: u32,
}

/// What entries are written with.
pub(super) struct Trace<'t, 'o> {
    pub(super) pickle: &'t mut Pickle<'o>,
    pub(super) stacks: &'t mut Stacks,
    pub(super) pools: &'t mut HashMap<u64, Shared>,
    /// Microseconds since 1970; `None` if what happens now was not asked for.
    pub(super) time_us: Option<i64>,
}

impl Device {
    /// `counts`: the number of the account that counts.
    pub(super) fn new(process: usize, number: i64, memory: DeviceMemory, counts: Option<u64>) -> Self {
        let (live, pending, account, whole, gone, come) = Default::default();
        let (clusters, is_exact) = (memory.touched.segments(), memory.is_exact && number >= 0);
        Self { number, process, live, clusters, pending, account, whole, counts, is_exact, gone, come }
    }

    /// Something happens to memory, of this device or another.
    pub(super) fn change(&mut self, thread: u32, change: &Change, trace: &mut Trace<'_, '_>) -> io::Result<()> {
        let mut stack = 0;
        match change {
            Change::Host { event, tag } if event.memory.region.device() == self.number => {
                if self.is_exact || !event.kind.is_plain() {
                    return self.host(event, *tag, trace);
                }
                stack = self.plain(thread, event, *tag);
            }
            Change::Account { number, step } if Some(*number) == self.counts => self.step(step),
            Change::Allocate(memory, tag) if memory.region.device() == self.number => self.allocate(memory, *tag),
            Change::Free(memory) if memory.region.device() == self.number => {
                stack = memory.stack;
                self.free_plain(thread, memory);
            }
            Change::Keep(address) => self.live.keep(thread, *address, &mut self.come, &mut self.gone),
            Change::OutOfMemory { size, stack, tag } if self.number < 0 => {
                let origin = Origin { stack: *stack, tag: *tag, ..Origin::default() };
                trace.entry(&Entry { action: "oom", address: 0, size: *size, origin: &origin, stack: 0 })?;
            }
            _ => {}
        }
        self.write_changes(stack, trace)
    }

    /// A host allocates or frees memory, of which not all may be recorded. Gives the stack if it frees.
    fn plain(&mut self, thread: u32, event: &HostEvent, tag: u32) -> u32 {
        match event.kind {
            HostEventKind::Memory(HostAction::Allocate | HostAction::Segment) => self.allocate(&event.memory, tag),
            HostEventKind::Memory(_) => {
                self.free_plain(thread, &event.memory);
                return event.memory.stack;
            }
            _ => {}
        }
        0
    }

    fn allocate(&mut self, memory: &MemoryEvent, tag: u32) {
        let MemoryEvent { region, address, size, stack, stream, pool, .. } = *memory;
        let (asked, is_large, is_expandable) = (size, is_large(size), false);
        let value = Origin { stack, tag, stream, pool, asked, is_large, is_expandable };
        self.live.allocate(memory, value, &mut self.gone, &mut self.come);
        self.come.push(LiveRange { region, address, size, value });
    }

    fn free_plain(&mut self, thread: u32, memory: &MemoryEvent) {
        self.live.free(thread, memory, &mut self.gone, &mut self.come);
    }

    /// Entries for what has changed: what is gone first.
    fn write_changes(&mut self, stack: u32, trace: &mut Trace<'_, '_>) -> io::Result<()> {
        for piece in core::mem::take(&mut self.gone) {
            let entry =
                |action| Entry { action, address: piece.address, size: piece.size, origin: &piece.value, stack };
            if !matches!(piece.region, Region::Segment(_)) {
                trace.entry(&entry("free_requested"))?;
                trace.entry(&entry("free_completed"))?;
            }
            if self.is_segment(&piece) {
                trace.entry(&entry("segment_free"))?;
            }
        }
        for piece in core::mem::take(&mut self.come) {
            let entry =
                |action| Entry { action, address: piece.address, size: piece.size, origin: &piece.value, stack: 0 };
            if self.is_segment(&piece) {
                trace.entry(&entry("segment_alloc"))?;
            }
            if !matches!(piece.region, Region::Segment(_)) {
                trace.entry(&entry("alloc"))?;
            }
        }
        Ok(())
    }

    /// Whether it is a segment of its own.
    pub(super) fn is_segment(&self, piece: &LiveRange<Origin>) -> bool {
        piece.region.is_range() && !self.clusters.holds(piece.address)
    }
}

impl Trace<'_, '_> {
    pub(super) fn entry(&mut self, entry: &Entry<'_>) -> io::Result<()> {
        let Some(time_us) = self.time_us else { return Ok(()) };
        let Entry { action, address, size, origin, stack } = *entry;
        self.pickle.item()?;
        let pickle = &mut *self.pickle;
        pickle.begin_dictionary();
        pickle.text("action");
        pickle.text(action);
        pickle.text(if action == "oom" { "device_free" } else { "addr" });
        pickle.unsigned(address);
        pickle.text("size");
        pickle.unsigned(size);
        pickle.text("stream");
        pickle.unsigned(origin.stream);
        pickle.text("time_us");
        pickle.integer(time_us);
        pickle.text("compile_context");
        pickle.text("N/A");
        pickle.text("user_metadata");
        pickle.text(if origin.tag == 0 { "" } else { self.stacks.name(origin.tag) });
        pickle.text("pool_id");
        write_pool(origin.pool, self.pools, pickle);
        let stack = if stack == 0 { origin.stack } else { stack };
        if stack != 0 {
            pickle.text("frames");
            self.stacks.write(stack, pickle)?;
        }
        pickle.end_dictionary();
        Ok(())
    }
}

pub(super) fn write_pool(pool: u64, known: &mut HashMap<u64, Shared>, pickle: &mut Pickle<'_>) {
    if let Some(known) = known.get(&pool) {
        pickle.refer(*known);
    } else {
        // A pool of `PyTorch` has two numbers, of which one is 0.
        let graph = pool & !events::POOL_OF_GRAPH;
        pickle.pair(if graph == pool { [0, pool] } else { [graph, 0] });
        known.insert(pool, pickle.share());
    }
}

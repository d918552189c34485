//! What happens to memory, from the begin of a recording on.

use std::collections::{BTreeMap, HashMap};

use stackweave_recording::events::{Event, HostAction, HostState, MemoryEvent, Region};
use stackweave_recording::{ProcessRecording, TimedEvent};

use crate::activity::{Kinds, LiveMemory, LiveRange, text_of};
use crate::error::ExportError;
use crate::formats::pytorch::account::Step;
use crate::formats::pytorch::host::{HostEvent, HostEventKind};
use crate::formats::pytorch::ranges::Touched;
use crate::source::Source;

/// An instant of this name says that an allocation failed.
const OUT_OF_MEMORY: &str = "out of memory";

/// Something that happens to memory.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    /// Memory is allocated, by a thread with this tag.
    Allocate(MemoryEvent, u32),
    Free(MemoryEvent),
    /// An event of a host, on a thread with this tag.
    Host {
        event: HostEvent,
        tag: u32,
    },
    /// Of the account with this number.
    Account {
        number: u64,
        step: Step,
    },
    /// What the thread freed last is not freed after all.
    Keep(u64),
    /// So many bytes were requested, and are not there.
    OutOfMemory {
        size: u64,
        stack: u32,
        tag: u32,
    },
}

/// Events of one process to changes.
pub(super) struct Changes {
    kinds: Kinds,
    /// The frame of each thread's tag.
    tags: HashMap<u32, u32>,
    /// The number of the account that each thread has begun.
    accounts: HashMap<u32, u64>,
    /// How many have begun.
    begun: u64,
}

impl Changes {
    pub(super) fn of(process: &ProcessRecording) -> Self {
        let (tags, accounts) = Default::default();
        Self { kinds: Kinds::of(process), tags, accounts, begun: 0 }
    }

    pub(super) fn of_event(&mut self, timed: &TimedEvent<'_>) -> Option<Change> {
        let event = self.kinds.decode(&timed.event);
        self.of_decoded(timed, &event)
    }

    fn of_decoded(&mut self, timed: &TimedEvent<'_>, decoded: &Event<'_>) -> Option<Change> {
        let tag = || self.tags.get(&timed.thread).copied().unwrap_or(0);
        if let Some(event) = HostEvent::of(decoded) {
            return Some(Change::Host { event, tag: tag() });
        }
        match *decoded {
            Event::Allocate(memory) => Some(Change::Allocate(memory, tag())),
            Event::Free(memory) => Some(Change::Free(memory)),
            Event::Keep { address } => Some(Change::Keep(address)),
            Event::Tag { frame } => {
                self.tags.insert(timed.thread, frame);
                None
            }
            Event::State(state) => self.account(timed.thread, state),
            Event::Instant(instant) if text_of(timed.process.dictionary(), instant.frame) == Some(OUT_OF_MEMORY) => {
                let said = self.kinds.details(&timed.event, decoded, timed.process).object();
                let size = said.get("size").and_then(serde_json::Value::as_u64).unwrap_or(0);
                Some(Change::OutOfMemory { size, stack: instant.stack, tag: tag() })
            }
            _ => None,
        }
    }

    fn account(&mut self, thread: u32, state: HostState) -> Option<Change> {
        let (number, step) = match state {
            HostState::Begin { .. } => {
                self.begun += 1;
                self.accounts.insert(thread, self.begun);
                (self.begun, Step::Begin)
            }
            HostState::End => (self.accounts.remove(&thread)?, Step::End),
            HostState::Segment(row) => (*self.accounts.get(&thread)?, Step::Segment(row)),
            HostState::Block(row) => (*self.accounts.get(&thread)?, Step::Block(row)),
            HostState::Other => return None,
        };
        Some(Change::Account { number, step })
    }
}

/// What there is to show.
pub(super) struct Found {
    /// The devices of each process.
    pub(super) devices: Vec<BTreeMap<i64, DeviceMemory>>,
    /// The number of each process's last account that is whole.
    pub(super) accounts: Vec<Option<u64>>,
    /// Whether anything has a name that a person gave it.
    pub(super) has_names: bool,
}

/// What there is to know of a device before its events are read.
#[derive(Debug, Default)]
pub(super) struct DeviceMemory {
    /// Its addresses.
    pub(super) touched: Touched,
    /// Whether its host records all that `PyTorch`'s allocator does.
    pub(super) is_exact: bool,
}

/// Reads all once, to know which devices there are and where their blocks lie.
pub(super) fn find(source: &Source<'_>) -> Result<Found, ExportError> {
    let mut readers: Vec<(Changes, LiveMemory<()>)> =
        source.processes().iter().map(|process| (Changes::of(process), LiveMemory::default())).collect();
    let devices = readers.iter().map(|_| BTreeMap::new()).collect();
    let mut found = Found { devices, accounts: vec![None; readers.len()], has_names: false };
    let (mut gone, mut left) = (Vec::new(), Vec::new());
    source.visit_events_from_start(&mut |timed| {
        let place = source.index_of(timed.process);
        let (changes, segments) = &mut readers[place];
        let event = changes.kinds.decode(&timed.event);
        found.has_names |= match event {
            Event::Begin(begin) => !begin.is_resumed,
            _ => matches!(event, Event::Tag { .. }),
        };
        let devices = &mut found.devices[place];
        let mut room = Room { segments, gone: &mut gone, left: &mut left };
        match changes.of_decoded(&timed, &event) {
            Some(Change::Allocate(memory, _)) => {
                room.allocate(&memory, &mut devices.entry(memory.region.device()).or_default().touched);
            }
            Some(Change::Free(memory)) => room.free(timed.thread, &memory),
            Some(Change::Host { event, .. }) => {
                let device = devices.entry(event.memory.region.device()).or_default();
                device.is_exact |= !event.kind.is_plain();
                match event.kind {
                    HostEventKind::Memory(HostAction::SegmentFree | HostAction::SegmentUnmap | HostAction::Free) => {
                        room.free(timed.thread, &event.memory);
                    }
                    HostEventKind::Memory(_) => room.allocate(&event.memory, &mut device.touched),
                    _ => {}
                }
            }
            Some(Change::Account { step: Step::Segment(row) | Step::Block(row), .. }) => {
                devices.entry(row.device).or_default().is_exact = true;
            }
            Some(Change::Account { step: Step::End, number }) => found.accounts[place] = Some(number),
            _ => {}
        }
        gone.clear();
        left.clear();
        Ok(())
    })?;
    Ok(found)
}

/// The segments that there are, to know which blocks lie in none.
struct Room<'r> {
    segments: &'r mut LiveMemory<()>,
    gone: &'r mut Vec<LiveRange<()>>,
    left: &'r mut Vec<LiveRange<()>>,
}

impl Room<'_> {
    fn allocate(&mut self, memory: &MemoryEvent, touched: &mut Touched) {
        let MemoryEvent { region, address, size, .. } = *memory;
        if region.is_range() {
            touched.range(address, size);
            self.segments.allocate(memory, (), self.gone, self.left);
        } else if self.segments.range_at(Region::Segment(region.device()), address).is_none() {
            touched.block(address, size);
        }
    }

    fn free(&mut self, thread: u32, memory: &MemoryEvent) {
        if memory.region.is_range() {
            self.segments.free(thread, memory, self.gone, self.left);
        }
    }
}

//! What happens to memory, from the begin of a recording on.

use std::collections::{BTreeMap, HashMap};

use stackweave_core::Role;
use stackweave_recording::events;
use stackweave_recording::{ProcessRecording, TimedEvent};

use crate::activity::{Given, Held, Kinds, LiveMemory, Piece, Taken, Tells, Told, text_of};
use crate::error::ExportError;
use crate::formats::pytorch::account::Step;
use crate::formats::pytorch::ranges::Touched;
use crate::source::Source;

/// An instant of this name says that an allocation failed.
const OUT_OF_MEMORY: &str = "out of memory";

/// Something that happens to memory.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    Take(Taken),
    Give(Given),
    /// A host tells something, on a thread with this tag.
    Host {
        told: Told,
        tag: u32,
    },
    /// Of the account with this number.
    Account {
        number: u64,
        step: Step,
    },
    /// What the thread gave back last was not given back.
    Keep(u64),
    /// So many bytes were asked for, and are not there.
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
        let (event, kind) = (&timed.event, self.kinds.get(timed.event.kind)?);
        let tag = || self.tags.get(&timed.thread).copied().unwrap_or(0);
        if let Some(told) = kind.told(event) {
            return match told.tells {
                Tells::State | Tells::SegmentState | Tells::BlockState => self.account(timed.thread, told),
                _ => Some(Change::Host { told, tag: tag() }),
            };
        }
        match kind.role {
            Role::Allocate | Role::Map => Some(Change::Take(kind.taken(event, tag()))),
            Role::Free | Role::Unmap => Some(Change::Give(kind.given(event))),
            Role::Keep => Some(Change::Keep(kind.address(event))),
            Role::Tag => {
                self.tags.insert(timed.thread, kind.frame(event));
                None
            }
            Role::Instant if text_of(timed.process.dictionary(), kind.frame(event)) == Some(OUT_OF_MEMORY) => {
                let said = kind.details(event, timed.process).object();
                let size = said.get("size").and_then(serde_json::Value::as_u64).unwrap_or(0);
                Some(Change::OutOfMemory { size, stack: kind.stack(event), tag: tag() })
            }
            _ => None,
        }
    }

    fn account(&mut self, thread: u32, told: Told) -> Option<Change> {
        let (number, step) = match told.tells {
            Tells::State if told.flags == events::ACCOUNT_BEGINS => {
                self.begun += 1;
                self.accounts.insert(thread, self.begun);
                (self.begun, Step::Begin)
            }
            Tells::State if told.flags == events::ACCOUNT_ENDS => (self.accounts.remove(&thread)?, Step::End),
            Tells::State => return None,
            _ => (*self.accounts.get(&thread)?, Step::Row(told)),
        };
        Some(Change::Account { number, step })
    }
}

/// What there is to show.
pub(super) struct Found {
    /// The devices of each process.
    pub(super) devices: Vec<BTreeMap<i64, Memory>>,
    /// The number of each process's last account that is whole.
    pub(super) accounts: Vec<Option<u64>>,
    /// Whether anything has a name that a person gave it.
    pub(super) has_names: bool,
}

/// What there is to know of a device before its events are read.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Its addresses.
    pub(super) touched: Touched,
    /// Whether its host tells all that `PyTorch`'s allocator does.
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
        let place = source.place_of(timed.process);
        let (changes, segments) = &mut readers[place];
        let role = changes.kinds.get(timed.event.kind).map(|kind| kind.role);
        found.has_names |= matches!(role, Some(Role::Begin | Role::Tag));
        let devices = &mut found.devices[place];
        let mut room = Room { segments, gone: &mut gone, left: &mut left };
        match changes.of_event(&timed) {
            Some(Change::Take(taken)) => {
                room.take(&taken, &mut devices.entry(taken.held.device()).or_default().touched);
            }
            Some(Change::Give(given)) => room.give(timed.thread, &given),
            Some(Change::Host { told, tag }) => {
                let memory = devices.entry(told.device).or_default();
                memory.is_exact |= !told.tells.is_plain();
                match (told.tells, told.held()) {
                    (Tells::SegmentFree | Tells::SegmentUnmap | Tells::Free, Some(held)) => {
                        room.give(timed.thread, &told.given(held));
                    }
                    (_, Some(held)) => room.take(&told.taken(held, tag), &mut memory.touched),
                    _ => {}
                }
            }
            Some(Change::Account { step: Step::Row(told), .. }) => {
                devices.entry(told.device).or_default().is_exact = true;
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
    gone: &'r mut Vec<Piece<()>>,
    left: &'r mut Vec<Piece<()>>,
}

impl Room<'_> {
    fn take(&mut self, taken: &Taken, touched: &mut Touched) {
        if taken.held.is_range() {
            touched.range(taken.address, taken.size);
            self.segments.take(taken, (), self.gone, self.left);
        } else if self.segments.range_at(Held::Segment(taken.held.device()), taken.address).is_none() {
            touched.block(taken.address, taken.size);
        }
    }

    fn give(&mut self, thread: u32, given: &Given) {
        if given.held.is_range() {
            self.segments.give(thread, given, self.gone, self.left);
        }
    }
}

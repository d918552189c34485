//! What happens to memory, from the begin of a recording on.

use std::collections::{BTreeMap, HashMap};

use stackweave_core::Role;
use stackweave_recording::{ProcessRecording, TimedEvent};

use crate::activity::{Given, Held, Kinds, LiveMemory, Taken, text_of};
use crate::error::ExportError;
use crate::formats::pytorch::ranges::Touched;
use crate::source::Source;

/// An instant of this name says that an allocation failed.
const OUT_OF_MEMORY: &str = "out of memory";

/// Something that happens to memory.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    Take(Taken),
    Give(Given),
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
}

impl Changes {
    pub(super) fn of(process: &ProcessRecording) -> Self {
        Self { kinds: Kinds::of(process), tags: HashMap::new() }
    }

    pub(super) fn of_event(&mut self, timed: &TimedEvent<'_>) -> Option<Change> {
        let (event, kind) = (&timed.event, self.kinds.get(timed.event.kind)?);
        let tag = || self.tags.get(&timed.thread).copied().unwrap_or(0);
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
}

/// What there is to show.
pub(super) struct Found {
    /// The addresses of each device of each process.
    pub(super) devices: Vec<BTreeMap<i64, Touched>>,
    /// Whether anything has a name that a person gave it.
    pub(super) has_names: bool,
}

/// Reads all once, to know which devices there are and where their blocks lie.
pub(super) fn find(source: &Source<'_>) -> Result<Found, ExportError> {
    let mut readers: Vec<(Changes, LiveMemory<()>)> =
        source.processes().iter().map(|process| (Changes::of(process), LiveMemory::default())).collect();
    let mut found = Found { devices: readers.iter().map(|_| BTreeMap::new()).collect(), has_names: false };
    let (mut gone, mut left) = (Vec::new(), Vec::new());
    source.visit_events_from_start(&mut |timed| {
        let place = source.place_of(timed.process);
        let (changes, segments) = &mut readers[place];
        let role = changes.kinds.get(timed.event.kind).map(|kind| kind.role);
        found.has_names |= matches!(role, Some(Role::Begin | Role::Tag));
        match changes.of_event(&timed) {
            Some(Change::Take(taken)) => {
                let device = taken.held.device();
                let touched: &mut Touched = found.devices[place].entry(device).or_default();
                if taken.held.is_range() {
                    touched.range(taken.address, taken.size);
                    segments.take(&taken, (), &mut gone, &mut left);
                } else if segments.range_at(Held::Segment(device), taken.address).is_none() {
                    touched.block(taken.address, taken.size);
                }
            }
            Some(Change::Give(given)) if given.held.is_range() => {
                segments.give(timed.thread, &given, &mut gone, &mut left);
            }
            _ => {}
        }
        gone.clear();
        left.clear();
        Ok(())
    })?;
    Ok(found)
}

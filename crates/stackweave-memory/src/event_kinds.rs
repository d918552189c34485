//! The kinds of events that a memory recorder records.

use stackweave_recording::events::{self, Allocator};
use stackweave_recording::{KindNumber, Recorder};

use crate::host_event::HostEventKind;
use crate::options::MemoryMode;

/// The kinds of a memory recorder, as numbers of its recording.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "each is the event that it is called, as stackweave-recording declares it")]
pub struct MemoryKinds {
    /// By the number of the [`Allocator`].
    pub allocators: [KindNumber; Allocator::ALL.len()],
    pub free: KindNumber,
    pub free_at: KindNumber,
    pub munmap: KindNumber,
    pub kept: KindNumber,
    pub tag: KindNumber,
    /// By the index of the [`HostEventKind`].
    pub host: [KindNumber; HostEventKind::ALL.len()],
    pub usage: KindNumber,
    pub sizes: KindNumber,
    pub total: KindNumber,
}

impl MemoryKinds {
    /// Declares them in the recording. If only sums are recorded, the events that they sum up are not written to the
    /// file. `None` if the recording has too many kinds already.
    pub fn register(recorder: &Recorder, mode: MemoryMode) -> Option<Self> {
        let event = |kind| {
            if mode == MemoryMode::Aggregate { recorder.register_observer_only(kind) } else { recorder.register(kind) }
        };
        let free = event(events::FREE)?;
        let mut allocators = [free; Allocator::ALL.len()];
        for (number, allocator) in allocators.iter_mut().zip(Allocator::ALL) {
            *number = event(allocator.kind())?;
        }
        let tag = event(events::MEMORY_TAG)?;
        let mut host = [tag; HostEventKind::ALL.len()];
        for (index, of) in HostEventKind::ALL.into_iter().enumerate() {
            host[index] = match of {
                HostEventKind::Tag => tag,
                HostEventKind::StateEnd => host[HostEventKind::StateBegin.index()],
                of => event(of.event_kind())?,
            };
        }
        Some(Self {
            allocators,
            free,
            free_at: event(events::FREE_AT)?,
            munmap: event(events::MUNMAP)?,
            kept: event(events::KEPT)?,
            tag,
            host,
            usage: recorder.register(events::MEMORY_USAGE)?,
            sizes: recorder.register(events::MEMORY_SIZES)?,
            total: recorder.register(events::MEMORY_TOTAL)?,
        })
    }

    /// Returns the kind of an event of a host's allocator.
    pub const fn of_host(&self, kind: HostEventKind) -> KindNumber {
        self.host[kind.index()]
    }

    /// Returns the kind of this allocator's allocations.
    pub const fn of(&self, allocator: Allocator) -> KindNumber {
        self.allocators[allocator as usize]
    }
}

//! The kinds of events that a memory recorder records.

use stackweave_recording::events::{self, Allocator};
use stackweave_recording::{KindNumber, Recorder};

use crate::host_event::HostEvent;
use crate::options::Mode;

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
    /// By the place of the [`HostEvent`].
    pub host: [KindNumber; HostEvent::ALL.len()],
    pub usage: KindNumber,
    pub sizes: KindNumber,
    pub total: KindNumber,
}

impl MemoryKinds {
    /// Declares them. Where only sums are wanted, the events that these are of do not go to the file. `None` if the recording has
    /// too many kinds already.
    pub fn register(recorder: &Recorder, mode: Mode) -> Option<Self> {
        let event =
            |kind| if mode == Mode::Aggregate { recorder.register_unwritten(kind) } else { recorder.register(kind) };
        let free = event(events::FREE)?;
        let mut allocators = [free; Allocator::ALL.len()];
        for (number, allocator) in allocators.iter_mut().zip(Allocator::ALL) {
            *number = event(allocator.kind())?;
        }
        let tag = event(events::MEMORY_TAG)?;
        let mut host = [tag; HostEvent::ALL.len()];
        for (place, of) in HostEvent::ALL.into_iter().enumerate() {
            host[place] = match of {
                HostEvent::Tag => tag,
                HostEvent::StateEnd => host[HostEvent::StateBegin.place()],
                of => event(of.kind())?,
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

    /// The kind of what happens in a host's allocator.
    pub const fn of_host(&self, event: HostEvent) -> KindNumber {
        self.host[event.place()]
    }

    /// The kind of what this allocator takes.
    pub const fn of(&self, allocator: Allocator) -> KindNumber {
        self.allocators[allocator as usize]
    }
}

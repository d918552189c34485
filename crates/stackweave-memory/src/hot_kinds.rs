//! The kinds of events that hooks record, as numbers.

use stackweave_core::{Allocator, EventKind};
use stackweave_recording::live::FixedKind;
use stackweave_recording::{KindNumber, Recorder};

use crate::options::Mode;

/// The kinds of the events that are recorded by hooks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HotKinds {
    pub(crate) of_allocators: [FixedKind<3>; Allocator::ALL.len()],
    pub(crate) free: FixedKind<1>,
    pub(crate) free_at: FixedKind<2>,
    pub(crate) munmap: FixedKind<2>,
    pub(crate) kept: FixedKind<1>,
    pub(crate) tag: FixedKind<1>,
    pub(crate) host_allocate: FixedKind<6>,
    pub(crate) host_free: FixedKind<4>,
    pub(crate) segment: FixedKind<6>,
    pub(crate) segment_free: FixedKind<5>,
}

impl HotKinds {
    /// Declares them. `None` if the recording has too many kinds already.
    pub(crate) fn register(recorder: &Recorder, mode: Mode) -> Option<Self> {
        let free = fixed(recorder, mode, EventKind::FREE)?;
        let mut of_allocators = [None; Allocator::ALL.len()];
        for (kind, allocator) in of_allocators.iter_mut().zip(Allocator::ALL) {
            *kind = Some(fixed(recorder, mode, allocator.kind())?);
        }
        let first = of_allocators[0]?;
        Some(Self {
            of_allocators: of_allocators.map(|kind| kind.unwrap_or(first)),
            free,
            free_at: fixed(recorder, mode, EventKind::FREE_AT)?,
            munmap: fixed(recorder, mode, EventKind::MUNMAP)?,
            kept: fixed(recorder, mode, EventKind::KEPT)?,
            tag: fixed(recorder, mode, EventKind::MEMORY_TAG)?,
            host_allocate: fixed(recorder, mode, EventKind::HOST_ALLOCATE)?,
            host_free: fixed(recorder, mode, EventKind::HOST_FREE)?,
            segment: fixed(recorder, mode, EventKind::SEGMENT)?,
            segment_free: fixed(recorder, mode, EventKind::SEGMENT_FREE)?,
        })
    }
}

fn fixed<const WORDS: usize>(recorder: &Recorder, mode: Mode, kind: EventKind) -> Option<FixedKind<WORDS>> {
    number(recorder, mode, kind)?.fixed()
}

/// The number of a kind, whose events do not go to the file where only their sums are wanted.
fn number(recorder: &Recorder, mode: Mode, kind: EventKind) -> Option<KindNumber> {
    if mode == Mode::Aggregate { recorder.register_unwritten(kind) } else { recorder.register(kind) }
}

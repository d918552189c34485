//! The kinds of events that hooks record, as numbers.

use stackweave_core::Allocator;
use stackweave_recording::Recorder;
use stackweave_recording::live::FixedKind;

use crate::kinds::MemoryKinds;
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
        let all = MemoryKinds::register(recorder, mode)?;
        let mut of_allocators = [all.of(Allocator::Malloc).fixed()?; Allocator::ALL.len()];
        for (kind, allocator) in of_allocators.iter_mut().zip(Allocator::ALL) {
            *kind = all.of(allocator).fixed()?;
        }
        Some(Self {
            of_allocators,
            free: all.free.fixed()?,
            free_at: all.free_at.fixed()?,
            munmap: all.munmap.fixed()?,
            kept: all.kept.fixed()?,
            tag: all.tag.fixed()?,
            host_allocate: all.host_allocate.fixed()?,
            host_free: all.host_free.fixed()?,
            segment: all.segment.fixed()?,
            segment_free: all.segment_free.fixed()?,
        })
    }
}

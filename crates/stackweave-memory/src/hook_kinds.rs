//! The kinds of events that hooks record, by number.

use stackweave_recording::Recorder;
use stackweave_recording::events::Allocator;
use stackweave_recording::live::FixedKind;

use crate::event_kinds::MemoryKinds;
use crate::host_event::HostEventKind;
use crate::options::MemoryMode;

/// The kinds of events that hooks record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HookKinds {
    pub(crate) of_allocators: [FixedKind<3>; Allocator::ALL.len()],
    pub(crate) free: FixedKind<1>,
    pub(crate) free_at: FixedKind<2>,
    pub(crate) munmap: FixedKind<2>,
    pub(crate) kept: FixedKind<1>,
    pub(crate) tag: FixedKind<1>,
    /// By the index of the [`HostEventKind`].
    pub(crate) host: [FixedKind<6>; HostEventKind::OF_BLOCKS],
    pub(crate) snapshot: FixedKind<4>,
    pub(crate) out_of_memory: FixedKind<7>,
    pub(crate) annotate: FixedKind<4>,
    pub(crate) state: FixedKind<2>,
    pub(crate) segment_state: FixedKind<7>,
    pub(crate) block_state: FixedKind<8>,
}

impl HookKinds {
    /// Declares them in the recording. `None` if it has too many kinds already.
    pub(crate) fn register(recorder: &Recorder, mode: MemoryMode) -> Option<Self> {
        let all = MemoryKinds::register(recorder, mode)?;
        let mut of_allocators = [all.of(Allocator::Malloc).fixed()?; Allocator::ALL.len()];
        for (kind, allocator) in of_allocators.iter_mut().zip(Allocator::ALL) {
            *kind = all.of(allocator).fixed()?;
        }
        let mut host = [all.of_host(HostEventKind::Allocate).fixed()?; HostEventKind::OF_BLOCKS];
        for (kind, number) in host.iter_mut().zip(all.host) {
            *kind = number.fixed()?;
        }
        Some(Self {
            of_allocators,
            free: all.free.fixed()?,
            free_at: all.free_at.fixed()?,
            munmap: all.munmap.fixed()?,
            kept: all.kept.fixed()?,
            tag: all.tag.fixed()?,
            host,
            snapshot: all.of_host(HostEventKind::Snapshot).fixed()?,
            out_of_memory: all.of_host(HostEventKind::OutOfMemory).fixed()?,
            annotate: all.of_host(HostEventKind::Annotate).fixed()?,
            state: all.of_host(HostEventKind::StateBegin).fixed()?,
            segment_state: all.of_host(HostEventKind::SegmentState).fixed()?,
            block_state: all.of_host(HostEventKind::BlockState).fixed()?,
        })
    }
}

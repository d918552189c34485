//! What the allocator of a host tells: an entry for each event, with what the event says.

use std::io;

use crate::activity::{Given, Held, Piece, Taken, Tells, Told};
use crate::formats::pytorch::segments::is_large;
use crate::formats::pytorch::trace::{Device, Entry, Origin, Trace};

impl Tells {
    /// What `PyTorch` calls it; nothing for what was there before the recording.
    const fn actions(self) -> &'static [&'static str] {
        match self {
            Self::Allocate => &["alloc"],
            Self::Free => &["free_requested", "free_completed"],
            Self::FreeRequested => &["free_requested"],
            Self::FreeCompleted => &["free_completed"],
            Self::Segment => &["segment_alloc"],
            Self::SegmentMap => &["segment_map"],
            Self::SegmentFree => &["segment_free"],
            Self::SegmentUnmap => &["segment_unmap"],
            Self::Snapshot => &["snapshot"],
            Self::OutOfMemory => &["oom"],
            Self::Annotate => &["annotate"],
            Self::Present | Self::SegmentPresent | Self::State | Self::SegmentState | Self::BlockState => &[],
        }
    }

    /// Whether a host tells it that knows no more than what is taken and given back. Its events may be incomplete.
    pub(super) const fn is_plain(self) -> bool {
        matches!(self, Self::Allocate | Self::Free | Self::Segment | Self::SegmentFree)
    }
}

impl Told {
    /// What it is to the host: where that takes or gives back memory.
    pub(super) const fn held(&self) -> Option<Held> {
        match self.tells {
            Tells::Allocate | Tells::Present | Tells::Free | Tells::FreeRequested | Tells::FreeCompleted => {
                Some(Held::Block(self.device))
            }
            Tells::Segment | Tells::SegmentPresent | Tells::SegmentMap | Tells::SegmentFree | Tells::SegmentUnmap => {
                Some(Held::Segment(self.device))
            }
            _ => None,
        }
    }

    pub(super) const fn taken(&self, held: Held, tag: u32) -> Taken {
        let Self { address, size, stack, stream, pool, .. } = *self;
        Taken { address, size, stack, tag, held, stream, pool }
    }

    pub(super) const fn given(&self, held: Held) -> Given {
        let Self { address, size, stack, .. } = *self;
        Given { address, size, stack, held }
    }

    pub(super) const fn origin(&self, tag: u32) -> Origin {
        let Self { stack, stream, pool, size, .. } = *self;
        let is_expandable = matches!(self.tells, Tells::SegmentMap);
        Origin { stack, tag, stream, pool, asked: size, is_large: is_large(size), is_expandable }
    }
}

impl Device {
    /// A host tells something of this device.
    pub(super) fn host(&mut self, told: &Told, tag: u32, trace: &mut Trace<'_, '_>) -> io::Result<()> {
        if let Some(account) = &mut self.account {
            account.and_then(told, tag);
        }
        let known = self.apply(told, tag);
        let or_known = |said: u64, known: Option<u64>| if said == 0 { known.unwrap_or(0) } else { said };
        let size = or_known(told.size, known.map(|piece| piece.value.asked.min(piece.size)));
        // What happens on a stack that was not recorded is shown where the memory comes from.
        let stack = if told.stack == 0 { known.map_or(0, |piece| piece.value.stack) } else { told.stack };
        let tag = if told.tells == Tells::Annotate { told.frame } else { tag };
        let address = if told.tells == Tells::OutOfMemory { told.bytes } else { told.address };
        let origin = Origin { stack, ..told.origin(tag) };
        for action in told.tells.actions() {
            trace.entry(&Entry { action, address, size, origin: &origin, stack: 0 })?;
        }
        Ok(())
    }

    /// Changes what is taken. Gives what was known of memory that is given back.
    pub(super) fn apply(&mut self, told: &Told, tag: u32) -> Option<Piece<Origin>> {
        let held = told.held()?;
        self.whole = None;
        let origin = told.origin(tag);
        let known = match told.tells {
            Tells::Allocate | Tells::Segment | Tells::SegmentMap => {
                if !held.is_range() {
                    self.pending.remove(&told.address);
                }
                self.live.take(&told.taken(held, tag), origin, &mut self.gone, &mut self.come);
                None
            }
            Tells::Present | Tells::SegmentPresent => {
                // What has happened since then is newer.
                let is_known = match held {
                    Held::Block(device) => self.live.block_at(device, told.address).is_some(),
                    _ => self.live.range_at(held, told.address).is_some(),
                };
                if !is_known {
                    self.live.take(&told.taken(held, tag), origin, &mut self.gone, &mut self.come);
                }
                None
            }
            Tells::FreeCompleted => self.pending.remove(&told.address).or_else(|| self.give(told, held)),
            Tells::FreeRequested => {
                let known = self.give(told, held);
                let unknown = || {
                    let value = Origin { stack: 0, ..origin };
                    Piece { held, address: told.address, size: told.size, value }
                };
                self.pending.insert(told.address, known.unwrap_or_else(unknown));
                known
            }
            _ => self.give(told, held),
        };
        self.gone.clear();
        self.come.clear();
        known
    }

    fn give(&mut self, told: &Told, held: Held) -> Option<Piece<Origin>> {
        self.live.give(0, &told.given(held), &mut self.gone, &mut self.come);
        self.gone.first().copied()
    }
}

//! What an allocator says of all that it has at one moment: the last account that is whole takes the place of what events tell.

use core::mem;

use crate::activity::{Held, Piece, Taken, Tells, Told};
use crate::formats::pytorch::ranges::Clusters;
use crate::formats::pytorch::segments::{Block, BlockState, Segment, filled};
use crate::formats::pytorch::trace::{Device, Origin};
use stackweave_recording::events;

/// A step of an account.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Begin,
    Row(Told),
    End,
}

/// The segments of one device.
#[derive(Debug, Default)]
pub(super) struct Account {
    pub(super) segments: Vec<Segment>,
    /// What happened since it began, which may not be in it.
    later: Vec<(Told, u32)>,
}

impl Account {
    pub(super) fn and_then(&mut self, told: &Told, tag: u32) {
        if told.held().is_some() {
            self.later.push((*told, tag));
        }
    }

    fn row(&mut self, row: &Told) {
        let Told { address, size, stream, pool, stack, .. } = *row;
        let mut origin = Origin { stack, stream, pool, ..Origin::default() };
        if row.tells == Tells::SegmentState {
            origin.is_large = row.flags & events::SEGMENT_IS_LARGE != 0;
            origin.is_expandable = row.flags & events::SEGMENT_GROWS != 0;
            self.segments.push(Segment { address, size, origin, blocks: Vec::new() });
            return;
        }
        let Some(segment) = self.segments.last_mut() else { return };
        let state = match row.flags {
            flags if flags & events::BLOCK_IS_ALLOCATED != 0 => BlockState::Allocated,
            flags if flags & events::BLOCK_IS_ACTIVE != 0 => BlockState::Pending,
            _ => BlockState::Free,
        };
        origin.asked = row.bytes;
        segment.blocks.push(Block { address, size, state, origin });
    }
}

impl Device {
    /// A step of the account that counts.
    pub(super) fn step(&mut self, step: &Step) {
        match step {
            Step::Begin => self.account = Some(Account::default()),
            Step::Row(told) if told.device == self.number => {
                if let Some(account) = &mut self.account {
                    account.row(told);
                }
            }
            Step::Row(_) => {}
            Step::End => self.install(),
        }
    }

    /// From now on what is taken is what the account says, and what has happened since.
    fn install(&mut self) {
        // An account without a segment may be one of other devices only: events know better.
        let Some(mut account) = self.account.take().filter(|account| !account.segments.is_empty()) else { return };
        account.segments.sort_by_key(|segment| segment.address);
        let known = mem::take(&mut self.live);
        let pending = mem::take(&mut self.pending);
        self.clusters = Clusters::default();
        for segment in &mut account.segments {
            // Who has got it an account may not say: events do.
            let before = known.range_at(Held::Segment(self.number), segment.address);
            if let Some(piece) = before.filter(|_| segment.origin.stack == 0) {
                segment.origin.stack = piece.value.stack;
            }
            let Segment { address, size, origin, .. } = *segment;
            segment.blocks.sort_by_key(|block| block.address);
            segment.blocks = filled(&segment.blocks, address, address.saturating_add(size));
            self.put(Held::Segment(self.number), (address, size), origin);
            for block in segment.blocks.iter_mut().filter(|block| block.state != BlockState::Free) {
                // Nor does it say tags, nor the stack of a block that was given back.
                let before = known.block_at(self.number, block.address).or_else(|| pending.get(&block.address));
                if let Some(piece) = before {
                    block.origin.tag = piece.value.tag;
                    if block.origin.stack == 0 {
                        block.origin.stack = piece.value.stack;
                    }
                }
                let (held, at) = (Held::Block(self.number), (block.address, block.size));
                match block.state {
                    BlockState::Allocated => self.put(held, at, block.origin),
                    BlockState::Pending => {
                        let piece = Piece { held, address: block.address, size: block.size, value: block.origin };
                        self.pending.insert(block.address, piece);
                    }
                    BlockState::Free => {}
                }
            }
        }
        self.whole = Some(account.segments);
        for (told, tag) in account.later {
            self.apply(&told, tag);
        }
    }

    fn put(&mut self, held: Held, (address, size): (u64, u64), origin: Origin) {
        let Origin { stack, tag, stream, pool, .. } = origin;
        let taken = Taken { address, size, stack, tag, held, stream, pool };
        self.live.take(&taken, origin, &mut self.gone, &mut self.come);
        self.gone.clear();
        self.come.clear();
    }
}

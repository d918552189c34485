//! What an allocator says of all that it has at one moment: the last account that is whole takes the place of what events say.

use core::mem;

use crate::activity::LiveRange;
use crate::formats::pytorch::host::HostEvent;
use crate::formats::pytorch::ranges::Clusters;
use crate::formats::pytorch::segments::{Block, BlockState, Segment, filled};
use crate::formats::pytorch::trace::{Device, Origin};
use stackweave_recording::events::{HostStateRow, MemoryEvent, Region};

/// A step of an account.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Begin,
    Segment(HostStateRow),
    Block(HostStateRow),
    End,
}

/// The segments of one device.
#[derive(Debug, Default)]
pub(super) struct Account {
    pub(super) segments: Vec<Segment>,
    /// What happened since it began, which may not be in it.
    later: Vec<(HostEvent, u32)>,
}

impl Account {
    pub(super) fn and_then(&mut self, event: &HostEvent, tag: u32) {
        if event.region().is_some() {
            self.later.push((*event, tag));
        }
    }

    fn segment(&mut self, row: &HostStateRow) {
        let HostStateRow { address, size, stream, pool, stack, .. } = *row;
        let (is_large, is_expandable) = (row.is_large(), row.grows());
        let origin = Origin { stack, stream, pool, is_large, is_expandable, ..Origin::default() };
        self.segments.push(Segment { address, size, origin, blocks: Vec::new() });
    }

    fn block(&mut self, row: &HostStateRow) {
        let Some(segment) = self.segments.last_mut() else { return };
        let HostStateRow { address, size, requested: asked, stream, pool, stack, .. } = *row;
        let state = match (row.is_allocated(), row.is_active()) {
            (true, _) => BlockState::Allocated,
            (false, true) => BlockState::Pending,
            (false, false) => BlockState::Free,
        };
        let origin = Origin { stack, stream, pool, asked, ..Origin::default() };
        segment.blocks.push(Block { address, size, state, origin });
    }
}

impl Device {
    /// A step of the account that counts.
    pub(super) fn step(&mut self, step: &Step) {
        match step {
            Step::Begin => self.account = Some(Account::default()),
            Step::Segment(row) | Step::Block(row) if row.device != self.number => {}
            Step::Segment(row) => self.account.iter_mut().for_each(|account| account.segment(row)),
            Step::Block(row) => self.account.iter_mut().for_each(|account| account.block(row)),
            Step::End => self.install(),
        }
    }

    /// From now on what is live is what the account says, and what has happened since.
    fn install(&mut self) {
        // An account without a segment may be one of other devices only: events know better.
        let Some(mut account) = self.account.take().filter(|account| !account.segments.is_empty()) else { return };
        account.segments.sort_by_key(|segment| segment.address);
        let known = mem::take(&mut self.live);
        let pending = mem::take(&mut self.pending);
        self.clusters = Clusters::default();
        for segment in &mut account.segments {
            // Who has got it an account may not say: events do.
            let before = known.range_at(Region::Segment(self.number), segment.address);
            if let Some(piece) = before.filter(|_| segment.origin.stack == 0) {
                segment.origin.stack = piece.value.stack;
            }
            let Segment { address, size, origin, .. } = *segment;
            segment.blocks.sort_by_key(|block| block.address);
            segment.blocks = filled(&segment.blocks, address, address.saturating_add(size));
            self.put(Region::Segment(self.number), (address, size), origin);
            for block in segment.blocks.iter_mut().filter(|block| block.state != BlockState::Free) {
                // Nor does it say tags, nor the stack of a block that was freed.
                let before = known.block_at(self.number, block.address).or_else(|| pending.get(&block.address));
                if let Some(piece) = before {
                    block.origin.tag = piece.value.tag;
                    if block.origin.stack == 0 {
                        block.origin.stack = piece.value.stack;
                    }
                }
                let (region, at) = (Region::Block(self.number), (block.address, block.size));
                match block.state {
                    BlockState::Allocated => self.put(region, at, block.origin),
                    BlockState::Pending => {
                        let piece = LiveRange { region, address: block.address, size: block.size, value: block.origin };
                        self.pending.insert(block.address, piece);
                    }
                    BlockState::Free => {}
                }
            }
        }
        self.whole = Some(account.segments);
        for (event, tag) in account.later {
            self.apply(&event, tag);
        }
    }

    fn put(&mut self, region: Region, (address, size): (u64, u64), origin: Origin) {
        self.live.allocate(&MemoryEvent::new(region, address, size), origin, &mut self.gone, &mut self.come);
        self.gone.clear();
        self.come.clear();
    }
}

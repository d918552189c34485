//! Which blocks of the memory of processes a snapshot contains: all, or of very many the largest and those that are
//! live at the end. The blocks of devices are all there.

use std::ops::Range;

/// More blocks take the viewer minutes, and 100 MB.
const MAX_BLOCKS: u64 = 200_000;

/// A block that is live at the end: its number in the order of allocations of its process, from 1, and its size.
pub(super) type NumberedBlock = (u64, u64);

/// Returns whether blocks are left out of a recording with this many events at most.
pub(super) const fn may_be_too_many(events: u64) -> bool {
    events > MAX_BLOCKS
}

/// The number of blocks of each size. Sizes of 128 bytes and more are counted in steps of less than 2 percent.
#[derive(Debug, Default)]
pub(super) struct BlockSizes {
    counts: Vec<u64>,
    total: u64,
}

/// The number of steps of the first sizes, and of each further power of 2.
const STEPS: usize = 64;

impl BlockSizes {
    pub(super) fn add(&mut self, size: u64) {
        let step = step_of(size);
        if self.counts.len() <= step {
            self.counts.resize(step + 1, 0);
        }
        self.counts[step] += 1;
        self.total += 1;
    }

    /// Returns the smallest size such that at most [`MAX_BLOCKS`] blocks are not smaller: 0 if all can be kept.
    pub(super) fn smallest_kept(&self) -> u64 {
        if self.total <= MAX_BLOCKS {
            return 0;
        }
        let mut kept = 0;
        let too_many = self.counts.iter().rposition(|count| {
            kept += count;
            kept > MAX_BLOCKS
        });
        too_many.map_or(0, |step| size_of(step + 1))
    }
}

/// Returns the step of a size.
#[expect(clippy::cast_possible_truncation, reason = "the number is less than two times the steps")]
const fn step_of(size: u64) -> usize {
    let power = ((size | STEPS as u64).ilog2() - STEPS.ilog2()) as usize;
    power * STEPS + (size >> power) as usize
}

/// Returns the smallest size of a step.
const fn size_of(step: usize) -> u64 {
    if step < 2 * STEPS {
        return step as u64;
    }
    let power = step / STEPS - 1;
    ((step - power * STEPS) as u64) << power
}

/// The blocks of one process that the snapshot contains.
#[derive(Debug, Default)]
pub(super) struct KeptBlocks {
    /// Smaller blocks are left out, unless they are live at the end.
    min_size: u64,
    /// The numbers of smaller blocks that are kept, in order.
    live: Vec<u64>,
    /// The index in `live` of the next one.
    next_live: usize,
    /// The number of blocks so far.
    blocks: u64,
    pub(super) left_out: LeftOut,
}

/// The blocks that were left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LeftOut {
    pub(super) blocks: u64,
    pub(super) bytes: u64,
    /// The bytes of all blocks.
    pub(super) of_bytes: u64,
}

impl KeptBlocks {
    /// Counts a block that is allocated, and returns whether the snapshot contains it.
    pub(super) fn takes(&mut self, size: u64) -> bool {
        self.blocks += 1;
        self.left_out.of_bytes = self.left_out.of_bytes.saturating_add(size);
        if size >= self.min_size {
            return true;
        }
        let is_live = self.live.get(self.next_live) == Some(&self.blocks);
        if is_live {
            self.next_live += 1;
        } else {
            self.left_out.blocks += 1;
            self.left_out.bytes = self.left_out.bytes.saturating_add(size);
        }
        is_live
    }
}

/// Selects the blocks of each process, whose live blocks are given. Returns them with the smallest size of those that
/// are freed.
pub(super) fn select(sizes: &BlockSizes, live: Vec<Vec<NumberedBlock>>, wanted: Option<u64>) -> (Vec<KeptBlocks>, u64) {
    let min_size = wanted.unwrap_or_else(|| sizes.smallest_kept());
    let mut live_sizes = BlockSizes::default();
    live.iter().flatten().for_each(|(_, size)| live_sizes.add(*size));
    let small: Range<u64> = live_sizes.smallest_kept()..min_size;
    let of_process = |live: Vec<NumberedBlock>| {
        let mut live: Vec<u64> =
            live.into_iter().filter(|(_, size)| small.contains(size)).map(|(number, _)| number).collect();
        live.sort_unstable();
        KeptBlocks { min_size, live, ..KeptBlocks::default() }
    };
    (live.into_iter().map(of_process).collect(), min_size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_is_in_one_step() {
        for size in (0..5000).chain([1 << 20, (1 << 20) + 16_383, (1 << 20) + 16_384, u64::MAX - 1, u64::MAX]) {
            let step = step_of(size);
            assert!(size_of(step) <= size, "{size}");
            assert!(size == u64::MAX || size_of(step + 1) > size || step + 1 == 59 * STEPS, "{size}");
            assert!(size < 128 || (size - size_of(step)) * 50 < size, "{size}");
        }
    }

    #[test]
    fn the_largest_blocks_are_kept_and_small_ones_that_are_live() {
        let mut sizes = BlockSizes::default();
        for (size, count) in [(16, MAX_BLOCKS), (100, MAX_BLOCKS - 10), (5000, 10)] {
            (0..count).for_each(|_| sizes.add(size));
        }
        assert_eq!(sizes.smallest_kept(), 17);
        let (mut kept, min_size) = select(&sizes, vec![vec![(4, 16), (2, 16), (1, 100)]], None);
        assert_eq!(min_size, 17);
        assert_eq!([100, 16, 16, 16, 5000].map(|size| kept[0].takes(size)), [true, true, false, true, true]);
        assert_eq!(kept[0].left_out, LeftOut { blocks: 1, bytes: 16, of_bytes: 5148 });
        let (mut kept, _) = select(&sizes, vec![Vec::new()], Some(0));
        assert!(kept[0].takes(0));
        assert_eq!(BlockSizes::default().smallest_kept(), 0);
    }
}

//! The last stack of a thread, which makes interning the next one cheaper.
//!
//! Hot file: no allocation, no lock, async-signal-safe.

use stackweave_core::{RawFrame, StackId};
use stackweave_store::{CallerHashes, StackTable};

use crate::buffers::DEPTH;

/// The maximum number of frames of a woven stack.
pub(crate) const WOVEN_DEPTH: usize = 2 * DEPTH;

/// The last woven stack. All zeros are a valid value: no stack yet.
pub(crate) struct LastWovenStack {
    hashes: CallerHashes<WOVEN_DEPTH>,
    /// Two stacks that alternate: the last one, and the one that is being woven.
    stacks: [[RawFrame; WOVEN_DEPTH]; 2],
    /// The index of the last one.
    last: usize,
    /// The range of the last stack that remains after skipping and cutting.
    start: usize,
    end: usize,
    id: Option<StackId>,
}

impl LastWovenStack {
    /// Returns the memory for weaving the next stack.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> &mut [RawFrame] {
        &mut self.stacks[(self.last & 1) ^ 1]
    }

    /// Interns these frames of the stack that was just woven, which becomes the last one.
    #[inline(always)]
    pub(crate) fn intern(&mut self, table: &StackTable, start: usize, end: usize) -> Option<StackId> {
        let (first, second) = self.stacks.split_at(1);
        let (last, next) = if self.last & 1 == 0 { (&first[0], &second[0]) } else { (&second[0], &first[0]) };
        let (last, next) = (&last[self.start..self.end], &next[start..end]);
        let known = common_callers(last, next);
        let is_same = known == next.len() && known == last.len() && self.id.is_some();
        let id = if is_same { self.id } else { table.intern_hashed(self.hashes.hash(next, known), next) };
        (self.last, self.start, self.end, self.id) = (self.last ^ 1, start, end, id);
        id
    }
}

/// Returns how many of the outermost frames two stacks share.
#[inline(always)]
fn common_callers(one: &[RawFrame], other: &[RawFrame]) -> usize {
    const BLOCK: usize = 8;
    let most = one.len().min(other.len());
    let (one, other) = (&one[one.len() - most..], &other[other.len() - most..]);
    let blocks = one.rchunks_exact(BLOCK).zip(other.rchunks_exact(BLOCK));
    let differs = |(one, other): &(&[RawFrame], &[RawFrame])| {
        one.iter().zip(*other).fold(0, |bits, (one, other)| bits | (one.to_bits() ^ other.to_bits())) != 0
    };
    let same = BLOCK * blocks.take_while(|blocks| !differs(blocks)).count();
    let rest = one[..most - same].iter().rev().zip(other[..most - same].iter().rev());
    same + rest.take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackweave_core::CodeAddress;

    fn frames(words: impl IntoIterator<Item = u64>) -> Vec<RawFrame> {
        words.into_iter().map(|word| RawFrame::native(CodeAddress::return_address(word))).collect()
    }

    #[test]
    fn common_callers_are_counted_from_the_outside() {
        for length in 0..40 {
            let one = frames(0..length);
            for changed in 0..length {
                let mut other = one.clone();
                other[changed as usize] = frames([1000])[0];
                assert_eq!(common_callers(&one, &other) as u64, length - changed - 1);
            }
            assert_eq!(common_callers(&one, &one) as u64, length);
            let deeper = frames((100..103).chain(0..length));
            assert_eq!(common_callers(&one, &deeper) as u64, length);
            assert_eq!(common_callers(&deeper, &one) as u64, length);
        }
    }
}

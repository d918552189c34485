//! A batch of stacks, with their distinct frames.

use std::ops::Range;
use std::sync::Arc;

use stackweave_core::{RawFrame, StackId};
use stackweave_store::StackTable;

use crate::known_frames::Fragment;
use crate::word_hash::WordMap;

/// Distinct frames in the order of their first use.
#[derive(Debug, Default)]
pub(crate) struct DistinctFrames {
    frames: Vec<RawFrame>,
    indexes: WordMap<RawFrame, u32>,
}

impl DistinctFrames {
    /// Returns the index of `frame`; a new frame gets one.
    #[expect(clippy::cast_possible_truncation, reason = "no batch has 2^32 distinct frames")]
    pub(crate) fn index(&mut self, frame: RawFrame) -> u32 {
        *self.indexes.entry(frame).or_insert_with(|| {
            self.frames.push(frame);
            self.frames.len() as u32 - 1
        })
    }

    pub(crate) fn as_slice(&self) -> &[RawFrame] {
        &self.frames
    }
}

/// Stacks as indexes of their distinct frames.
///
/// Most stacks of a batch share most callers with the stack before. So the walk outward compares each frame with the
/// last stack, and copies the rest where they meet.
#[derive(Debug, Default)]
pub(crate) struct StackBatch {
    frames: DistinctFrames,
    /// The frames of all stacks, one stack after another, each innermost first.
    steps: Vec<Step>,
    stacks: WordMap<StackId, Range<usize>>,
}

/// A frame of a stack.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// The stack whose innermost frame it is.
    stack: StackId,
    /// The index of its distinct frame.
    index: u32,
}

impl StackBatch {
    pub(crate) fn of(table: &StackTable, ids: &[StackId]) -> Self {
        let mut batch = Self::default();
        let mut last = 0..0;
        for id in ids {
            if !batch.stacks.contains_key(id) {
                last = batch.walk(table, *id, &last);
                batch.stacks.insert(*id, last.clone());
            }
        }
        batch
    }

    fn walk(&mut self, table: &StackTable, id: StackId, last: &Range<usize>) -> Range<usize> {
        let start = self.steps.len();
        let (mut stack, mut depth) = (id, table.len(id) as usize);
        for frame in table.frames(id) {
            let same_depth = last.end.checked_sub(depth).filter(|step| last.contains(step));
            if let Some(step) = same_depth
                && self.steps[step].stack == stack
            {
                self.steps.extend_from_within(step..last.end);
                break;
            }
            let index = self.frames.index(frame);
            self.steps.push(Step { stack, index });
            stack = table.parent(stack).unwrap_or(StackId::EMPTY);
            depth -= 1;
        }
        start..self.steps.len()
    }

    /// Returns the frames to be named.
    pub(crate) fn frames(&self) -> &[RawFrame] {
        self.frames.as_slice()
    }

    /// Returns the stacks, with the `fragments` of [`StackBatch::frames`]. Equal ids share their stack.
    pub(crate) fn write(&self, ids: &[StackId], fragments: &[Fragment]) -> Vec<Fragment> {
        let mut written: WordMap<StackId, Fragment> = WordMap::default();
        let mut outward = Vec::new();
        let mut write = |id: &StackId| {
            let steps = self.stacks.get(id).map_or(&[][..], |steps| &self.steps[steps.clone()]);
            for step in steps {
                outward.extend(fragments[step.index as usize].iter().map(Arc::clone));
            }
            outward.drain(..).collect::<Fragment>()
        };
        ids.iter().map(|id| Arc::clone(written.entry(*id).or_insert_with(|| write(id)))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Frame, FrameKind};
    use stackweave_core::CodeAddress;

    fn frame(name: u8) -> RawFrame {
        RawFrame::native(CodeAddress::return_address(name.into()))
    }

    fn intern(stacks: &StackTable, names: &str) -> StackId {
        stacks.intern(&names.bytes().map(frame).collect::<Vec<_>>()).unwrap()
    }

    /// Names a frame by its letter; `b` has another function inlined into it.
    fn fragments(batch: &StackBatch) -> Vec<Fragment> {
        let named = |name: &str| Arc::new(Frame::named(FrameKind::Native, name.into()));
        let fragment = |frame: &RawFrame| match frame.to_bits() {
            98 => [named("i"), named("b")].into(),
            bits => [named(&char::from_u32(u32::try_from(bits).unwrap()).unwrap().to_string())].into(),
        };
        batch.frames().iter().map(fragment).collect()
    }

    fn text(stack: &Fragment) -> String {
        stack.iter().map(|frame| &*frame.name).collect()
    }

    #[test]
    fn stacks_are_complete_whatever_they_share_with_the_last_one() {
        let names = ["dcba", "cba", "xcba", "", "dcba", "aaa", "aa", "aaaaa", "zdcba", "dcb", "a"];
        let stacks = StackTable::new();
        let ids = names.map(|names| intern(&stacks, names));
        let batch = StackBatch::of(&stacks, &ids);
        assert_eq!(batch.frames(), [b'd', b'c', b'b', b'a', b'x', b'z'].map(frame));
        let written = batch.write(&ids, &fragments(&batch));
        let expected = names.map(|names| names.replace('b', "ib"));
        assert_eq!(written.iter().map(text).collect::<Vec<_>>(), expected);
        assert!(Arc::ptr_eq(&written[0], &written[4]));
    }

    #[test]
    fn an_unknown_id_has_no_frames() {
        let stacks = StackTable::new();
        let ids = [StackId::EMPTY, StackId::new(77).unwrap()];
        let batch = StackBatch::of(&stacks, &ids);
        assert!(batch.frames().is_empty());
        assert!(batch.write(&ids, &[]).iter().all(|stack| stack.is_empty()));
    }
}

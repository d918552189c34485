//! What a resolver keeps: the frames that captured words turned out to be.

use std::collections::HashSet;
use std::sync::Arc;

use stackweave_core::{RawFrame, RawFrameKind};

use crate::frame::Frame;
use crate::module_history::{Change, ModuleHistory};
use crate::word_hash::WordMap;

/// What one word of a stack stands for, or a whole stack: frames, innermost first.
pub(crate) type Fragment = Arc<[Arc<Frame>]>;

#[derive(Debug, Default)]
pub(crate) struct KnownFrames {
    modules: Arc<ModuleHistory>,
    fragments: WordMap<RawFrame, Fragment>,
    frames: SharedFrames,
}

/// What a frame turned out to be.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) frame: RawFrame,
    pub(crate) names: Vec<Frame>,
    /// Whether it will be the same the next time.
    pub(crate) is_lasting: bool,
}

impl KnownFrames {
    pub(crate) fn modules(&self) -> &Arc<ModuleHistory> {
        &self.modules
    }

    /// Replaces the modules, and forgets the names of addresses that belong to others now. Returns whether it did:
    /// not if they are no longer `seen`.
    pub(crate) fn change_modules(&mut self, seen: &Arc<ModuleHistory>, change: &Change) -> bool {
        if !Arc::ptr_eq(&self.modules, seen) {
            return false;
        }
        self.modules = Arc::clone(&change.history);
        if !change.taken.is_empty() {
            self.fragments.retain(|frame, _| match frame.kind() {
                RawFrameKind::Native(address) => !change.has_taken(address.lookup()),
                RawFrameKind::Python { .. } | RawFrameKind::Script { .. } | RawFrameKind::Label(_) => true,
            });
        }
        true
    }

    pub(crate) fn get(&self, frame: RawFrame) -> Option<Fragment> {
        self.fragments.get(&frame).map(Arc::clone)
    }

    /// Takes an answer in. If it lasts it is kept, but a native one only if `modules`, by which it was found, still
    /// hold; another thread's that was there before wins.
    pub(crate) fn take(&mut self, answer: Answer, modules: Option<&Arc<ModuleHistory>>) -> Fragment {
        let is_native = matches!(answer.frame.kind(), RawFrameKind::Native(_));
        let holds = !is_native || modules.is_some_and(|used| Arc::ptr_eq(&self.modules, used));
        if !(answer.is_lasting && holds) {
            return self.share(answer.names);
        }
        if let Some(known) = self.get(answer.frame) {
            return known;
        }
        let fragment = self.share(answer.names);
        self.fragments.insert(answer.frame, Arc::clone(&fragment));
        fragment
    }

    /// The frames, each of them the one that equals it.
    pub(crate) fn share(&mut self, frames: Vec<Frame>) -> Fragment {
        frames.into_iter().map(|frame| self.frames.share(frame)).collect()
    }
}

/// Equal frames once, as long as anybody has them.
#[derive(Debug, Default)]
struct SharedFrames {
    frames: HashSet<Arc<Frame>>,
    /// How many there may be before those that nobody has are dropped.
    limit: usize,
}

const FIRST_LIMIT: usize = 4096;

impl SharedFrames {
    fn share(&mut self, frame: Frame) -> Arc<Frame> {
        if let Some(same) = self.frames.get(&frame) {
            return Arc::clone(same);
        }
        if self.frames.len() >= self.limit {
            self.frames.retain(|frame| Arc::strong_count(frame) > 1);
            self.limit = FIRST_LIMIT.max(2 * self.frames.len());
        }
        let frame = Arc::new(frame);
        self.frames.insert(Arc::clone(&frame));
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::FrameKind;

    fn frame(name: usize) -> Frame {
        Frame::named(FrameKind::Extra, name.to_string().into())
    }

    #[test]
    fn equal_frames_are_one() {
        let mut known = KnownFrames::default();
        let (one, other) = (known.share(vec![frame(1), frame(2)]), known.share(vec![frame(2)]));
        assert!(Arc::ptr_eq(&one[1], &other[0]));
        assert!(!Arc::ptr_eq(&one[0], &other[0]));
    }

    #[test]
    fn frames_that_nobody_has_go() {
        let mut frames = SharedFrames::default();
        let held: Vec<_> = (0..10).map(|name| frames.share(frame(name))).collect();
        for name in 10..10 * FIRST_LIMIT {
            frames.share(frame(name));
            assert!(frames.frames.len() <= FIRST_LIMIT, "{}", frames.frames.len());
        }
        for (name, held) in held.iter().enumerate() {
            assert!(Arc::ptr_eq(held, &frames.share(frame(name))), "{name}");
        }
    }
}

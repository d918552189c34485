//! The cache of a resolver: the frames of captured words.

use std::collections::HashSet;
use std::sync::Arc;

use stackweave_core::{RawFrame, RawFrameKind};

use crate::frame::Frame;
use crate::module_history::{ModuleChanges, ModuleHistory};
use crate::word_hash::WordMap;

/// The frames of a captured word, or of a whole stack, innermost first.
pub(crate) type Fragment = Arc<[Arc<Frame>]>;

#[derive(Debug, Default)]
pub(crate) struct KnownFrames {
    modules: Arc<ModuleHistory>,
    fragments: WordMap<RawFrame, Fragment>,
    frames: SharedFrames,
}

/// The result of resolving a frame.
#[derive(Debug)]
pub(crate) struct NamedFrame {
    pub(crate) frame: RawFrame,
    pub(crate) names: Vec<Frame>,
    /// Whether the next result will be the same.
    pub(crate) is_lasting: bool,
}

impl KnownFrames {
    pub(crate) fn modules(&self) -> &Arc<ModuleHistory> {
        &self.modules
    }

    /// Replaces the modules, and forgets the names of addresses that now belong to others. Returns whether it did: not
    /// if `seen` is outdated.
    pub(crate) fn change_modules(&mut self, expected: &Arc<ModuleHistory>, change: &ModuleChanges) -> bool {
        if !Arc::ptr_eq(&self.modules, expected) {
            return false;
        }
        self.modules = Arc::clone(&change.history);
        if !change.reassigned.is_empty() {
            self.fragments.retain(|frame, _| match frame.kind() {
                RawFrameKind::Native(address) => !change.is_reassigned(address.lookup()),
                RawFrameKind::Python { .. } | RawFrameKind::Script { .. } | RawFrameKind::Label(_) => true,
            });
        }
        true
    }

    pub(crate) fn get(&self, frame: RawFrame) -> Option<Fragment> {
        self.fragments.get(&frame).map(Arc::clone)
    }

    /// Adds a result. It is kept if it is lasting, but a native one only if `modules`, with which it was resolved, are
    /// still current; an existing result of another thread takes precedence.
    pub(crate) fn take(&mut self, result: NamedFrame, modules: Option<&Arc<ModuleHistory>>) -> Fragment {
        let is_native = matches!(result.frame.kind(), RawFrameKind::Native(_));
        let holds = !is_native || modules.is_some_and(|used| Arc::ptr_eq(&self.modules, used));
        if !(result.is_lasting && holds) {
            return self.share(result.names);
        }
        if let Some(known) = self.get(result.frame) {
            return known;
        }
        let fragment = self.share(result.names);
        self.fragments.insert(result.frame, Arc::clone(&fragment));
        fragment
    }

    /// Replaces each frame by an equal one that exists.
    pub(crate) fn share(&mut self, frames: Vec<Frame>) -> Fragment {
        frames.into_iter().map(|frame| self.frames.share(frame)).collect()
    }
}

/// Distinct frames, as long as they are used elsewhere.
#[derive(Debug, Default)]
struct SharedFrames {
    frames: HashSet<Arc<Frame>>,
    /// The number of frames at which unused ones are dropped.
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
    fn equal_frames_are_shared() {
        let mut known = KnownFrames::default();
        let (one, other) = (known.share(vec![frame(1), frame(2)]), known.share(vec![frame(2)]));
        assert!(Arc::ptr_eq(&one[1], &other[0]));
        assert!(!Arc::ptr_eq(&one[0], &other[0]));
    }

    #[test]
    fn unused_frames_are_dropped() {
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

//! The interface to the names of captured frames.

use crate::{ModuleList, RawFrame, SourceLocation};

/// The process in which the stacks were captured.
///
/// A resolver always uses the same one, and calls it while it holds none of its own locks: a call may take the
/// lock of an interpreter, and may resolve stacks itself (except for [`FrameNames::modules`], which every batch
/// with a native frame calls).
pub trait FrameNames {
    /// Describes a Python or script frame; `None` if it is no longer known.
    ///
    /// A Python frame is queried once: the meaning of its word never changes. A script frame is queried in every
    /// batch, because the number of its source may have been reused.
    fn locate(&self, frame: RawFrame) -> Option<SourceLocation>;

    /// Returns whether [`FrameNames::frames_behind`] can return any frames. Called once in each batch with a
    /// Python frame.
    fn has_extra_frames(&self) -> bool;

    /// Returns the frames that a code generator knows for this line of a generated file, innermost first. Called
    /// once for each distinct line in a batch, and again in each batch.
    fn frames_behind(&self, filename: &str, line: u32) -> Vec<SourceLocation>;

    /// Returns the modules that are loaded now.
    fn modules(&self) -> ModuleList;
}

/// A process without names: it has no interpreter, and its modules are not queried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoNames;

impl FrameNames for NoNames {
    fn locate(&self, _: RawFrame) -> Option<SourceLocation> {
        None
    }

    fn has_extra_frames(&self) -> bool {
        false
    }

    fn frames_behind(&self, _: &str, _: u32) -> Vec<SourceLocation> {
        Vec::new()
    }

    fn modules(&self) -> ModuleList {
        ModuleList::default()
    }
}

//! Who tells what captured words mean.

use crate::{ModuleList, RawFrame, SourceLocation};

/// The process that the stacks were captured in.
///
/// A resolver asks the same one every time, with none of its locks held: an answer may take the lock of an
/// interpreter, and may resolve stacks itself (but for [`Names::modules`], which every batch with a native frame asks).
pub trait Names {
    /// What a Python or script frame is; `None` if nobody knows any more.
    ///
    /// A Python frame is asked about once: its word means the same for ever. A script frame is asked about in
    /// every batch: the number of its source may be another's by then.
    fn locate(&self, frame: RawFrame) -> Option<SourceLocation>;

    /// Whether [`Names::frames_behind`] can have an answer at all. Asked once in each batch with a Python frame.
    fn has_extra_frames(&self) -> bool;

    /// The frames that a code generator knows behind this line of a file, innermost first. Asked once for each
    /// distinct line in a batch, and in each batch anew.
    fn frames_behind(&self, filename: &str, line: u32) -> Vec<SourceLocation>;

    /// The modules that are loaded now.
    fn modules(&self) -> ModuleList;
}

/// A process that knows no names: one without an interpreter, whose modules nobody asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoNames;

impl Names for NoNames {
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

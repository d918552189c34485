//! The source of frame names for our recordings: this process.

use stackweave_core::{FrameNames, ModuleList, RawFrame, SourceLocation};

#[derive(Debug)]
pub(super) struct ThisProcess;

impl FrameNames for ThisProcess {
    fn locate(&self, frame: RawFrame) -> Option<SourceLocation> {
        stackweave_capture::locate(frame)
    }

    fn has_extra_frames(&self) -> bool {
        stackweave_capture::has_extra_frames()
    }

    fn frames_behind(&self, filename: &str, line: u32) -> Vec<SourceLocation> {
        stackweave_capture::frames_behind(filename, line)
    }

    fn modules(&self) -> ModuleList {
        stackweave_unwind::modules()
    }
}

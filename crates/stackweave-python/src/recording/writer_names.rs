//! Names frames for the recording's writer.

use std::sync::Arc;

use pyo3::prelude::*;
use stackweave_core::{FrameNames, ModuleList, RawFrame, SourceLocation};

/// Names frames of this process for a writer that must not wait for the GIL.
///
/// Modules and Python code are queried without the GIL. Only threads that flush or stop query code generators, with the GIL.
struct WriterNames;

pub(super) fn names() -> Arc<dyn FrameNames + Send + Sync> {
    Arc::new(WriterNames)
}

impl FrameNames for WriterNames {
    fn locate(&self, frame: RawFrame) -> Option<SourceLocation> {
        stackweave_capture::locate(frame)
    }

    fn has_extra_frames(&self) -> bool {
        stackweave_capture::has_extra_frames()
    }

    fn frames_behind(&self, filename: &str, line: u32) -> Vec<SourceLocation> {
        Python::try_attach(|_| stackweave_capture::frames_behind(filename, line)).unwrap_or_default()
    }

    fn modules(&self) -> ModuleList {
        stackweave_unwind::modules()
    }
}

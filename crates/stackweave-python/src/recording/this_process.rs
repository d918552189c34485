//! Names for what is recorded here, told while the recording goes on.

use std::sync::Arc;

use pyo3::prelude::*;
use stackweave_core::{ModuleList, Names, RawFrame, SourceLocation};

/// This process, for a writer that must not wait for the GIL.
///
/// Modules and Python's code are told without it. Who generates code is asked with it, by threads that flush or stop.
struct ThisProcess;

pub(super) fn names() -> Arc<dyn Names + Send + Sync> {
    Arc::new(ThisProcess)
}

impl Names for ThisProcess {
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

//! The resolver that names stacks, one per process.

use stackweave_core::{ModuleList, RawFrame, SourceLocation};
use stackweave_profile::{FrameNames, Resolver};
use stackweave_store::PerProcess;
use stackweave_symbolize::SymbolizerOptions;

use crate::boundary::CallError;
use crate::extra_frames;
use crate::status::stackweave_status;

/// Names frames that were captured in this process.
pub(crate) struct ProcessNames;

impl FrameNames for ProcessNames {
    fn locate(&self, frame: RawFrame) -> Option<SourceLocation> {
        stackweave_capture::locate(frame)
    }

    fn has_extra_frames(&self) -> bool {
        extra_frames::any() || stackweave_capture::has_extra_frames()
    }

    fn frames_behind(&self, filename: &str, line: u32) -> Vec<SourceLocation> {
        let found = extra_frames::frames_behind(filename, line);
        if found.is_empty() { stackweave_capture::frames_behind(filename, line) } else { found }
    }

    fn modules(&self) -> ModuleList {
        stackweave_unwind::modules()
    }
}

/// Returns the resolver of this process. A forked child creates its own, because another thread of the parent may have held a
/// lock of the parent's resolver at the fork.
pub(crate) fn resolver() -> Result<&'static Resolver, CallError> {
    static RESOLVER: PerProcess<Resolver> = PerProcess::new();
    RESOLVER.get_or_try_make(|process| {
        let mut options = SymbolizerOptions::from_environment()
            .map_err(|error| CallError::new(stackweave_status::STACKWEAVE_BAD_ARGUMENT, error.to_string()))?;
        options.perf_map_of = Some(process);
        Ok(Resolver::new(options))
    })
}

//! Who names stacks, one for each process.

use stackweave_core::{ModuleList, RawFrame, SourceLocation};
use stackweave_profile::{Names, Resolver};
use stackweave_store::PerProcess;
use stackweave_symbolize::Options;

use crate::border::Fault;
use crate::extra_frames;
use crate::status::stackweave_status;

/// This process, in which the stacks were captured.
pub(crate) struct ThisProcess;

impl Names for ThisProcess {
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

/// The resolver of this process. A forked child makes its own: of its parent's, another thread may have held a lock.
pub(crate) fn resolver() -> Result<&'static Resolver, Fault> {
    static RESOLVER: PerProcess<Resolver> = PerProcess::new();
    RESOLVER.get_or_try_make(|process| {
        let mut options = Options::from_environment()
            .map_err(|error| Fault::new(stackweave_status::STACKWEAVE_BAD_ARGUMENT, error.to_string()))?;
        options.perf_map_of = Some(process);
        Ok(Resolver::new(options))
    })
}

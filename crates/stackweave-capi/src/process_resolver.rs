//! Who names stacks, one for each process.

use std::process;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use stackweave_core::{ModuleList, RawFrame, SourceLocation};
use stackweave_profile::{Names, Resolver};
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

struct Current {
    process: u32,
    resolver: Resolver,
}

static CURRENT: AtomicPtr<Current> = AtomicPtr::new(ptr::null_mut());

/// The resolver of this process. A forked child makes its own: of its parent's, another thread may have held a lock.
pub(crate) fn resolver() -> Result<&'static Resolver, Fault> {
    let process = process::id();
    let known = CURRENT.load(Ordering::Acquire);
    // SAFETY: null, or leaked below and never changed.
    if let Some(current) = unsafe { known.as_ref() }
        && current.process == process
    {
        return Ok(&current.resolver);
    }
    let mut options = Options::from_environment()
        .map_err(|error| Fault::new(stackweave_status::STACKWEAVE_BAD_ARGUMENT, error.to_string()))?;
    options.perf_map_of = Some(process);
    let made = Box::into_raw(Box::new(Current { process, resolver: Resolver::new(options) }));
    // Several threads may come here at once; all use the one that was first.
    match CURRENT.compare_exchange(known, made, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: leaked just now.
        Ok(_) => Ok(unsafe { &(*made).resolver }),
        Err(first) => {
            // SAFETY: never shared; and what is in the static was leaked by another thread.
            unsafe {
                drop(Box::from_raw(made));
                Ok(&(*first).resolver)
            }
        }
    }
}

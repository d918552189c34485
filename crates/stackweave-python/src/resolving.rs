//! Names for captured stacks, looked up while other threads run Python.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use stackweave_core::{CodeAddress, ModuleList, RawFrame, RawFrameKind, SourceLocation, StackId};
use stackweave_memory::Quiet;
use stackweave_profile::{Frame, Names, Resolver};
use stackweave_store::PerProcess;
use stackweave_symbolize::Options;

use crate::errors::Error;

/// A stack's frames, innermost first.
pub(crate) type Stack = Arc<[Arc<Frame>]>;

/// This process, in which the stacks were captured.
///
/// Python forks with the GIL held. So whatever takes a lock that a forked child will need, and can't make anew, is asked
/// with the GIL held: the loader, and who has registered code generators.
struct ThisProcess {
    has_extra_frames: bool,
    /// The modules that are loaded, until they are asked for.
    modules: Mutex<Option<ModuleList>>,
}

impl ThisProcess {
    fn look(_py: Python<'_>, has_native: bool) -> Self {
        let modules = has_native.then(stackweave_unwind::modules);
        Self { has_extra_frames: stackweave_capture::has_extra_frames(), modules: Mutex::new(modules) }
    }

    /// What looking up takes is not the program's, unless it asks code of the program's.
    fn be_quiet(&self) -> Option<Quiet> {
        (!self.has_extra_frames).then(Quiet::begin)
    }
}

impl Names for ThisProcess {
    fn locate(&self, frame: RawFrame) -> Option<SourceLocation> {
        stackweave_capture::locate(frame)
    }

    fn has_extra_frames(&self) -> bool {
        self.has_extra_frames
    }

    fn frames_behind(&self, filename: &str, line: u32) -> Vec<SourceLocation> {
        Python::try_attach(|_| stackweave_capture::frames_behind(filename, line)).unwrap_or_default()
    }

    fn modules(&self) -> ModuleList {
        let known = self.modules.lock().unwrap_or_else(PoisonError::into_inner).take();
        known.or_else(|| Python::try_attach(|_| stackweave_unwind::modules())).unwrap_or_default()
    }
}

/// The stacks with these ids. Releases the GIL meanwhile.
pub(crate) fn resolve(py: Python<'_>, ids: &[StackId]) -> PyResult<Vec<Stack>> {
    let resolver = resolver()?;
    let stacks = stackweave_capture::stacks();
    let is_native = |frame: RawFrame| matches!(frame.kind(), RawFrameKind::Native(_));
    let has_native = ids.iter().any(|id| stacks.frames(*id).any(is_native));
    let process = ThisProcess::look(py, has_native);
    Ok(py.detach(|| {
        let _quiet = process.be_quiet();
        resolver.resolve(stacks, ids, &process)
    }))
}

/// The frames at these return addresses. Releases the GIL meanwhile.
pub(crate) fn resolve_addresses(py: Python<'_>, addresses: &[CodeAddress]) -> PyResult<Vec<Stack>> {
    let resolver = resolver()?;
    let process = ThisProcess::look(py, true);
    Ok(py.detach(|| {
        let _quiet = process.be_quiet();
        resolver.resolve_addresses(addresses, &process)
    }))
}

/// The resolver of this process. A forked child makes its own: of its parent's, another thread may have held a lock.
pub(crate) fn resolver() -> PyResult<&'static Resolver> {
    static RESOLVER: PerProcess<Resolver> = PerProcess::new();
    RESOLVER.get_or_try_make(|process| {
        let mut options = Options::from_environment().map_err(Error::from)?;
        // Python's own trampolines, and other generated code, are named in this process' perf map, if there is one.
        options.perf_map_of = Some(process);
        Ok(Resolver::new(options))
    })
}

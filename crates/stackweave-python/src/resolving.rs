//! Resolves captured stacks while other threads run Python.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use stackweave_core::{CodeAddress, ModuleList, RawFrame, RawFrameKind, SourceLocation, StackId};
use stackweave_memory::SuppressGuard;
use stackweave_profile::{Frame, FrameNames, Resolver};
use stackweave_store::PerProcess;
use stackweave_symbolize::SymbolizerOptions;

use crate::errors::Error;

/// The frames of a stack, innermost first.
pub(crate) type ResolvedStack = Arc<[Arc<Frame>]>;

/// Names frames that were captured in this process.
///
/// Python forks with the GIL held. So queries of the loader and of the registered code generators are made with the GIL held: they
/// take locks that a forked child needs and can't create again.
struct ResolverNames {
    has_extra_frames: bool,
    /// The loaded modules, until the first query.
    modules: Mutex<Option<ModuleList>>,
}

impl ResolverNames {
    fn new(_py: Python<'_>, has_native: bool) -> Self {
        let modules = has_native.then(stackweave_unwind::modules);
        Self { has_extra_frames: stackweave_capture::has_extra_frames(), modules: Mutex::new(modules) }
    }

    /// Excludes allocations of the lookup from a memory recording, unless the lookup calls code of the program.
    fn suppress_recording(&self) -> Option<SuppressGuard> {
        (!self.has_extra_frames).then(SuppressGuard::begin)
    }
}

impl FrameNames for ResolverNames {
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

/// Returns the named frames of stacks. Releases the GIL during the lookup.
pub(crate) fn resolve(py: Python<'_>, ids: &[StackId]) -> PyResult<Vec<ResolvedStack>> {
    let resolver = resolver()?;
    let stacks = stackweave_capture::stacks();
    let is_native = |frame: RawFrame| matches!(frame.kind(), RawFrameKind::Native(_));
    let has_native = ids.iter().any(|id| stacks.frames(*id).any(is_native));
    let process = ResolverNames::new(py, has_native);
    Ok(py.detach(|| {
        let _suppress = process.suppress_recording();
        resolver.resolve(stacks, ids, &process)
    }))
}

/// Returns the named frames at return addresses. Releases the GIL during the lookup.
pub(crate) fn resolve_addresses(py: Python<'_>, addresses: &[CodeAddress]) -> PyResult<Vec<ResolvedStack>> {
    let resolver = resolver()?;
    let process = ResolverNames::new(py, true);
    Ok(py.detach(|| {
        let _suppress = process.suppress_recording();
        resolver.resolve_addresses(addresses, &process)
    }))
}

/// Returns the resolver of this process. A forked child creates its own, because another thread of the parent may have held a
/// lock of the parent's resolver at the fork.
pub(crate) fn resolver() -> PyResult<&'static Resolver> {
    static RESOLVER: PerProcess<Resolver> = PerProcess::new();
    RESOLVER.get_or_try_make(|process| {
        let mut options = SymbolizerOptions::from_environment().map_err(Error::from)?;
        // The perf map of this process, if there is one, names Python's trampolines and other generated code.
        options.perf_map_of = Some(process);
        Ok(Resolver::new(options))
    })
}

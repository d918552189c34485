//! The resolver: names the frames of stacks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stackweave_core::{CodeAddress, FrameNames, RawFrame, RawFrameKind, StackId};
use stackweave_store::StackTable;
use stackweave_symbolize::{Symbolizer, SymbolizerOptions};

use crate::frame::{Frame, FrameKind};
use crate::known_frames::{Fragment, KnownFrames, NamedFrame};
use crate::module_history::ModuleHistory;
use crate::native_frames;
use crate::stack_batch::{DistinctFrames, StackBatch};

/// Names the frames of stacks, and keeps the names.
///
/// Can be shared between threads. Its lock protects the cache, and is not held while a [`FrameNames`] or the symbolizer
/// is called. A forked child creates its own resolver: the lock may be held by a thread that does not exist in the
/// child.
///
/// Modules that were seen and then unloaded stay known, for the addresses that were captured in them. If another module
/// was loaded at their place, it gets the addresses that are resolved from then on, and no earlier name is kept: even
/// an address of an old stack then belongs to the new module. A library that is loaded and unloaded between two batches
/// has no names, unless [`Resolver::see_modules`] was called in between.
#[derive(Debug)]
pub struct Resolver {
    symbolizer: Symbolizer,
    known: Mutex<KnownFrames>,
}

impl Resolver {
    /// Creates a resolver with these options for native addresses.
    pub fn new(options: SymbolizerOptions) -> Self {
        Self { symbolizer: Symbolizer::new(options), known: Mutex::default() }
    }

    /// Resolves the stacks with these ids, each innermost first, in the same order.
    ///
    /// A native address becomes several frames if calls were inlined; all but the outermost of these are
    /// [`Frame::is_inlined`]. A Python frame is followed, outward, by its extra frames. Equal ids share their stack,
    /// and equal frames are one `Arc`, in this batch and in all that still exist. An id that is not of `stacks` has no
    /// frames.
    pub fn resolve(&self, stacks: &StackTable, ids: &[StackId], names: &dyn FrameNames) -> Vec<Arc<[Arc<Frame>]>> {
        let batch = StackBatch::of(stacks, ids);
        batch.write(ids, &self.fragments(batch.frames(), names))
    }

    /// Resolves the frames of each of these addresses, innermost first, in the same order: several if calls were
    /// inlined.
    pub fn resolve_addresses(&self, addresses: &[CodeAddress], names: &dyn FrameNames) -> Vec<Arc<[Arc<Frame>]>> {
        let mut frames = DistinctFrames::default();
        let indexes: Vec<u32> = addresses.iter().map(|address| frames.index(RawFrame::native(*address))).collect();
        let fragments = self.fragments(frames.as_slice(), names);
        indexes.into_iter().map(|index| Arc::clone(&fragments[index as usize])).collect()
    }

    /// Records the modules that are loaded now, so that addresses in them can be resolved after they are unloaded. Each
    /// batch with a native frame does the same.
    pub fn see_modules(&self, names: &dyn FrameNames) {
        self.modules(names);
    }

    /// Returns the symbolizer, for its statistics.
    pub fn symbolizer(&self) -> &Symbolizer {
        &self.symbolizer
    }

    /// Resolves `frames`, which are distinct.
    fn fragments(&self, frames: &[RawFrame], names: &dyn FrameNames) -> Vec<Fragment> {
        let is_native = |frame: &RawFrame| matches!(frame.kind(), RawFrameKind::Native(_));
        let modules = frames.iter().any(is_native).then(|| self.modules(names));
        let known: Vec<Option<Fragment>> = {
            let known = self.lock();
            frames.iter().map(|frame| known.get(*frame)).collect()
        };
        let new = frames.iter().zip(&known).filter(|(_, known)| known.is_none()).map(|(frame, _)| *frame);
        let answers = self.look_up(&new.collect::<Vec<_>>(), modules.as_deref(), names);
        let mut fragments: Vec<Fragment> = if answers.is_empty() {
            known.into_iter().flatten().collect()
        } else {
            let mut kept = self.lock();
            let mut answers = answers.into_iter().map(|answer| kept.take(answer, modules.as_ref()));
            known.into_iter().filter_map(|known| known.or_else(|| answers.next())).collect()
        };
        debug_assert_eq!(fragments.len(), frames.len());
        self.add_extra_frames(&mut fragments, names);
        fragments
    }

    /// Looks up `frames`, in the same order. Called without the lock.
    fn look_up(&self, frames: &[RawFrame], modules: Option<&ModuleHistory>, names: &dyn FrameNames) -> Vec<NamedFrame> {
        let address = |frame: &RawFrame| match frame.kind() {
            RawFrameKind::Native(address) => Some(address),
            RawFrameKind::Python { .. } | RawFrameKind::Script { .. } | RawFrameKind::Label(_) => None,
        };
        let addresses: Vec<CodeAddress> = frames.iter().filter_map(address).collect();
        let resolved = match modules {
            Some(modules) if !addresses.is_empty() => self.symbolizer.resolve(&addresses, modules.known()),
            _ => Vec::new(),
        };
        let mut resolved = resolved.iter();
        let answer = |frame: &RawFrame| match frame.kind() {
            RawFrameKind::Native(address) => Some(native_frames::resolved_frame(address, resolved.next()?)),
            RawFrameKind::Python { .. } => Some(located(*frame, FrameKind::Python, names)),
            RawFrameKind::Script { .. } => Some(located(*frame, FrameKind::Script, names)),
            RawFrameKind::Label(_) => Some(located(*frame, FrameKind::Span, names)),
        };
        frames.iter().filter_map(answer).collect()
    }

    /// Inserts after each Python frame the frames of the source that a code generator made it from.
    fn add_extra_frames(&self, fragments: &mut [Fragment], names: &dyn FrameNames) {
        let is_python = |fragment: &Fragment| fragment.iter().any(|frame| frame.kind == FrameKind::Python);
        if !fragments.iter().any(is_python) || !names.has_extra_frames() {
            return;
        }
        let mut lines: HashMap<(Arc<str>, u32), Fragment> = HashMap::new();
        for fragment in fragments.iter_mut() {
            let Some((filename, line)) = python_line(fragment) else { continue };
            let behind = lines.entry((Arc::clone(filename), line)).or_insert_with(|| {
                let locations = names.frames_behind(filename, line).into_iter();
                let frames = locations.map(|location| Frame::located(FrameKind::Extra, location)).collect();
                self.lock().share(frames)
            });
            if !behind.is_empty() {
                *fragment = fragment.iter().chain(behind.iter()).map(Arc::clone).collect();
            }
        }
    }

    /// Queries the loaded modules. If the modules changed meanwhile, it queries again: an older result must not replace
    /// a newer one.
    fn modules(&self, names: &dyn FrameNames) -> Arc<ModuleHistory> {
        loop {
            let seen = Arc::clone(self.lock().modules());
            let Some(change) = seen.after(names.modules()) else { return seen };
            if self.lock().change_modules(&seen, &change) {
                if !change.reassigned.is_empty() {
                    self.symbolizer.retain(change.history.known());
                }
                return change.history;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, KnownFrames> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn located(frame: RawFrame, kind: FrameKind, names: &dyn FrameNames) -> NamedFrame {
    let location = names.locate(frame);
    let is_lasting = kind == FrameKind::Python && location.is_some();
    let unknown = || Frame::named(kind, Frame::UNKNOWN.into());
    let found = location.map_or_else(unknown, |location| Frame::located(kind, location));
    NamedFrame { frame, names: vec![found], is_lasting }
}

fn python_line(fragment: &Fragment) -> Option<(&Arc<str>, u32)> {
    let frame = fragment.iter().find(|frame| frame.kind == FrameKind::Python)?;
    frame.filename.as_ref().zip(frame.position.line)
}

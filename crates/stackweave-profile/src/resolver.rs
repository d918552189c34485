//! The resolver: stacks in, named frames out.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stackweave_core::{CodeAddress, Names, RawFrame, RawFrameKind, StackId};
use stackweave_store::StackTable;
use stackweave_symbolize::{Options, Symbolizer};

use crate::batch::{Batch, DistinctFrames};
use crate::frame::{Frame, FrameKind};
use crate::known_frames::{Answer, Fragment, KnownFrames};
use crate::module_history::ModuleHistory;
use crate::native_frames;

/// Names the frames of stacks, and keeps the names.
///
/// May be shared between threads. Its one lock is held while it looks at what it keeps, and never while a [`Names`] or
/// the symbolizer is asked. A forked child makes a resolver of its own: this lock may be another thread's that the
/// child does not have.
///
/// Modules that were seen and then unloaded stay known, for the addresses that were captured in them. Where another
/// was loaded since, it gets the addresses that are resolved from then on, and no name is kept from before: also the
/// address of an old stack that lies there is then the new module's. What was never seen can't be known: a library
/// that is loaded and unloaded between two batches has no names, unless [`Resolver::see_modules`] was called in between.
#[derive(Debug)]
pub struct Resolver {
    symbolizer: Symbolizer,
    known: Mutex<KnownFrames>,
}

impl Resolver {
    /// A resolver that looks native addresses up in this way.
    pub fn new(options: Options) -> Self {
        Self { symbolizer: Symbolizer::new(options), known: Mutex::default() }
    }

    /// The stacks with these ids, each innermost first, in the same order.
    ///
    /// A native address becomes several frames where calls were inlined; all but the outermost of these are
    /// [`Frame::is_inlined`]. A Python frame is followed, outward, by its extra frames. Equal ids share their stack, and
    /// equal frames are one `Arc`, in this batch and all that are still held. An id that `stacks` has not given has no
    /// frames.
    pub fn resolve(&self, stacks: &StackTable, ids: &[StackId], names: &dyn Names) -> Vec<Arc<[Arc<Frame>]>> {
        let batch = Batch::of(stacks, ids);
        batch.write(ids, &self.fragments(batch.frames(), names))
    }

    /// The frames at each of these addresses, innermost first, in the same order: one, or more where calls were inlined.
    pub fn resolve_addresses(&self, addresses: &[CodeAddress], names: &dyn Names) -> Vec<Arc<[Arc<Frame>]>> {
        let mut frames = DistinctFrames::default();
        let places: Vec<u32> = addresses.iter().map(|address| frames.place(RawFrame::native(*address))).collect();
        let fragments = self.fragments(frames.as_slice(), names);
        places.into_iter().map(|place| Arc::clone(&fragments[place as usize])).collect()
    }

    /// Takes note of the modules that are loaded now, so that addresses in them can be resolved after they are
    /// unloaded. Each batch with a native frame does the same.
    pub fn see_modules(&self, names: &dyn Names) {
        self.modules(names);
    }

    /// The symbolizer behind it, for its statistics.
    pub fn symbolizer(&self) -> &Symbolizer {
        &self.symbolizer
    }

    /// What each of `frames`, which are distinct, stands for.
    fn fragments(&self, frames: &[RawFrame], names: &dyn Names) -> Vec<Fragment> {
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

    /// What each of `frames` is, in the same order. Called with no lock held.
    fn look_up(&self, frames: &[RawFrame], modules: Option<&ModuleHistory>, names: &dyn Names) -> Vec<Answer> {
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
            RawFrameKind::Native(address) => Some(native_frames::answer(address, resolved.next()?)),
            RawFrameKind::Python { .. } => Some(located(*frame, FrameKind::Python, names)),
            RawFrameKind::Script { .. } => Some(located(*frame, FrameKind::Script, names)),
            RawFrameKind::Label(_) => Some(located(*frame, FrameKind::Label, names)),
        };
        frames.iter().filter_map(answer).collect()
    }

    /// Puts behind each Python frame what a code generator made it from.
    fn add_extra_frames(&self, fragments: &mut [Fragment], names: &dyn Names) {
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

    /// Asks which modules are loaded. If others were seen meanwhile, it asks again: an older look must not undo a
    /// newer one.
    fn modules(&self, names: &dyn Names) -> Arc<ModuleHistory> {
        loop {
            let seen = Arc::clone(self.lock().modules());
            let Some(change) = seen.after(names.modules()) else { return seen };
            if self.lock().change_modules(&seen, &change) {
                if !change.taken.is_empty() {
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

fn located(frame: RawFrame, kind: FrameKind, names: &dyn Names) -> Answer {
    let location = names.locate(frame);
    let is_lasting = kind == FrameKind::Python && location.is_some();
    let unknown = || Frame::named(kind, Frame::UNKNOWN.into());
    let found = location.map_or_else(unknown, |location| Frame::located(kind, location));
    Answer { frame, names: vec![found], is_lasting }
}

fn python_line(fragment: &Fragment) -> Option<(&Arc<str>, u32)> {
    let frame = fragment.iter().find(|frame| frame.kind == FrameKind::Python)?;
    frame.filename.as_ref().zip(frame.position.line)
}

//! The walk along the cached last stack: unchanged frames are not read in full again.
//!
//! A frame whose address, code, instruction and caller equal those of its entry gets what was written for it the last
//! time ([`cached_run`](super::cached_run)). A changed frame is read in the ordinary way, and the walk continues along
//! the cache where the chain returns to it.
//!
//! Hot file: no allocation, no lock, no GIL. Not for signal handlers, which may find frames incomplete.

use stackweave_core::{SourceStop, SourceWalkResult, StackPointer};

use super::MAX_HIDDEN;
use super::cached_frame::WrittenFrame;
use super::cached_run::{CachedRun, copy_renewed, run};
use super::frame_by_frame::FrameOutput;
use super::frame_chain::{ChainStep, FrameChain, StepKind};
use super::source_frames::{CodeIds, FrameBuffers, SourceFrames, is_entered};
use super::stack_cache::StackCache;
use crate::memory::is_plausible;

/// The state of one walk.
struct WalkReplay<'a, F, C, const CAPACITY: usize> {
    chain: F,
    cache: StackCache<'a, CAPACITY>,
    output: SourceFrames<'a, C>,
    /// The next frame.
    frame: u64,
    /// The position of the entry that it may have.
    position: usize,
    /// The entry from which on the walk follows the cache, and how many frames were written before.
    on_cache: Option<(usize, usize)>,
    /// The number of frames that had an entry that was useless.
    useless_entries: usize,
}

/// After this many useless entries, the stack is treated as a different one.
const MAX_USELESS: usize = 4;

/// Walks from `frame` on, and stores the stack in the cache.
///
/// # Safety
/// `frame` is the top of this chain, which does not change. The code ids in the cache are still those of the code
/// objects.
#[inline(always)]
pub(super) unsafe fn walk<F: FrameChain, C: CodeIds, const CAPACITY: usize>(
    mut chain: F,
    frame: u64,
    mut cache: StackCache<'_, CAPACITY>,
    mut buffers: FrameBuffers<'_>,
    codes: &C,
) -> SourceWalkResult {
    let start = cache.start();
    let mut on_cache = None;
    let mut same = CachedRun { position: start, ..CachedRun::default() };
    if frame != 0 && cache.address(start) == frame {
        on_cache = Some((start, 0));
        // SAFETY: the entry has the address of the first frame.
        same = unsafe { run(&mut chain, cache.entries(0), same, &mut buffers) };
        cache.count_replayed(same.position - start);
        if same.position == CAPACITY && cache.address(CAPACITY) == 0 {
            // Without shims, the eval loops of the frames may have changed.
            let is_unchanged = F::HAS_SHIMS;
            return SourceWalkResult { len: same.len, stop: SourceStop::EndOfStack, inside: None, is_unchanged };
        }
    }
    let frame = if on_cache.is_some() { cache.address(same.position) } else { frame };
    cache.begin();
    let output = SourceFrames::after(buffers, codes, same.len, same.activation_start);
    let position = same.position;
    let mut replay = WalkReplay { chain, cache, output, frame, position, on_cache, useless_entries: 0 };
    // SAFETY: passed on to the caller.
    let stop = unsafe { replay.walk() };
    let WalkReplay { chain, cache, output, frame, on_cache, .. } = replay;
    if matches!(stop, SourceStop::EndOfStack | SourceStop::DepthLimit) {
        let (position, written) = on_cache.unwrap_or((CAPACITY, output.len));
        cache.close(position, output.written(written), (frame, chain.c_frame()));
    }
    SourceWalkResult { len: output.len, stop, ..SourceWalkResult::default() }
}

impl<F: FrameChain, C: CodeIds, const CAPACITY: usize> WalkReplay<'_, F, C, CAPACITY> {
    /// # Safety
    /// As for [`walk`].
    #[inline(always)]
    unsafe fn walk(&mut self) -> SourceStop {
        let mut hidden = 0;
        loop {
            self.find_entry();
            // SAFETY: the entry at the position has the address of the frame, the next of the chain.
            if self.on_cache.is_some() && unsafe { self.is_unchanged() } {
                // SAFETY: as above.
                unsafe { self.replay() };
            }
            if !is_plausible(self.frame) {
                self.chain.loop_without_frame();
                return if self.frame == 0 { SourceStop::EndOfStack } else { SourceStop::BadFrame };
            }
            let before = self.chain;
            // SAFETY: the frame is the next of the chain.
            let step = unsafe { self.chain.step(self.frame) };
            match step.kind {
                StepKind::Frame(_) if self.output.is_full() => {
                    self.chain = before;
                    // SAFETY: as above.
                    return unsafe { self.cut() };
                }
                StepKind::Bad => return SourceStop::BadFrame,
                StepKind::Frame(_) => {}
                StepKind::Shim | StepKind::Hidden => hidden += 1,
            }
            if hidden > MAX_HIDDEN {
                return SourceStop::BadFrame;
            }
            if let Err(stop) = self.write_step(&step) {
                return stop;
            }
            self.frame = step.previous;
        }
    }

    /// Leaves the cache if the frame is not the next one in it, and checks whether the cache has it elsewhere.
    #[inline(always)]
    fn find_entry(&mut self) {
        if self.position < CAPACITY && self.cache.address(self.position) == self.frame {
            if self.on_cache.is_none() {
                self.on_cache = Some((self.position, self.output.len));
            }
            return;
        }
        self.leave_cache();
        self.position = CAPACITY;
        if self.useless_entries < MAX_USELESS
            && let Some(position) = self.cache.find(self.frame)
        {
            self.position = position;
            self.on_cache = Some((position, self.output.len));
        }
    }

    #[inline(always)]
    fn leave_cache(&mut self) {
        if let Some((start, _)) = self.on_cache.take() {
            if start == self.position {
                self.useless_entries += 1;
            } else {
                self.cache.push_entries(start, self.position);
                self.output.mark_unsure();
            }
        }
    }

    /// Returns whether the frame is at the instruction of its entry. If not, a run along the cache would end where it
    /// begins, and cost more than reading the frame.
    ///
    /// # Safety
    /// The entry at the position has the address of the next frame of the chain.
    #[inline(always)]
    unsafe fn is_unchanged(&self) -> bool {
        // SAFETY: passed on to the caller.
        let (word, cached) = (unsafe { F::word(self.frame) }, self.cache.word(self.position));
        word == cached || (F::HAS_SHIMS && word == !cached)
    }

    /// Follows the cache as far as it is valid, and there is room.
    ///
    /// # Safety
    /// The entry at the position has the address of the next frame of the chain.
    #[inline(always)]
    unsafe fn replay(&mut self) {
        let start = self.position;
        let from = CachedRun { position: start, len: self.output.len, ..CachedRun::default() };
        // SAFETY: passed on to the caller.
        let buffers = &mut self.output.buffers_after(0);
        // SAFETY: passed on to the caller.
        let ran = unsafe { run(&mut self.chain, self.cache.entries(0), from, buffers) };
        if let Some((shim, len)) = ran.first_shim {
            self.output.len = len;
            self.output.close_activation(shim);
            self.output.begin_activation(ran.activation_start);
        }
        (self.output.len, self.position) = (ran.len, ran.position);
        if !F::HAS_SHIMS {
            let buffers = self.output.buffers_after(ran.len);
            // SAFETY: the run has led to the address of this entry.
            let renewed = unsafe { copy_renewed(&mut self.chain, self.cache.entries(ran.position), buffers) };
            self.output.len += renewed;
            self.position += renewed;
        }
        self.cache.count_replayed(self.position - start);
        self.frame = self.cache.address(self.position);
    }

    /// Writes a frame that was read; also to its entry, if it has one that still leads to the next.
    #[inline(always)]
    fn write_step(&mut self, step: &ChainStep) -> Result<(), SourceStop> {
        let entry = match self.on_cache {
            Some(_) => self.cache.update(self.position, step),
            None => None,
        };
        match (entry, step.kind) {
            (Some(entry), StepKind::Frame(mut frame)) => {
                if F::HAS_SHIMS {
                    // The chain is unchanged up to the shim, or the walk leaves the cache before that.
                    frame.is_entry = is_entered(entry.written.frame);
                    frame.activation = entry.written.activation.0;
                }
                entry.written =
                    WrittenFrame { frame: self.output.raw(frame)?, activation: StackPointer(frame.activation) };
                self.output.write(entry.written);
                self.position += 1;
            }
            (Some(_), _) => self.position += 1,
            (None, _) => {
                self.leave_cache();
                self.cache.push(self.frame, step);
                if let StepKind::Frame(frame) = step.kind {
                    self.output.push(frame)?;
                }
            }
        }
        if let StepKind::Shim = step.kind {
            self.output.close_activation(self.frame);
        }
        Ok(())
    }

    /// Ends the walk because the output is full: what is written still gets its activation.
    ///
    /// # Safety
    /// The frame is the next of the chain.
    #[cold]
    unsafe fn cut(&mut self) -> SourceStop {
        // SAFETY: passed on to the caller.
        if let Some(shim) = unsafe { self.chain.shim_beyond(self.frame) } {
            self.output.close_cut_activation(shim);
        }
        if self.on_cache.is_some() {
            // It is unknown whether the cache leads to the same shim.
            self.cache.drop_new();
        }
        SourceStop::DepthLimit
    }
}

//! The memory recorder, from its start to its end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use stackweave_core::RawFrame;
use stackweave_recording::Recorder;
use stackweave_store::label;

use crate::error::MemoryError;
use crate::failed_allocations::{self, OUT_OF_MEMORY};
use crate::hook_kinds::HookKinds;
use crate::hook_threads::{self, HookThread};
use crate::options::{MemoryMode, MemoryOptions};
use crate::state::{self, ActiveRecording, hook_mode};
use crate::stats::MemoryStats;
use crate::suppress::SuppressGuard;
use crate::{platform, rare_host_events, sampled_blocks, sampler, sink};

/// Records what the process allocates, until it is stopped or dropped. A process has one at a time.
#[derive(Debug)]
pub struct MemoryRecorder {
    pub(crate) recorder: Recorder,
    options: MemoryOptions,
    kinds: HookKinds,
    is_paused: AtomicBool,
    is_over: AtomicBool,
}

impl MemoryRecorder {
    /// Starts recording into `recorder`, which was started with [`MemoryRecorder::observer`].
    pub fn start(recorder: Recorder, options: MemoryOptions) -> Result<Self, MemoryError> {
        let _suppress = SuppressGuard::begin();
        if !state::reserve() {
            return Err(MemoryError::AlreadyRecording);
        }
        let begun = Self::begin(recorder, options);
        if begun.is_err() {
            state::retire();
            state::release();
        }
        begun
    }

    fn begin(recorder: Recorder, options: MemoryOptions) -> Result<Self, MemoryError> {
        let kinds = HookKinds::register(&recorder, options.mode).ok_or(MemoryError::NoKinds)?;
        let memory =
            Self { recorder, options, kinds, is_paused: AtomicBool::new(false), is_over: AtomicBool::new(false) };
        hook_threads::watch_threads();
        hook_threads::reset();
        memory.publish();
        if memory.options.own_memory
            && let Err(error) = platform::install(memory.options.mappings)
        {
            memory.is_over.store(true, Ordering::SeqCst);
            return Err(error.into());
        }
        sink::offer();
        Ok(memory)
    }

    /// Makes the hooks record events.
    fn publish(&self) {
        let every = match self.options.mode {
            MemoryMode::Sampled { every } => every.max(1),
            MemoryMode::History | MemoryMode::Aggregate => 0,
        };
        if every != 0 {
            sampled_blocks::clear();
            sampler::seed(random_seed());
        }
        failed_allocations::reset();
        let active = ActiveRecording {
            recorder: self.recorder.clone(),
            kinds: self.kinds,
            native: self.options.native,
            free_stacks: self.options.free_stacks,
            mappings: self.options.mappings,
            limit: self.options.depth,
            every,
            out_of_memory: label(OUT_OF_MEMORY, "", 0),
        };
        state::publish(active, self.hook_mode());
    }

    fn hook_mode(&self) -> usize {
        let is_sampled = matches!(self.options.mode, MemoryMode::Sampled { .. });
        match (is_sampled, self.is_paused.load(Ordering::SeqCst)) {
            (false, false) => hook_mode::ALL,
            (false, true) => hook_mode::FREES,
            (true, false) => hook_mode::SAMPLED,
            (true, true) => hook_mode::SAMPLED_FREES,
        }
    }

    /// Stops recording allocations until [`MemoryRecorder::resume`]. Frees of blocks that were allocated before are still
    /// recorded, so that what is live stays right.
    pub fn pause(&self) {
        self.set_paused(true);
    }

    /// Continues after a pause.
    pub fn resume(&self) {
        self.set_paused(false);
    }

    fn set_paused(&self, is_paused: bool) {
        self.is_paused.store(is_paused, Ordering::SeqCst);
        if !self.is_over.load(Ordering::SeqCst) {
            state::set_mode(self.hook_mode());
        }
    }

    /// Stops recording, and restores what was changed. The owner of the recording stops the recording itself; queries
    /// are still answered. A second call does nothing.
    ///
    /// Waits up to a second for threads that are in the middle of an event. If one never leaves its event, the memory
    /// that it may be using, and with it the recording, is never freed.
    pub fn stop(&self) {
        if self.is_over.swap(true, Ordering::SeqCst) {
            return;
        }
        let _suppress = SuppressGuard::begin();
        sink::withdraw();
        if self.options.own_memory {
            platform::update_foreign_slots();
            platform::remove(self.options.mappings);
        }
        state::retire();
        rare_host_events::drop_unfinished_snapshots();
        state::release();
    }

    /// Begins the recording of a forked child, if the recorder follows forks. A child records nothing until this is
    /// called.
    ///
    /// Allocates, and starts a thread; so the child's first event, which may happen anywhere, can't do it. Call this
    /// once the child is usable again: an interpreter calls it after its own repairs.
    pub fn begin_in_child(&self) {
        if self.is_over.load(Ordering::SeqCst) || state::is_begun() {
            return;
        }
        let _suppress = SuppressGuard::begin();
        hook_threads::forget_other_threads();
        let tag = HookThread::current().map_or(0, |thread| thread.tag.load(Ordering::Relaxed));
        // The first event begins the session. It repeats the tag that the thread had before the fork.
        self.recorder.record_fixed(self.kinds.tag, [tag]);
        if self.recorder.stats().threads > 0 {
            self.publish();
        }
    }

    /// Sets the tag of what the calling thread allocates from now on. Returns the previous tag.
    pub fn set_tag(&self, tag: Option<RawFrame>) -> Option<RawFrame> {
        let _suppress = SuppressGuard::begin();
        let bits = tag.map_or(0, RawFrame::to_bits);
        let before = HookThread::current()?.tag.swap(bits, Ordering::Relaxed);
        if state::is_begun() && !self.is_over.load(Ordering::SeqCst) {
            self.recorder.record_fixed(self.kinds.tag, [bits]);
        }
        RawFrame::from_bits(before).filter(|_| before != 0)
    }

    /// Returns the state of the recorder.
    pub fn stats(&self) -> MemoryStats {
        let _suppress = SuppressGuard::begin();
        let is_own = self.options.own_memory;
        if is_own && !self.is_over.load(Ordering::SeqCst) {
            platform::update_foreign_slots();
        }
        let (hooks, recorded, foreign) = (
            platform::stats(),
            self.recorder.stats(),
            if is_own { platform::foreign_slots() } else { platform::ForeignSlots::default() },
        );
        MemoryStats {
            modules: hooks.modules,
            slots: hooks.slots,
            foreign_slots: hooks.foreign_slots,
            block_slots: foreign.slots,
            foreign_block_slots: foreign.foreign,
            foreign_module: (foreign.foreign != 0).then(platform::foreign_module).flatten(),
            events: recorded.events,
            lost: recorded.lost.values().sum(),
            failed_allocations: failed_allocations::count(),
            before_begun: state::before_begun(),
            left_over: state::left_over(),
        }
    }
}

impl Drop for MemoryRecorder {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Returns a number that differs at each call.
fn random_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    now ^ u64::from(std::process::id()).rotate_left(32)
}

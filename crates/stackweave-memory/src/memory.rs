//! A memory recorder from its start to its end, as programs see it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use stackweave_core::RawFrame;
use stackweave_recording::Recorder;
use stackweave_store::label;

use crate::blocks::{self, Block};
use crate::error::MemoryError;
use crate::failure::{self, OUT_OF_MEMORY};
use crate::hot_kinds::HotKinds;
use crate::options::{MemoryOptions, Mode};
use crate::quiet::Quiet;
use crate::state::{self, Active, way};
use crate::stats::MemoryStats;
use crate::{host_words, platform, sampled_blocks, sampler, sink};

/// Records what the process allocates, until it is stopped or dropped. There is one at a time.
#[derive(Debug)]
pub struct Memory {
    pub(crate) recorder: Recorder,
    options: MemoryOptions,
    kinds: HotKinds,
    is_paused: AtomicBool,
    is_over: AtomicBool,
}

impl Memory {
    /// Begins to record into this recording, which was started with [`Memory::observer`].
    pub fn start(recorder: Recorder, options: MemoryOptions) -> Result<Self, MemoryError> {
        let _quiet = Quiet::begin();
        if !state::reserve() {
            return Err(MemoryError::AlreadyRecording);
        }
        let begun = Self::begin(recorder, options);
        if begun.is_err() {
            state::retire();
            state::give_back();
        }
        begun
    }

    fn begin(recorder: Recorder, options: MemoryOptions) -> Result<Self, MemoryError> {
        let kinds = HotKinds::register(&recorder, options.mode).ok_or(MemoryError::NoKinds)?;
        let memory =
            Self { recorder, options, kinds, is_paused: AtomicBool::new(false), is_over: AtomicBool::new(false) };
        blocks::watch_threads();
        blocks::reset();
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

    /// Has hooks tell of events.
    fn publish(&self) {
        let every = match self.options.mode {
            Mode::Sampled { every } => every.max(1),
            Mode::History | Mode::Aggregate => 0,
        };
        if every != 0 {
            sampled_blocks::clear();
            sampler::seed(unforeseen());
        }
        failure::reset();
        let active = Active {
            recorder: self.recorder.clone(),
            kinds: self.kinds,
            native: self.options.native,
            free_stacks: self.options.free_stacks,
            mappings: self.options.mappings,
            limit: self.options.depth,
            every,
            out_of_memory: label(OUT_OF_MEMORY, "", 0),
        };
        state::publish(active, self.way());
    }

    fn way(&self) -> usize {
        let is_sampled = matches!(self.options.mode, Mode::Sampled { .. });
        match (is_sampled, self.is_paused.load(Ordering::SeqCst)) {
            (false, false) => way::ALL,
            (false, true) => way::FREES,
            (true, false) => way::SAMPLED,
            (true, true) => way::SAMPLED_FREES,
        }
    }

    /// Leaves out what is allocated until [`Memory::resume`]. What was allocated before, and is given back meanwhile, is still told,
    /// so that what is live stays right.
    pub fn pause(&self) {
        self.set_paused(true);
    }

    /// Goes on after a pause.
    pub fn resume(&self) {
        self.set_paused(false);
    }

    fn set_paused(&self, is_paused: bool) {
        self.is_paused.store(is_paused, Ordering::SeqCst);
        if !self.is_over.load(Ordering::SeqCst) {
            state::set_way(self.way());
        }
    }

    /// Records no more, and puts back what was changed. The recording is its owner's to stop; questions are still answered. A
    /// second time it does nothing.
    ///
    /// Waits for threads that are in the middle of an event, at most a second. If one never comes out of it, what it may be using,
    /// and by that the recording, stays in memory for ever.
    pub fn stop(&self) {
        if self.is_over.swap(true, Ordering::SeqCst) {
            return;
        }
        let _quiet = Quiet::begin();
        sink::withdraw();
        if self.options.own_memory {
            platform::look_for_others();
            platform::remove(self.options.mappings);
        }
        state::retire();
        host_words::forget_accounts();
        state::give_back();
    }

    /// In a forked child: its own recording begins, if the recorder follows forks. Until this is called a child records nothing.
    ///
    /// Allocates, and starts a thread; so it is not done by the child's first event, which may happen anywhere. To be called
    /// once the child is as usable as the program wants it to be: by an interpreter after its own repairs.
    pub fn begin_in_child(&self) {
        if self.is_over.load(Ordering::SeqCst) || state::is_begun() {
            return;
        }
        let _quiet = Quiet::begin();
        blocks::forget_other_threads();
        let tag = Block::of_this_thread().map_or(0, |block| block.tag.load(Ordering::Relaxed));
        // The first event begins the session. It says what the thread has said before the fork.
        self.recorder.record_fixed(self.kinds.tag, [tag]);
        if self.recorder.stats().threads > 0 {
            self.publish();
        }
    }

    /// From now on, what the calling thread allocates has this tag. Gives the one that it had.
    pub fn set_tag(&self, tag: Option<RawFrame>) -> Option<RawFrame> {
        let _quiet = Quiet::begin();
        let bits = tag.map_or(0, RawFrame::to_bits);
        let before = Block::of_this_thread()?.tag.swap(bits, Ordering::Relaxed);
        if state::is_begun() && !self.is_over.load(Ordering::SeqCst) {
            self.recorder.record_fixed(self.kinds.tag, [bits]);
        }
        RawFrame::from_bits(before).filter(|_| before != 0)
    }

    /// How it is doing.
    pub fn stats(&self) -> MemoryStats {
        let _quiet = Quiet::begin();
        let is_own = self.options.own_memory;
        if is_own && !self.is_over.load(Ordering::SeqCst) {
            platform::look_for_others();
        }
        let (hooks, recorded, others) = (
            platform::stats(),
            self.recorder.stats(),
            if is_own { platform::others() } else { platform::Others::default() },
        );
        MemoryStats {
            modules: hooks.modules,
            slots: hooks.slots,
            foreign_slots: hooks.foreign_slots,
            block_slots: others.slots,
            foreign_block_slots: others.foreign_slots,
            foreign_module: (others.foreign_slots != 0).then(platform::foreign_module).flatten(),
            events: recorded.events,
            lost: recorded.lost.values().sum(),
            failed_allocations: failure::count(),
            before_begun: state::before_begun(),
            left_over: state::left_over(),
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A number that is another each time.
fn unforeseen() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    now ^ u64::from(std::process::id()).rotate_left(32)
}

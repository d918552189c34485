//! How the threads of a trace come to an end, or to a pause, and how a forked child goes on.

use std::cell::Cell;
use std::sync::atomic::Ordering;

use stackweave_cpython::calls::FrameAt;

use crate::blocks::{self, Block};
use crate::engine::Engine;
use crate::kinds::Collected;
use crate::session::Session;
use crate::sink::Sink;
use crate::spans::Walked;
use crate::thread::{Pen, Thread};

impl Session {
    /// Ends what is open on all threads; `for_good`, or until they are followed again. Threads that have told nothing are
    /// shown as they are.
    ///
    /// # Safety
    /// The GIL is held, and no thread is in the middle of an event.
    pub(crate) unsafe fn end_all_threads(&self, for_good: bool) {
        let own = blocks::of_this_thread().map_or(0, |block| block.tid.get());
        // What is open there was so before the start, unless callers are shown.
        let shows_silent = for_good && self.shows_outer;
        // Runs Python, which may collect garbage and record that: before the time at which all threads end.
        let kernel_threads = if shows_silent { self.describer.kernel_threads() } else { Vec::new() };
        let now = self.recorder.ticks_now();
        // SAFETY: passed on to the caller.
        unsafe {
            if shows_silent {
                self.tell_silent_threads(&kernel_threads, now);
            }
            blocks::sweep(|block| self.end_thread(block));
            blocks::visit(|block| {
                if block.tid.get() == own {
                    let live = self.live();
                    block.thread.pause(Pen { sink: &live, rules: &self.rules }, now);
                } else {
                    self.end_other_thread(block, now);
                }
            });
        }
    }

    fn end_other_thread(&self, block: &Block, ticks: u64) {
        let collected = Collected::new(&self.kinds, ticks);
        block.thread.pause(Pen { sink: &collected, rules: &self.rules }, ticks);
        collected.hand_over(&self.recorder, block.tid.get());
    }

    /// A thread has ended: what was open on it ended then.
    pub(crate) fn end_thread(&self, block: &Block) {
        self.ended_calls.set(self.ended_calls.get() + block.calls.get());
        self.ended_native_calls.set(self.ended_native_calls.get() + block.native_calls.get());
        self.ended_threads.set(self.ended_threads.get() + u64::from(block.calls.get() > 0));
        if let Some(ticks) = block.ended_at().filter(|_| block.thread.shadow.len() > 0) {
            self.end_other_thread(block, ticks);
        }
    }

    /// Shows the stacks of threads that have told nothing, from the start to now.
    ///
    /// # Safety
    /// The GIL is held.
    unsafe fn tell_silent_threads(&self, kernel_threads: &[(u64, u32)], now: u64) {
        for (ident, state) in self.source.thread_states() {
            let Some(tid) = kernel_threads.iter().find(|known| known.0 == ident).map(|known| known.1) else { continue };
            let mut is_known = false;
            // SAFETY: passed on to the caller; the states were asked for just now.
            unsafe {
                blocks::visit(|block| {
                    is_known |= block.tid.get() == tid && block.thread.shadow.is_followed();
                });
                if !is_known {
                    let mut frames = Vec::new();
                    self.source.visit_frames_of(state, |frame| frames.push(frame));
                    self.tell_silent_thread(tid, &frames, now);
                }
            }
        }
    }

    fn tell_silent_thread(&self, tid: u32, frames: &[FrameAt], now: u64) {
        let (thread, way) = (Thread::new(), Cell::new((0, 0)));
        let collected = Collected::new(&self.kinds, now);
        let engine = Engine {
            thread: &thread,
            pen: Pen { sink: &collected, rules: &self.rules },
            codes: &self.codes,
            library: self,
            way: &way,
            since: self.since.get(),
            shows_outer: true,
        };
        engine.be_at(Walked::first(frames));
        thread.pause(engine.pen, now);
        collected.hand_over(&self.recorder, tid);
    }

    /// In a forked child: says again what is open on its thread, and counts from anew.
    pub(crate) fn begin_again(&self) {
        let live = self.live();
        let now = live.now();
        self.since.set(now);
        self.rules.forget();
        self.ended_calls.set(0);
        self.ended_native_calls.set(0);
        self.ended_threads.set(0);
        if let Some(block) = blocks::of_this_thread() {
            block.calls.set(0);
            block.native_calls.set(0);
            block.is_waiting.store(false, Ordering::Relaxed);
            block.thread.say_again(Pen { sink: &live, rules: &self.rules }, now);
        }
    }
}

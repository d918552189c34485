//! Ends or pauses the trace of threads, and continues it in a forked child.

use std::cell::Cell;
use std::sync::atomic::Ordering;

use stackweave_cpython::calls::StackFrame;

use crate::engine::CallEngine;
use crate::kinds::CollectedEvents;
use crate::session::TraceSession;
use crate::sink::Sink;
use crate::spans::WalkedStack;
use crate::thread_stack::{EventWriter, TracedStack};
use crate::traced_threads::{self, TracedThread};

impl TraceSession {
    /// Ends all open calls on all threads, `for_good` or until the trace resumes. Threads without events are recorded
    /// with their current stacks.
    ///
    /// # Safety
    /// The GIL is held, and no thread is in the middle of an event.
    pub(crate) unsafe fn end_all_threads(&self, for_good: bool) {
        let own = traced_threads::current().map_or(0, |thread| thread.tid.get());
        // Calls that are open there were open before the start, so they are recorded only if outer calls are.
        let records_silent = for_good && self.shows_outer;
        // This runs Python, which may collect garbage and record that: so it comes before the time at which all threads
        // end.
        let kernel_threads = if records_silent { self.describer.kernel_threads() } else { Vec::new() };
        let now = self.recorder.ticks_now();
        // SAFETY: passed on to the caller.
        unsafe {
            if records_silent {
                self.record_silent_threads(&kernel_threads, now);
            }
            traced_threads::remove_ended(|thread| self.end_thread(thread));
            traced_threads::visit(|thread| {
                if thread.tid.get() == own {
                    let live = self.live();
                    thread.stack.pause(EventWriter { sink: &live, rules: &self.rules }, now);
                } else {
                    self.end_other_thread(thread, now);
                }
            });
        }
    }

    fn end_other_thread(&self, thread: &TracedThread, ticks: u64) {
        let collected = CollectedEvents::new(&self.kinds, ticks);
        thread.stack.pause(EventWriter { sink: &collected, rules: &self.rules }, ticks);
        collected.record_for(&self.recorder, thread.tid.get());
    }

    /// Ends the open calls of a thread that has ended, at the time of its end.
    pub(crate) fn end_thread(&self, thread: &TracedThread) {
        self.ended_calls.set(self.ended_calls.get() + thread.calls.get());
        self.ended_native_calls.set(self.ended_native_calls.get() + thread.native_calls.get());
        self.ended_threads.set(self.ended_threads.get() + u64::from(thread.calls.get() > 0));
        if let Some(ticks) = thread.ended_at().filter(|_| thread.stack.shadow.len() > 0) {
            self.end_other_thread(thread, ticks);
        }
    }

    /// Records the stacks of threads without events, from the start of the trace to now.
    ///
    /// # Safety
    /// The GIL is held.
    unsafe fn record_silent_threads(&self, kernel_threads: &[(u64, u32)], now: u64) {
        for (ident, state) in self.source.thread_states() {
            let Some(tid) = kernel_threads.iter().find(|known| known.0 == ident).map(|known| known.1) else { continue };
            let mut is_known = false;
            // SAFETY: passed on to the caller; the states were listed above.
            unsafe {
                traced_threads::visit(|thread| {
                    is_known |= thread.tid.get() == tid && thread.stack.shadow.is_followed();
                });
                if !is_known {
                    let mut frames = Vec::new();
                    self.source.visit_frames_of(state, |frame| frames.push(frame));
                    self.record_silent_thread(tid, &frames, now);
                }
            }
        }
    }

    fn record_silent_thread(&self, tid: u32, frames: &[StackFrame], now: u64) {
        let (stack, known_path) = (TracedStack::new(), Cell::new((0, 0)));
        let collected = CollectedEvents::new(&self.kinds, now);
        let engine = CallEngine {
            stack: &stack,
            writer: EventWriter { sink: &collected, rules: &self.rules },
            codes: &self.codes,
            library: self,
            known_path: &known_path,
            since: self.since.get(),
            shows_outer: true,
        };
        engine.align_to(WalkedStack::first(frames));
        stack.pause(engine.writer, now);
        collected.record_for(&self.recorder, tid);
    }

    /// Records again what is open on the calling thread of a forked child, and resets all counts.
    pub(crate) fn begin_again(&self) {
        let live = self.live();
        let now = live.now();
        self.since.set(now);
        self.rules.reset();
        self.ended_calls.set(0);
        self.ended_native_calls.set(0);
        self.ended_threads.set(0);
        if let Some(thread) = traced_threads::current() {
            thread.calls.set(0);
            thread.native_calls.set(0);
            thread.is_waiting.store(false, Ordering::Relaxed);
            thread.stack.record_open_again(EventWriter { sink: &live, rules: &self.rules }, now);
        }
    }
}

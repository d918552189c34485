//! The observer of a recording, as its writer calls it.
//!
//! A panic of the observer ends the observer, and not the recording.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use stackweave_core::EventKind;

use super::kind_registry::KindNumber;
use super::observer::{Notes, Observer};
use super::session::{RecorderConfig, RecordingSession};
use crate::file::RecordedThread;

/// The name of the thread of an observer's notes.
pub(super) const THREAD_NAME: &str = RecordedThread::RECORDER;
const MIN_INTERVAL: Duration = Duration::from_micros(50);
const MAX_INTERVAL: Duration = Duration::from_secs(86_400);

pub(super) struct GuardedObserver {
    session: Arc<RecordingSession>,
    observer: Option<Box<dyn Observer>>,
    /// The observer has received everything that was recorded before these ticks.
    settled: u64,
    notes: Notes,
}

impl GuardedObserver {
    /// Makes the observer that the configuration requests.
    pub(super) fn begin(session: &Arc<RecordingSession>, config: &RecorderConfig) -> Self {
        let mut guarded = Self { session: Arc::clone(session), observer: None, settled: 0, notes: Notes::default() };
        if let Some(make) = &config.observer {
            match catch_unwind(AssertUnwindSafe(|| make())) {
                Ok(observer) => guarded.observer = Some(observer),
                Err(_) => guarded.give_up(),
            }
        }
        guarded
    }

    pub(super) const fn is_on(&self) -> bool {
        self.observer.is_some()
    }

    /// Returns the interval at which it must be called.
    pub(super) fn interval(&mut self) -> Option<Duration> {
        self.call(|observer, _| observer.interval()).map(|interval| interval.clamp(MIN_INTERVAL, MAX_INTERVAL))
    }

    /// Notifies it of a kind of events.
    pub(super) fn notify_kind(&mut self, number: KindNumber, kind: &EventKind) {
        self.call(|observer, _| observer.kind(number, kind));
    }

    /// Notifies it of events of a thread.
    pub(super) fn notify_events(&mut self, thread: u32, words: &[u64]) {
        if !words.is_empty() {
            self.call(|observer, _| observer.events(thread, words));
        }
    }

    /// Ends a round that began at this time. The round is complete if no thread's events were in transit meanwhile.
    pub(super) fn settle(&mut self, ticks: u64, is_complete: bool) {
        if is_complete {
            self.settled = ticks;
        }
        let settled = self.settled;
        self.call(|observer, notes| observer.settle(settled, notes));
    }

    pub(super) fn dump(&mut self, ticks: u64) {
        self.call(|observer, notes| observer.dump(ticks, notes));
    }

    pub(super) fn end(&mut self, ticks: u64) {
        self.call(|observer, notes| observer.end(ticks, notes));
    }

    /// Runs a query. If it panics, that is the caller's fault, and the observer stays.
    pub(super) fn query(&mut self, query: ObserverQuery) {
        if let Some(observer) = &mut self.observer {
            let notes = &mut self.notes;
            let _ = catch_unwind(AssertUnwindSafe(|| query(observer.as_any(), notes)));
        }
    }

    /// Makes it add the next part of its notes. Returns `false` if there is none.
    pub(super) fn more(&mut self) -> bool {
        self.call(Observer::more).unwrap_or(false)
    }

    /// Takes its notes since the last call, as words of events.
    pub(super) fn take_notes(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.notes.words)
    }

    /// Returns whether it has requested a dump since the last call.
    pub(super) fn takes_dump(&mut self) -> bool {
        std::mem::take(&mut self.notes.dump_requested)
    }

    /// Takes the observer, for queries after the writer has ended.
    pub(super) fn take_observer(&mut self) -> Option<Box<dyn Observer>> {
        self.observer.take()
    }

    fn call<T>(&mut self, call: impl FnOnce(&mut dyn Observer, &mut Notes) -> T) -> Option<T> {
        let observer = self.observer.as_deref_mut()?;
        let notes = &mut self.notes;
        let called = catch_unwind(AssertUnwindSafe(|| call(observer, notes)));
        called.map_err(|_| self.give_up()).ok()
    }

    fn give_up(&mut self) {
        let failed = self.observer.take();
        let _ = catch_unwind(AssertUnwindSafe(|| drop(failed)));
        self.session.counts.set_error("the observer of the recording failed".to_owned());
    }
}

/// A query of an observer, which may add notes.
pub(super) type ObserverQuery = Box<dyn FnOnce(&mut dyn Any, &mut Notes) + Send>;

//! The observer of a recording, as its writer keeps it.
//!
//! What goes wrong in an observer ends it, and not the recording.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use stackweave_core::EventKind;

use super::kinds::KindNumber;
use super::observer::{Notes, Observer};
use super::session::{Session, Setting};
use crate::file::RecordedThread;

/// What the thread of an observer's notes is called.
pub(super) const THREAD_NAME: &str = RecordedThread::RECORDER;
const SHORTEST: Duration = Duration::from_micros(50);
const LONGEST: Duration = Duration::from_secs(86_400);

pub(super) struct Observing {
    session: Arc<Session>,
    observer: Option<Box<dyn Observer>>,
    /// Everything recorded before this was told.
    settled: u64,
    notes: Notes,
}

impl Observing {
    /// Makes the observer that the setting asks for.
    pub(super) fn begin(session: &Arc<Session>, setting: &Setting) -> Self {
        let mut observing = Self { session: Arc::clone(session), observer: None, settled: 0, notes: Notes::default() };
        if let Some(make) = &setting.observer {
            match catch_unwind(AssertUnwindSafe(|| make())) {
                Ok(observer) => observing.observer = Some(observer),
                Err(_) => observing.give_up(),
            }
        }
        observing
    }

    pub(super) const fn is_on(&self) -> bool {
        self.observer.is_some()
    }

    /// How long it may be left alone.
    pub(super) fn interval(&mut self) -> Option<Duration> {
        self.call(|observer, _| observer.interval()).map(|interval| interval.clamp(SHORTEST, LONGEST))
    }

    /// Tells of a kind of events.
    pub(super) fn kind(&mut self, number: KindNumber, kind: &EventKind) {
        self.call(|observer, _| observer.kind(number, kind));
    }

    /// Tells of events of a thread.
    pub(super) fn tell(&mut self, thread: u32, words: &[u64]) {
        if !words.is_empty() {
            self.call(|observer, _| observer.events(thread, words));
        }
    }

    /// A round has ended that began at this time; a whole one if no thread's events were on their way meanwhile.
    pub(super) fn settle(&mut self, ticks: u64, is_whole: bool) {
        if is_whole {
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

    /// Lets somebody ask it. What goes wrong then is the asker's: the observer stays.
    pub(super) fn ask(&mut self, question: Question) {
        if let Some(observer) = &mut self.observer {
            let notes = &mut self.notes;
            let _ = catch_unwind(AssertUnwindSafe(|| question(observer.as_any(), notes)));
        }
    }

    /// Has it add the next part of its notes. False if there is none.
    pub(super) fn more(&mut self) -> bool {
        self.call(Observer::more).unwrap_or(false)
    }

    /// What it has noted since the last time, as words of events.
    pub(super) fn take_notes(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.notes.words)
    }

    /// Whether it has asked for a dump since the last time.
    pub(super) fn takes_dump(&mut self) -> bool {
        std::mem::take(&mut self.notes.wants_dump)
    }

    /// The observer, for those who ask when the writer is gone.
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
        self.session.counts.set_error("what observes the recording failed".to_owned());
    }
}

/// What somebody asks an observer, with room for notes.
pub(super) type Question = Box<dyn FnOnce(&mut dyn Any, &mut Notes) + Send>;

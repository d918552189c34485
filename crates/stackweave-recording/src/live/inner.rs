//! What all handles of a recorder share: which session their events go to, in whichever process they are.
//!
//! Finding the calling thread's lane is async-signal-safe, but for the first event of a forked child.

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{env, ptr, thread};

use super::children::Unrecorded;
use super::fork;
use super::gaps;
use super::lane::Lane;
use super::lanes::{Refused, Turn};
use super::orders::Order;
use super::outcome::{FlushError, StartError, Summary};
use super::session::{Session, Setting};
use crate::file::EndReason;

/// In place of a session's address: nothing is recorded. No lane has this key.
const NOTHING: usize = 1;
/// A process that exits waits no longer for a file that blocks.
const EXIT_PATIENCE: Duration = Duration::from_secs(2);
const EXIT_ATTEMPTS: u32 = 100;
/// Says "off" where signals are left alone.
const SIGNALS_VARIABLE: &str = "STACKWEAVE_SIGNALS";
/// Where programs that are started from here find what to do.
pub(super) const VARIABLE: &str = "STACKWEAVE_RECORDING";

pub(super) struct Inner {
    /// The address of the session that events go to, or [`NOTHING`]. In a child it is the parent's until the first event.
    active: AtomicUsize,
    /// The session last begun, of this process or of one it was forked from. Holds a strong count.
    session: AtomicPtr<Session>,
    /// The generation that has begun, or is beginning, its own session.
    generation: AtomicU64,
    is_stopped: AtomicBool,
    /// Why a forked child could not begin, and its generation.
    failure: Mutex<Option<(u64, String)>>,
    pub(super) unrecorded: Unrecorded,
    pub(super) setting: Setting,
}

impl Inner {
    pub(super) fn begin(mut setting: Setting) -> Result<Arc<Self>, StartError> {
        // Read here: a forked child must not wait for the lock of the environment.
        setting.options.handle_signals &= env::var_os(SIGNALS_VARIABLE).is_none_or(|value| value != "off");
        fork::watch().map_err(StartError::System)?;
        let session = Session::begin(&setting, None)?;
        if setting.options.subprocesses {
            // SAFETY: as safe as any change of the environment; it was asked for.
            unsafe { env::set_var(VARIABLE, setting.options.to_environment()) };
        }
        let generation = AtomicU64::new(session.generation);
        let session = Arc::into_raw(session).cast_mut();
        let inner = Arc::new(Self {
            active: AtomicUsize::new(session.addr()),
            session: AtomicPtr::new(session),
            generation,
            is_stopped: AtomicBool::new(false),
            failure: Mutex::new(None),
            unrecorded: Unrecorded::new(),
            setting,
        });
        fork::stop_at_exit(Arc::downgrade(&inner));
        Ok(inner)
    }

    /// What the lane that an event may go to has as its key.
    #[inline]
    pub(super) fn active(&self) -> usize {
        self.active.load(Ordering::Relaxed)
    }

    pub(super) fn pause(&self) {
        self.active.store(NOTHING, Ordering::SeqCst);
    }

    pub(super) fn resume(&self) {
        let session = self.session.load(Ordering::Acquire);
        gaps::add();
        self.active.store(session.addr(), Ordering::SeqCst);
        if self.is_stopped.load(Ordering::SeqCst) {
            self.pause();
        }
    }

    /// Lets `append` record on this thread's lane, which is looked for, or made.
    #[cold]
    #[inline(never)]
    pub(super) fn with_lane(&self, append: &dyn Fn(&Lane)) {
        if self.active.load(Ordering::Acquire) == NOTHING {
            return;
        }
        let mut turn = match Turn::take() {
            Ok(turn) => turn,
            Err(Refused::Never) => return,
            Err(Refused::Interrupted) => {
                if let Some(session) = self.own_session() {
                    session.interrupted.add(session.clock.ticks());
                }
                return;
            }
        };
        let Some(session) = self.own_session().or_else(|| self.begin_in_child()) else { return };
        let lane = turn.lane(&session);
        drop(turn);
        let key = Arc::as_ptr(&session).addr();
        match lane {
            None => session.no_memory.add(session.clock.ticks()),
            Some(lane) if lane.enter(key) => {
                append(lane);
                lane.leave(key);
            }
            Some(lane) => lane.refuse_interrupted(),
        }
    }

    /// The time by the clock that events of this process get.
    #[cold]
    #[inline(never)]
    pub(super) fn ticks(&self) -> u64 {
        let own = self.own_session().or_else(|| self.begin_in_child());
        own.unwrap_or_else(|| self.last_session()).clock.ticks()
    }

    /// Has the writer record these words for another thread.
    pub(super) fn record_for(&self, tid: u32, words: Vec<u64>) {
        if self.active.load(Ordering::Acquire) == NOTHING {
            return;
        }
        let Some(session) = self.own_session().or_else(|| self.begin_in_child()) else { return };
        let (reply, answer) = channel();
        session.orders.give(Order::RecordFor(tid, words, reply));
        session.doorbell.ring();
        let _ = answer.recv();
    }

    /// The session last begun, of whichever process.
    pub(super) fn last_session(&self) -> Arc<Session> {
        let session = self.session.load(Ordering::Acquire);
        // SAFETY: a session that was put there keeps the strong count that it had then: until `drop`, or for ever in a
        // forked child.
        unsafe {
            Arc::increment_strong_count(session);
            Arc::from_raw(session)
        }
    }

    /// The session of this process; `None` in a forked child that has not recorded yet.
    pub(super) fn own_session(&self) -> Option<Arc<Session>> {
        Some(self.last_session()).filter(|session| session.generation == fork::generation())
    }

    /// Begins a session in a forked child, or waits for another thread that does.
    #[cold]
    fn begin_in_child(&self) -> Option<Arc<Session>> {
        let generation = fork::generation();
        if !self.setting.options.follow_forks || self.is_stopped.load(Ordering::SeqCst) {
            self.active.store(NOTHING, Ordering::SeqCst);
            return None;
        }
        if self.generation.swap(generation, Ordering::AcqRel) == generation {
            return self.wait_for_other_thread();
        }
        let parent = self.last_session();
        let setting = Setting { is_beside: true, ..self.setting.clone() };
        let begun = Session::begin(&setting, Some(parent.pid())).map_err(|error| self.fail(error.to_string())).ok();
        match &begun {
            Some(session) => {
                let key = Arc::as_ptr(session).addr();
                self.session.store(Arc::into_raw(Arc::clone(session)).cast_mut(), Ordering::Release);
                let _ = self.active.compare_exchange(
                    ptr::from_ref(&*parent).addr(),
                    key,
                    Ordering::AcqRel,
                    Ordering::Relaxed,
                );
            }
            None => self.active.store(NOTHING, Ordering::SeqCst),
        }
        if self.is_stopped.load(Ordering::SeqCst) {
            // Meanwhile, by a thread that could not know of it.
            self.stop();
            return None;
        }
        begun
    }

    /// Keeps why this process can't record, for its summary, and lets the others know.
    fn fail(&self, why: String) {
        self.unrecorded.add();
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some((fork::generation(), why));
    }

    /// Why this process records nothing, if it could not begin.
    pub(super) fn failure(&self) -> Option<String> {
        let kept = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        kept.as_ref().filter(|(of, _)| *of == fork::generation()).map(|(_, why)| why.clone())
    }

    fn wait_for_other_thread(&self) -> Option<Arc<Session>> {
        while self.active.load(Ordering::Acquire) != NOTHING {
            if let Some(session) = self.own_session() {
                return Some(session);
            }
            thread::yield_now();
        }
        None
    }

    /// Has all written, and asks the interpreters what only they know.
    pub(super) fn flush(&self, session: &Session) -> Result<(), FlushError> {
        let (reply, answer) = channel();
        session.orders.give(Order::Flush(reply));
        session.doorbell.ring();
        let (pending, flushed) = answer.recv().map_err(|_| FlushError::Stopped)?;
        if pending.is_empty() {
            return flushed;
        }
        let answered = pending.ask(&*self.setting.names);
        let (reply, answer) = channel();
        session.orders.give(Order::Tell(answered, reply));
        session.doorbell.ring();
        answer.recv().unwrap_or(Err(FlushError::Stopped))
    }

    pub(super) fn stop(&self) -> Summary {
        self.active.store(NOTHING, Ordering::SeqCst);
        let is_first = !self.is_stopped.swap(true, Ordering::SeqCst);
        let Some(session) = self.own_session() else {
            return Summary { error: self.failure(), ..Summary::default() };
        };
        if is_first {
            self.forget_environment();
            // What goes wrong is in the summary.
            let _ = self.flush(&session);
        }
        let (reply, answer) = channel();
        session.orders.give(Order::Stop(EndReason::Stopped, reply));
        session.doorbell.ring();
        let _ = answer.recv();
        session.join_writer();
        session.summary()
    }

    /// The process exits: as [`Inner::stop`], but for asking interpreters, which may be gone, and for waiting long.
    pub(super) fn stop_at_exit(&self) {
        self.active.store(NOTHING, Ordering::SeqCst);
        if self.is_stopped.swap(true, Ordering::SeqCst) {
            return;
        }
        if let Some(session) = self.own_session() {
            let (reply, answer) = channel();
            session.orders.give_if_possible(Order::Stop(EndReason::Exited, reply), EXIT_ATTEMPTS);
            session.doorbell.ring();
            let _ = answer.recv_timeout(EXIT_PATIENCE);
        }
    }

    fn forget_environment(&self) {
        let mine = self.setting.options.to_environment();
        if self.setting.options.subprocesses && env::var_os(VARIABLE).is_some_and(|value| value == mine) {
            // SAFETY: as safe as setting it was.
            unsafe { env::remove_var(VARIABLE) };
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        fork::forget(self);
        if let Some(session) = self.own_session() {
            if !self.is_stopped.load(Ordering::SeqCst) {
                self.stop();
            }
            // Threads that have recorded keep the session longer.
            let observer = session.kept_observer().0.take();
            drop(observer);
            // SAFETY: the strong count of the session that was put there; in a child, the parent's keeps its own for ever.
            drop(unsafe { Arc::from_raw(*self.session.get_mut()) });
        }
    }
}

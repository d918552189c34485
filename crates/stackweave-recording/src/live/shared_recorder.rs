//! The state that all handles of a recorder share: the session that events go to, in every process.
//!
//! Finding the calling thread's lane is async-signal-safe, except for the first event of a forked child.

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{env, ptr, thread};

use super::children::UnrecordedChildren;
use super::error::{FlushError, StartError};
use super::fork;
use super::gaps;
use super::lane::Lane;
use super::lanes::{LaneListError, LaneListGuard};
use super::requests::WriterRequest;
use super::session::{RecorderConfig, RecordingSession};
use super::stats::Summary;
use crate::file::EndReason;

/// Replaces a session's address while nothing is recorded. No lane has this key.
const INACTIVE: usize = 1;
/// The time that an exiting process waits for a file that blocks.
const EXIT_PATIENCE: Duration = Duration::from_secs(2);
const EXIT_ATTEMPTS: u32 = 100;
/// This variable is "off" if recordings must not handle signals.
const SIGNALS_VARIABLE: &str = "STACKWEAVE_SIGNALS";
/// The variable by which started programs find the recording.
pub(super) const RECORDING_VARIABLE: &str = "STACKWEAVE_RECORDING";

pub(super) struct SharedRecorder {
    /// The address of the session that events go to, or [`INACTIVE`]. In a child it is the parent's until the first event.
    active: AtomicUsize,
    /// The last session, of this process or of one that it was forked from. Holds a strong count.
    session: AtomicPtr<RecordingSession>,
    /// The generation that has begun, or is beginning, its own session.
    generation: AtomicU64,
    is_stopped: AtomicBool,
    /// The reason why a forked child could not begin, with its generation.
    failure: Mutex<Option<(u64, String)>>,
    pub(super) unrecorded_children: UnrecordedChildren,
    pub(super) config: RecorderConfig,
}

impl SharedRecorder {
    pub(super) fn begin(mut config: RecorderConfig) -> Result<Arc<Self>, StartError> {
        // The variable is read here because a forked child must not wait for the lock of the environment.
        config.options.handle_signals &= env::var_os(SIGNALS_VARIABLE).is_none_or(|value| value != "off");
        fork::watch().map_err(StartError::System)?;
        let session = RecordingSession::begin(&config, None)?;
        if config.options.subprocesses {
            // SAFETY: as safe as any change of the environment, which the caller requested.
            unsafe { env::set_var(RECORDING_VARIABLE, config.options.to_environment()) };
        }
        let generation = AtomicU64::new(session.generation);
        let session = Arc::into_raw(session).cast_mut();
        let inner = Arc::new(Self {
            active: AtomicUsize::new(session.addr()),
            session: AtomicPtr::new(session),
            generation,
            is_stopped: AtomicBool::new(false),
            failure: Mutex::new(None),
            unrecorded_children: UnrecordedChildren::new(),
            config,
        });
        fork::stop_at_exit(Arc::downgrade(&inner));
        Ok(inner)
    }

    /// Returns the key of the lane that an event may go to.
    #[inline]
    pub(super) fn active(&self) -> usize {
        self.active.load(Ordering::Relaxed)
    }

    pub(super) fn pause(&self) {
        self.active.store(INACTIVE, Ordering::SeqCst);
    }

    pub(super) fn resume(&self) {
        let session = self.session.load(Ordering::Acquire);
        gaps::add();
        self.active.store(session.addr(), Ordering::SeqCst);
        if self.is_stopped.load(Ordering::SeqCst) {
            self.pause();
        }
    }

    /// Calls `append` with the lane of this thread, which is found or created.
    #[cold]
    #[inline(never)]
    pub(super) fn with_lane(&self, append: &dyn Fn(&Lane)) {
        if self.active.load(Ordering::Acquire) == INACTIVE {
            return;
        }
        let mut lanes = match LaneListGuard::take() {
            Ok(lanes) => lanes,
            Err(LaneListError::Never) => return,
            Err(LaneListError::Interrupted) => {
                if let Some(session) = self.own_session() {
                    session.interrupted.add(session.clock.ticks());
                }
                return;
            }
        };
        let Some(session) = self.own_session().or_else(|| self.begin_in_child()) else { return };
        let lane = lanes.lane(&session);
        drop(lanes);
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

    /// Returns the time that an event of this process would get.
    #[cold]
    #[inline(never)]
    pub(super) fn ticks(&self) -> u64 {
        let own = self.own_session().or_else(|| self.begin_in_child());
        own.unwrap_or_else(|| self.last_session()).clock.ticks()
    }

    /// Makes the writer record these words for another thread.
    pub(super) fn record_for_thread(&self, tid: u32, words: Vec<u64>) {
        if self.active.load(Ordering::Acquire) == INACTIVE {
            return;
        }
        let Some(session) = self.own_session().or_else(|| self.begin_in_child()) else { return };
        let (reply, answer) = channel();
        session.requests.push(WriterRequest::RecordFor(tid, words, reply));
        session.doorbell.ring();
        let _ = answer.recv();
    }

    /// Returns the last session, of any process.
    pub(super) fn last_session(&self) -> Arc<RecordingSession> {
        let session = self.session.load(Ordering::Acquire);
        // SAFETY: a stored session keeps the strong count that it had then: until `drop`, or forever in a forked child.
        unsafe {
            Arc::increment_strong_count(session);
            Arc::from_raw(session)
        }
    }

    /// Returns the session of this process; `None` in a forked child that has not recorded yet.
    pub(super) fn own_session(&self) -> Option<Arc<RecordingSession>> {
        Some(self.last_session()).filter(|session| session.generation == fork::generation())
    }

    /// Begins a session in a forked child, or waits for another thread that does.
    #[cold]
    fn begin_in_child(&self) -> Option<Arc<RecordingSession>> {
        let generation = fork::generation();
        if !self.config.options.follow_forks || self.is_stopped.load(Ordering::SeqCst) {
            self.active.store(INACTIVE, Ordering::SeqCst);
            return None;
        }
        if self.generation.swap(generation, Ordering::AcqRel) == generation {
            return self.wait_for_other_thread();
        }
        let parent = self.last_session();
        let config = RecorderConfig { is_beside: true, ..self.config.clone() };
        let begun =
            RecordingSession::begin(&config, Some(parent.pid())).map_err(|error| self.fail(error.to_string())).ok();
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
            None => self.active.store(INACTIVE, Ordering::SeqCst),
        }
        if self.is_stopped.load(Ordering::SeqCst) {
            // Another thread stopped the recorder meanwhile, without knowing of this session.
            self.stop();
            return None;
        }
        begun
    }

    /// Keeps the reason why this process can't record, for its summary, and counts the child for the other processes.
    fn fail(&self, why: String) {
        self.unrecorded_children.add();
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some((fork::generation(), why));
    }

    /// Returns why this process records nothing, if it could not begin.
    pub(super) fn failure(&self) -> Option<String> {
        let kept = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        kept.as_ref().filter(|(of, _)| *of == fork::generation()).map(|(_, why)| why.clone())
    }

    fn wait_for_other_thread(&self) -> Option<Arc<RecordingSession>> {
        while self.active.load(Ordering::Acquire) != INACTIVE {
            if let Some(session) = self.own_session() {
                return Some(session);
            }
            thread::yield_now();
        }
        None
    }

    /// Writes everything, and resolves names by the interpreters.
    pub(super) fn flush(&self, session: &RecordingSession) -> Result<(), FlushError> {
        let (reply, answer) = channel();
        session.requests.push(WriterRequest::Flush(reply));
        session.doorbell.ring();
        let (pending, flushed) = answer.recv().map_err(|_| FlushError::Stopped)?;
        if pending.is_empty() {
            return flushed;
        }
        let resolved = pending.resolve(&*self.config.names);
        let (reply, answer) = channel();
        session.requests.push(WriterRequest::WriteNames(resolved, reply));
        session.doorbell.ring();
        answer.recv().unwrap_or(Err(FlushError::Stopped))
    }

    pub(super) fn stop(&self) -> Summary {
        self.active.store(INACTIVE, Ordering::SeqCst);
        let is_first = !self.is_stopped.swap(true, Ordering::SeqCst);
        let Some(session) = self.own_session() else {
            return Summary { error: self.failure(), ..Summary::default() };
        };
        if is_first {
            self.forget_environment();
            // The summary has the error.
            let _ = self.flush(&session);
        }
        let (reply, answer) = channel();
        session.requests.push(WriterRequest::Stop(EndReason::Stopped, reply));
        session.doorbell.ring();
        let _ = answer.recv();
        session.join_writer();
        session.summary()
    }

    /// Stops at the exit of the process, as [`SharedRecorder::stop`], but without the interpreters, which may be gone, and with a short wait.
    pub(super) fn stop_at_exit(&self) {
        self.active.store(INACTIVE, Ordering::SeqCst);
        if self.is_stopped.swap(true, Ordering::SeqCst) {
            return;
        }
        if let Some(session) = self.own_session() {
            let (reply, answer) = channel();
            session.requests.try_push(WriterRequest::Stop(EndReason::Exited, reply), EXIT_ATTEMPTS);
            session.doorbell.ring();
            let _ = answer.recv_timeout(EXIT_PATIENCE);
        }
    }

    fn forget_environment(&self) {
        let own = self.config.options.to_environment();
        if self.config.options.subprocesses && env::var_os(RECORDING_VARIABLE).is_some_and(|value| value == own) {
            // SAFETY: as safe as setting it.
            unsafe { env::remove_var(RECORDING_VARIABLE) };
        }
    }
}

impl Drop for SharedRecorder {
    fn drop(&mut self) {
        fork::forget(self);
        if let Some(session) = self.own_session() {
            if !self.is_stopped.load(Ordering::SeqCst) {
                self.stop();
            }
            // Threads that have recorded keep the session alive, but not the observer.
            let observer = session.kept_observer().0.take();
            drop(observer);
            // SAFETY: the strong count of the stored session; in a child, the parent's session keeps its own forever.
            drop(unsafe { Arc::from_raw(*self.session.get_mut()) });
        }
    }
}

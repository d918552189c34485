//! Recording, as a program does it.
//!
//! Hot file. [`Recorder::record`] and its kin neither allocate nor lock nor call the system on a thread that has recorded
//! before, but once in some thousand events, when a buffer is full; they wait only as [`WhenFull`](super::WhenFull) says, and
//! are async-signal-safe. A thread's first event maps its buffer.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;
use std::{env, fmt, ptr, thread};

use stackweave_core::{EventKind, Names, RawFrame, StackId};
use stackweave_store::StackTable;

use super::fork;
use super::kinds::{self, KindNumber, Kinds};
use super::lane::Lane;
use super::lanes::{self, Refused, Turn};
use super::options::Options;
use super::orders::Order;
use super::outcome::{FlushError, RecorderStats, StartError, Summary};
use super::session::{Session, Setting};
use crate::file::EndReason;

/// In place of a session's address: nothing is recorded. No lane has this key.
const NOTHING: usize = 1;
/// A process that exits waits no longer for a file that blocks.
const EXIT_PATIENCE: Duration = Duration::from_secs(2);
const EXIT_ATTEMPTS: u32 = 100;
const VARIABLE: &str = "STACKWEAVE_RECORDING";

/// A recording that is being made. Clones are the same one; when the last is dropped, it stops.
///
/// When the process forks, the child's handle is the child's recording: it has its own file, made at its first event.
#[derive(Clone)]
pub struct Recorder(Arc<Inner>);

pub(super) struct Inner {
    /// The address of the session that events go to, or [`NOTHING`]. In a child it is the parent's until the first event.
    active: AtomicUsize,
    /// The session last begun, of this process or of one it was forked from. Holds a strong count.
    session: AtomicPtr<Session>,
    /// The generation that has begun, or is beginning, its own session.
    generation: AtomicU64,
    is_stopped: AtomicBool,
    setting: Setting,
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("path", &self.path()).finish_non_exhaustive()
    }
}

impl Recorder {
    /// Starts recording. `stacks` holds the stacks that events refer to, `names` says what frames are.
    pub fn start(
        mut options: Options,
        stacks: &'static StackTable,
        names: Arc<dyn Names + Send + Sync>,
    ) -> Result<Self, StartError> {
        options.path = std::path::absolute(&options.path)
            .map_err(|error| StartError::File { path: options.path.clone(), error })?;
        Self::from_setting(Setting { options, is_beside: false, stacks, names, kinds: Arc::new(Kinds::new()) })
    }

    /// Starts recording if the program was started by one that records, and that has asked for it
    /// ([`Options::subprocesses`]). The file lies beside that one's.
    pub fn from_environment(
        stacks: &'static StackTable,
        names: Arc<dyn Names + Send + Sync>,
    ) -> Result<Option<Self>, StartError> {
        let options = env::var_os(VARIABLE).and_then(|text| Options::from_environment(&text));
        let Some(options) = options else { return Ok(None) };
        Self::from_setting(Setting { options, is_beside: true, stacks, names, kinds: Arc::new(Kinds::new()) }).map(Some)
    }

    fn from_setting(setting: Setting) -> Result<Self, StartError> {
        fork::watch().map_err(StartError::System)?;
        let session = Session::begin(&setting, None)?;
        if setting.options.subprocesses {
            // SAFETY: as safe as any change of the environment; it was asked for.
            unsafe { env::set_var(VARIABLE, setting.options.to_environment()) };
        }
        let generation = AtomicU64::new(session.generation);
        let session = Arc::into_raw(session).cast_mut();
        let inner = Arc::new(Inner {
            active: AtomicUsize::new(session.addr()),
            session: AtomicPtr::new(session),
            generation,
            is_stopped: AtomicBool::new(false),
            setting,
        });
        fork::stop_at_exit(Arc::downgrade(&inner));
        Ok(Self(inner))
    }

    /// Declares a kind of events; the same number for equal ones. `None` if it breaks the rules for fields, or
    /// there are 255 already.
    pub fn register(&self, kind: EventKind) -> Option<KindNumber> {
        self.0.setting.kinds.register(kind)
    }

    /// Records an event, of a kind without bytes, with one word for each field. With another number of words nothing
    /// is recorded.
    #[inline]
    pub fn record(&self, kind: KindNumber, words: &[u64]) {
        debug_assert!(words.len() == usize::from(kind.words) && !kind.has_bytes, "not the fields of kind {kind:?}");
        if words.len() != usize::from(kind.words) || kind.has_bytes {
            return;
        }
        let active = self.0.active.load(Ordering::Relaxed);
        // SAFETY: null, or a lane of this thread's list, which lives until the thread takes it out.
        if let Some(lane) = unsafe { lanes::last().as_ref() }
            && lane.enter(active)
        {
            lane.append(kind.number, words);
            lane.leave(active);
        } else {
            self.0.with_lane(&|lane| lane.append(kind.number, words));
        }
    }

    /// Records an event of a kind whose last field is a byte string. It must fit into a buffer: more than some 65,000
    /// bytes are counted as lost.
    pub fn record_bytes(&self, kind: KindNumber, words: &[u64], bytes: &[u8]) {
        debug_assert!(words.len() == usize::from(kind.words) && kind.has_bytes, "not the fields of kind {kind:?}");
        if words.len() != usize::from(kind.words) || !kind.has_bytes {
            return;
        }
        self.0.with_lane(&|lane| lane.append_bytes(kind.number, words, bytes));
    }

    /// Something begins.
    #[inline]
    pub fn begin(&self, frame: RawFrame) {
        self.record(kinds::BEGIN, &[frame.to_bits()]);
    }

    /// Something begins, on this stack.
    #[inline]
    pub fn begin_at(&self, frame: RawFrame, stack: Option<StackId>) {
        self.record(kinds::BEGIN_AT, &[frame.to_bits(), word_of(stack)]);
    }

    /// Something begins, about which there is more to say, as a JSON object.
    pub fn begin_with(&self, frame: RawFrame, stack: Option<StackId>, json: &[u8]) {
        self.record_bytes(kinds::BEGIN_WITH, &[frame.to_bits(), word_of(stack)], json);
    }

    /// What this thread has begun last ends.
    #[inline]
    pub fn end(&self) {
        self.record(kinds::END, &[]);
    }

    /// Something happens.
    #[inline]
    pub fn instant(&self, frame: RawFrame, stack: Option<StackId>) {
        self.record(kinds::INSTANT, &[frame.to_bits(), word_of(stack)]);
    }

    /// Something happens, about which there is more to say, as a JSON object.
    pub fn instant_with(&self, frame: RawFrame, stack: Option<StackId>, json: &[u8]) {
        self.record_bytes(kinds::INSTANT_WITH, &[frame.to_bits(), word_of(stack)], json);
    }

    /// A quantity has this value from now on.
    #[inline]
    pub fn counter(&self, frame: RawFrame, value: f64) {
        self.record(kinds::COUNTER, &[frame.to_bits(), value.to_bits()]);
    }

    /// A stack was seen, and counts this much.
    #[inline]
    pub fn sample(&self, stack: Option<StackId>, weight: i64) {
        self.record(kinds::SAMPLE, &[word_of(stack), weight.cast_unsigned()]);
    }

    /// Memory is taken.
    #[inline]
    pub fn allocate(&self, address: u64, size: u64, stack: Option<StackId>) {
        self.record(kinds::ALLOCATE, &[address, size, word_of(stack)]);
    }

    /// Memory is given back.
    #[inline]
    pub fn free(&self, address: u64) {
        self.record(kinds::FREE, &[address]);
    }

    /// Names the calling thread. Without this it has the name that the system knows.
    pub fn name_thread(&self, name: &str) {
        let name = name.to_owned();
        self.0.with_lane(&|lane| lane.set_name(name.clone()));
    }

    /// Names the thread that has this number in the kernel, if it has recorded anything.
    pub fn name_other_thread(&self, tid: u32, name: &str) {
        if let Some(session) = self.0.own_session() {
            session.orders.give(Order::Name(tid, name.to_owned()));
            session.doorbell.ring();
        }
    }

    /// Brings all that was recorded before the call into the file. Interpreters may be asked about frames, by the
    /// calling thread.
    pub fn flush(&self) -> Result<(), FlushError> {
        match self.0.own_session() {
            Some(session) => self.0.flush(&session),
            None => Ok(()),
        }
    }

    /// In ring mode: writes what is kept as a whole recording, to `path`, or else to the one of the options, and goes on
    /// recording. A file that is there is replaced once the new one is whole.
    pub fn dump(&self, path: Option<&Path>) -> Result<PathBuf, FlushError> {
        let session = self.0.own_session().ok_or(FlushError::Stopped)?;
        if self.0.setting.options.ring.is_none() {
            return Err(FlushError::NoRing);
        }
        self.0.flush(&session)?;
        let (reply, answer) = channel();
        session.orders.give(Order::Dump(path.map(Path::to_owned), reply));
        session.doorbell.ring();
        answer.recv().unwrap_or(Err(FlushError::Stopped))
    }

    /// Records nothing until [`Recorder::resume`].
    pub fn pause(&self) {
        self.0.active.store(NOTHING, Ordering::SeqCst);
    }

    /// Records again.
    pub fn resume(&self) {
        let session = self.0.session.load(Ordering::Acquire);
        self.0.active.store(session.addr(), Ordering::SeqCst);
        if self.0.is_stopped.load(Ordering::SeqCst) {
            self.pause();
        }
    }

    /// Writes all that was recorded, and ends the file. From then on nothing is recorded. A second time it only
    /// says the same again.
    pub fn stop(&self) -> Summary {
        self.0.stop()
    }

    /// How it is going.
    pub fn stats(&self) -> RecorderStats {
        self.0.own_session().map(|session| session.stats()).unwrap_or_default()
    }

    /// The file. In a forked child without events it is the one that it will not have: the parent's.
    pub fn path(&self) -> PathBuf {
        let session = self.0.last_session();
        session.path.get().unwrap_or(&self.0.setting.options.path).clone()
    }
}

fn word_of(stack: Option<StackId>) -> u64 {
    stack.map_or(0, |stack| stack.get().into())
}

impl Inner {
    /// Lets `append` record on this thread's lane, which is looked for, or made.
    #[cold]
    #[inline(never)]
    fn with_lane(&self, append: &dyn Fn(&Lane)) {
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

    /// The session last begun, of whichever process.
    fn last_session(&self) -> Arc<Session> {
        let session = self.session.load(Ordering::Acquire);
        // SAFETY: a session that was put there keeps the strong count that it had then: until `drop`, or for ever in a
        // forked child.
        unsafe {
            Arc::increment_strong_count(session);
            Arc::from_raw(session)
        }
    }

    /// The session of this process; `None` in a forked child that has not recorded yet.
    fn own_session(&self) -> Option<Arc<Session>> {
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
        let begun = Session::begin(&setting, Some(parent.pid())).ok();
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

    fn wait_for_other_thread(&self) -> Option<Arc<Session>> {
        while self.active.load(Ordering::Acquire) != NOTHING {
            if let Some(session) = self.own_session() {
                return Some(session);
            }
            thread::yield_now();
        }
        None
    }

    fn flush(&self, session: &Session) -> Result<(), FlushError> {
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

    fn stop(&self) -> Summary {
        self.active.store(NOTHING, Ordering::SeqCst);
        let is_first = !self.is_stopped.swap(true, Ordering::SeqCst);
        let Some(session) = self.own_session() else { return Summary::default() };
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
        if self.own_session().is_some() {
            if !self.is_stopped.load(Ordering::SeqCst) {
                self.stop();
            }
            // SAFETY: the strong count of the session that was put there; in a child, the parent's keeps its own for ever.
            drop(unsafe { Arc::from_raw(*self.session.get_mut()) });
        }
    }
}

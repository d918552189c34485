//! One process's recording, while it runs.

use std::fmt;
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;

use stackweave_core::Names;
use stackweave_store::StackTable;

use super::activity::{Activity, Doing, Wait};
use super::announcement::Announcement;
use super::chunk::{Chunk, FullChunks};
use super::chunk_start::{ChunkHook, HookSlot};
use super::doorbells::{self, Place};
use super::fork;
use super::fork_mark;
use super::futex::Doorbell;
use super::gaps;
use super::kinds::Kinds;
use super::known_threads::KnownThreads;
use super::lane::Lane;
use super::observer::{MakeObserver, Observer};
use super::observing::Question;
use super::options::{Options, WhenFull};
use super::orders::{Order, Orders};
use super::outcome::{Counts, RecorderStats, StartError, Summary};
use super::pool::{Pool, Refusal};
use super::tally::Tally;
use super::unwaiting::is_unwaiting;
use super::writer;
use super::written_files::WrittenFiles;
use crate::clock::{Clock, ClockPoint};
use crate::file::EndReason;

/// What does not change when a process forks.
#[derive(Clone)]
pub(super) struct Setting {
    pub(super) options: Options,
    /// Whether the file is the one of the options, or one beside it that has the process's number in its name.
    pub(super) is_beside: bool,
    pub(super) stacks: &'static StackTable,
    pub(super) names: Arc<dyn Names + Send + Sync>,
    pub(super) kinds: Arc<Kinds>,
    pub(super) chunk_hook: HookSlot,
    pub(super) observer: Option<MakeObserver>,
}

impl fmt::Debug for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setting").field("options", &self.options).finish_non_exhaustive()
    }
}

/// Who waits for room calls this, with what really waits. See [`set_waiter`].
pub type Waiter = fn(wait: &mut dyn FnMut());

static WAITER: OnceLock<Waiter> = OnceLock::new();

/// Lets threads that wait for room ([`WhenFull::Block`]) do so inside `waiter`, for example with an interpreter's lock
/// given away meanwhile. For all recordings of the process; the first one that is given stays.
pub fn set_waiter(waiter: Waiter) {
    let _ = WAITER.set(waiter);
}

/// What the threads that record share with the writer.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) generation: u64,
    pid: u32,
    pub(super) clock: Clock,
    pub(super) first_point: ClockPoint,
    when_full: WhenFull,
    waits_plainly: bool,
    chunk_hook: HookSlot,
    /// Whether events may be missing in the file between others, so that buffers begin with what is open.
    has_gaps: AtomicBool,
    pub(super) pool: Pool,
    pub(super) full: FullChunks,
    pub(super) doorbell: &'static Doorbell,
    pub(super) place: &'static Place,
    pub(super) activity: Activity,
    new_lanes: AtomicPtr<Lane>,
    threads: AtomicU32,
    pub(super) known_threads: KnownThreads,
    is_closed: AtomicBool,
    pub(super) counts: Counts,
    /// Events of threads that got no lane.
    pub(super) no_memory: Tally,
    /// Events of signal handlers that came while their thread was getting a lane.
    pub(super) interrupted: Tally,
    pub(super) orders: Orders,
    /// Set before the session is known to anyone but its writer.
    pub(super) path: OnceLock<PathBuf>,
    /// The files that it has created.
    pub(super) written: WrittenFiles,
    writer: Mutex<Option<JoinHandle<()>>>,
    /// What to write if a signal ends the program.
    announcement: Mutex<Option<Announcement>>,
    /// What has observed the recording, once it has ended.
    observer: Mutex<KeptObserver>,
}

/// An observer whose writer is gone.
#[derive(Default)]
pub(super) struct KeptObserver(pub(super) Option<Box<dyn Observer>>);

impl fmt::Debug for KeptObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeptObserver").field(&self.0.is_some()).finish()
    }
}

// SAFETY: the pointers in it lead to lanes and chunks, which say themselves who may touch what; each is handed over
// with a release and taken with an acquire.
unsafe impl Send for Session {}
// SAFETY: as above.
unsafe impl Sync for Session {}

impl Session {
    /// Events could not be written.
    pub(super) fn expect_gaps(&self) {
        self.has_gaps.store(true, Ordering::Relaxed);
        gaps::add();
    }

    /// Who says what is open at the beginning of a buffer, if that may not be known.
    pub(super) fn chunk_hook(&self) -> Option<ChunkHook> {
        if self.has_gaps.load(Ordering::Relaxed) { self.chunk_hook.get() } else { None }
    }

    /// Starts the writer, which makes the file.
    pub(super) fn begin(setting: &Setting, forked_from: Option<u32>) -> Result<Arc<Self>, StartError> {
        let (clock, first_point) = setting.options.clock.map_or_else(Clock::start, Clock::start_with);
        let place = doorbells::lease();
        let session = Arc::new(Self {
            generation: fork::generation(),
            pid: std::process::id(),
            clock,
            first_point,
            when_full: setting.options.when_full,
            waits_plainly: setting.options.waits_plainly,
            chunk_hook: setting.chunk_hook.clone(),
            has_gaps: AtomicBool::new(setting.options.when_full == WhenFull::Drop),
            pool: Pool::new(setting.options.memory),
            full: FullChunks::new(),
            doorbell: &place.doorbell,
            place,
            activity: Activity::new(),
            new_lanes: AtomicPtr::new(ptr::null_mut()),
            threads: AtomicU32::new(0),
            known_threads: KnownThreads::default(),
            is_closed: AtomicBool::new(false),
            counts: Counts::new(),
            no_memory: Tally::new(),
            interrupted: Tally::new(),
            orders: Orders::new(),
            path: OnceLock::new(),
            written: WrittenFiles::default(),
            writer: Mutex::new(None),
            announcement: Mutex::new(None),
            observer: Mutex::default(),
        });
        let writer = writer::spawn(&session, setting, forked_from)?;
        *session.writer.lock().unwrap_or_else(PoisonError::into_inner) = Some(writer);
        Ok(session)
    }

    /// The process that records.
    pub(super) const fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether this process is a child that was forked behind our back, and shares nothing with the writer.
    pub(super) fn is_of_another_process(&self) -> bool {
        fork_mark::is_copy().unwrap_or_else(|| std::process::id() != self.pid)
    }

    /// The number that the kernel has for the calling thread; 0 if the thread runs in this memory for another process, as the
    /// child of a `vfork` does: then it is not known whose memory it is.
    pub(super) fn tid_of_caller(&self) -> u32 {
        // SAFETY: has no conditions.
        let tid = unsafe { libc::gettid() }.unsigned_abs();
        if std::process::id() == self.pid { tid } else { 0 }
    }

    /// This process is such a child. Its next event will find out as after any other fork.
    pub(super) fn leave_to_parent(&self) {
        if fork::generation() == self.generation {
            fork::begin_generation();
        }
    }

    /// The number of a thread that is new, from 1.
    pub(super) fn next_thread(&self) -> u32 {
        self.threads.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// A chunk for a lane that has none. Without one, its event is lost.
    pub(super) fn next_chunk(&self) -> Result<*mut Chunk, Refusal> {
        let mut chunk = self.pool.take();
        if self.when_full == WhenFull::Drop {
            return chunk;
        }
        if chunk.is_err() && is_unwaiting() {
            return self.pool.take_beyond();
        }
        let mut patience = Wait::begin(self.pool.returns());
        while let Err(refusal) = chunk
            && !self.is_closed()
        {
            if refusal == Refusal::NoMemory && !self.has_chunks_on_their_way() {
                return chunk;
            }
            let mut wait = || chunk = self.pool.wait();
            match WAITER.get().filter(|_| !self.waits_plainly) {
                Some(waiter) => waiter(&mut wait),
                None => wait(),
            }
            if chunk.is_err() && patience.is_over(self.pool.returns(), &self.activity) {
                return self.pool.take_beyond();
            }
        }
        chunk
    }

    /// Whether the writer has buffers that it will give back.
    fn has_chunks_on_their_way(&self) -> bool {
        !self.full.is_empty() || !self.activity.is(Doing::Sleeping)
    }

    /// Tells the writer of a lane.
    pub(super) fn introduce(&self, lane: *mut Lane) {
        let mut newest = self.new_lanes.load(Ordering::Relaxed);
        loop {
            // SAFETY: the calling thread's lane, which nobody else knows of yet.
            unsafe { (*lane).shared.next_new.store(newest, Ordering::Relaxed) };
            match self.new_lanes.compare_exchange_weak(newest, lane, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => newest = now,
            }
        }
        if self.is_closed() {
            self.release_new_lanes();
        }
    }

    /// Calls `each` with the lanes that are new, and with the writer's reference to each.
    pub(super) fn take_new_lanes(&self, mut each: impl FnMut(*mut Lane)) {
        let mut lane = self.new_lanes.swap(ptr::null_mut(), Ordering::SeqCst);
        while !lane.is_null() {
            // SAFETY: the list has a reference to each of its lanes, which goes to `each`.
            let next = unsafe { (*lane).shared.next_new.load(Ordering::Relaxed) };
            each(lane);
            lane = next;
        }
    }

    fn release_new_lanes(&self) {
        // SAFETY: the reference is the writer's, who is gone.
        self.take_new_lanes(|lane| unsafe { Lane::release(lane) });
    }

    /// No writer will ever look again: nobody may wait for it any more.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.orders.close();
        self.pool.wake();
        self.release_new_lanes();
        self.pool.give_back_memory();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// Waits for the writer's end.
    pub(super) fn join_writer(&self) {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer {
            let _ = writer.join();
        }
    }

    /// Has a line written to standard error if a signal ends the program, which calls the recording by this name.
    pub(super) fn announce_as(&self, name: String) {
        *self.announcement.lock().unwrap_or_else(PoisonError::into_inner) = Announcement::new(name);
    }

    /// A signal has ended the recording: says where it is.
    pub(super) fn announce(&self, reason: EndReason) {
        // The thread that the signal has interrupted may be giving a name.
        let Ok(announcement) = self.announcement.try_lock() else { return };
        if let Some(announcement) = &*announcement
            && self.path.get().is_some_and(|path| path.exists())
        {
            announcement.write(reason, self.counts.error().as_deref());
        }
    }

    /// Has the writer ask the observer, and write what it notes by that. The question is dropped if there is no writer.
    pub(super) fn ask(&self, question: Question) {
        let (reply, answer) = channel();
        self.orders.give(Order::Ask(question, reply));
        self.doorbell.ring();
        let _ = answer.recv();
    }

    /// The observer of a recording that has ended.
    pub(super) fn kept_observer(&self) -> MutexGuard<'_, KeptObserver> {
        self.observer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What became of it, once it is closed.
    pub(super) fn summary(&self) -> Summary {
        let path = self.path.get().and_then(|path| self.written.path(path)).filter(|path| path.exists());
        let path = path.unwrap_or_default();
        let RecorderStats { events, bytes_written, lost, error, .. } = self.stats();
        Summary { path, events, bytes_written, lost, error }
    }

    pub(super) fn stats(&self) -> RecorderStats {
        RecorderStats {
            events: self.counts.events.load(Ordering::Relaxed),
            bytes_written: self.counts.bytes.load(Ordering::Relaxed),
            lost: self.counts.lost(),
            buffer_bytes: self.pool.bytes(),
            ring_bytes: self.counts.kept.load(Ordering::Relaxed),
            threads: self.threads.load(Ordering::Relaxed),
            error: self.counts.error(),
        }
    }
}

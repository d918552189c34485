//! The recording of one process, while it runs.

use std::fmt;
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;

use stackweave_core::FrameNames;
use stackweave_store::StackTable;

use super::announcement::Announcement;
use super::chunk::{Chunk, FullChunks};
use super::chunk_start::{ChunkHook, ChunkHookSlot};
use super::doorbells::{self, DoorbellSlot};
use super::error::StartError;
use super::fork;
use super::fork_mark;
use super::futex::Doorbell;
use super::gaps;
use super::guarded_observer::ObserverQuery;
use super::kind_registry::KindRegistry;
use super::known_threads::KnownThreads;
use super::lane::Lane;
use super::loss_counter::LossCounter;
use super::never_block::must_not_block;
use super::observer::{MakeObserver, Observer};
use super::options::{RecorderOptions, WhenFull};
use super::pool::{ChunkPool, PoolError};
use super::requests::{RequestQueue, WriterRequest};
use super::stats::{RecorderStats, Summary, WriterCounts};
use super::writer;
use super::writer_state::{WriterState, WriterStateCell, WriterWait};
use super::written_files::WrittenFiles;
use crate::clock::{Clock, ClockPoint};
use crate::file::EndReason;

/// The configuration of a recorder, which forked children share.
#[derive(Clone)]
pub(super) struct RecorderConfig {
    pub(super) options: RecorderOptions,
    /// Whether the file is beside the one of the options, with the process id in its name.
    pub(super) is_beside: bool,
    pub(super) stacks: &'static StackTable,
    pub(super) names: Arc<dyn FrameNames + Send + Sync>,
    pub(super) kinds: Arc<KindRegistry>,
    pub(super) chunk_hook: ChunkHookSlot,
    pub(super) observer: Option<MakeObserver>,
}

impl fmt::Debug for RecorderConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecorderConfig").field("options", &self.options).finish_non_exhaustive()
    }
}

/// A function that wraps the waits of threads for a buffer. It is called with the actual wait. See [`set_waiter`].
pub type Waiter = fn(wait: &mut dyn FnMut());

static WAITER: OnceLock<Waiter> = OnceLock::new();

/// Makes threads wait for a buffer ([`WhenFull::Block`]) inside `waiter`, for example after it has released an interpreter's lock.
/// It applies to all recordings of the process; only the first call has an effect.
pub fn set_waiter(waiter: Waiter) {
    let _ = WAITER.set(waiter);
}

/// The state that recording threads share with the writer.
#[derive(Debug)]
pub(super) struct RecordingSession {
    pub(super) generation: u64,
    pid: u32,
    pub(super) clock: Clock,
    pub(super) first_point: ClockPoint,
    when_full: WhenFull,
    bypass_waiter: bool,
    chunk_hook: ChunkHookSlot,
    /// Whether the file may lack events between others, so that buffers begin with the open spans.
    has_gaps: AtomicBool,
    pub(super) pool: ChunkPool,
    pub(super) full: FullChunks,
    pub(super) doorbell: &'static Doorbell,
    pub(super) doorbell_slot: &'static DoorbellSlot,
    pub(super) writer_state: WriterStateCell,
    new_lanes: AtomicPtr<Lane>,
    threads: AtomicU32,
    pub(super) known_threads: KnownThreads,
    is_closed: AtomicBool,
    pub(super) counts: WriterCounts,
    /// Events of threads that could not create a lane.
    pub(super) no_memory: LossCounter,
    /// Events of signal handlers that interrupted the creation of a lane.
    pub(super) interrupted: LossCounter,
    pub(super) requests: RequestQueue,
    /// Set before the session is visible to other threads than its writer.
    pub(super) path: OnceLock<PathBuf>,
    /// The files that it has created.
    pub(super) written: WrittenFiles,
    writer: Mutex<Option<JoinHandle<()>>>,
    /// The line to write if a signal ends the program.
    announcement: Mutex<Option<Announcement>>,
    /// The observer, once the recording has ended.
    observer: Mutex<KeptObserver>,
}

/// An observer whose writer has ended.
#[derive(Default)]
pub(super) struct KeptObserver(pub(super) Option<Box<dyn Observer>>);

impl fmt::Debug for KeptObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeptObserver").field(&self.0.is_some()).finish()
    }
}

// SAFETY: its pointers refer to lanes and chunks, which define who may access what; each is handed over with a release and an
// acquire.
unsafe impl Send for RecordingSession {}
// SAFETY: as above.
unsafe impl Sync for RecordingSession {}

impl RecordingSession {
    /// Notes that events could not be written.
    pub(super) fn expect_gaps(&self) {
        self.has_gaps.store(true, Ordering::Relaxed);
        gaps::add();
    }

    /// Returns the function that records open spans at the beginning of a buffer, if the file may lack them.
    pub(super) fn chunk_hook(&self) -> Option<ChunkHook> {
        if self.has_gaps.load(Ordering::Relaxed) { self.chunk_hook.get() } else { None }
    }

    /// Starts the writer, which creates the file.
    pub(super) fn begin(config: &RecorderConfig, forked_from: Option<u32>) -> Result<Arc<Self>, StartError> {
        let (clock, first_point) = config.options.clock.map_or_else(Clock::start, Clock::start_with);
        let slot = doorbells::lease();
        let session = Arc::new(Self {
            generation: fork::generation(),
            pid: std::process::id(),
            clock,
            first_point,
            when_full: config.options.when_full,
            bypass_waiter: config.options.bypass_waiter,
            chunk_hook: config.chunk_hook.clone(),
            has_gaps: AtomicBool::new(config.options.when_full == WhenFull::Drop),
            pool: ChunkPool::new(config.options.memory),
            full: FullChunks::new(),
            doorbell: &slot.doorbell,
            doorbell_slot: slot,
            writer_state: WriterStateCell::new(),
            new_lanes: AtomicPtr::new(ptr::null_mut()),
            threads: AtomicU32::new(0),
            known_threads: KnownThreads::default(),
            is_closed: AtomicBool::new(false),
            counts: WriterCounts::new(),
            no_memory: LossCounter::new(),
            interrupted: LossCounter::new(),
            requests: RequestQueue::new(),
            path: OnceLock::new(),
            written: WrittenFiles::default(),
            writer: Mutex::new(None),
            announcement: Mutex::new(None),
            observer: Mutex::default(),
        });
        let writer = writer::spawn(&session, config, forked_from)?;
        *session.writer.lock().unwrap_or_else(PoisonError::into_inner) = Some(writer);
        Ok(session)
    }

    /// Returns the id of the recording process.
    pub(super) const fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns whether this process is a child of a fork that ran no handlers, and so does not share the writer.
    pub(super) fn is_of_another_process(&self) -> bool {
        fork_mark::is_copy().unwrap_or_else(|| std::process::id() != self.pid)
    }

    /// Returns the id of the calling thread; 0 if it runs in this memory for another process, as the child of a `vfork` does: then
    /// the owner of its allocations is unknown.
    pub(super) fn tid_of_caller(&self) -> u32 {
        // SAFETY: has no conditions.
        let tid = unsafe { libc::gettid() }.unsigned_abs();
        if std::process::id() == self.pid { tid } else { 0 }
    }

    /// Handles such a child: its next event will be that of a forked child.
    pub(super) fn leave_to_parent(&self) {
        if fork::generation() == self.generation {
            fork::begin_generation();
        }
    }

    /// Returns the number of a new thread, from 1.
    pub(super) fn next_thread(&self) -> u32 {
        self.threads.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns a chunk for a lane that has none. Without one, the event is lost.
    pub(super) fn next_chunk(&self) -> Result<*mut Chunk, PoolError> {
        let mut chunk = self.pool.take();
        if self.when_full == WhenFull::Drop {
            return chunk;
        }
        if chunk.is_err() && must_not_block() {
            return self.pool.take_beyond();
        }
        let mut writer_wait = WriterWait::begin(self.pool.return_count());
        while let Err(error) = chunk
            && !self.is_closed()
        {
            if error == PoolError::NoMemory && !self.has_chunks_in_transit() {
                return chunk;
            }
            let mut wait = || chunk = self.pool.wait();
            match WAITER.get().filter(|_| !self.bypass_waiter) {
                Some(waiter) => waiter(&mut wait),
                None => wait(),
            }
            if chunk.is_err() && writer_wait.is_over(self.pool.return_count(), &self.writer_state) {
                return self.pool.take_beyond();
            }
        }
        chunk
    }

    /// Returns whether the writer has buffers that it will put back.
    fn has_chunks_in_transit(&self) -> bool {
        !self.full.is_empty() || !self.writer_state.is(WriterState::Sleeping)
    }

    /// Adds a lane to those that are new to the writer.
    pub(super) fn introduce(&self, lane: *mut Lane) {
        let mut newest = self.new_lanes.load(Ordering::Relaxed);
        loop {
            // SAFETY: the calling thread's lane, which no other thread has yet.
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

    /// Calls `each` with the new lanes, and with the writer's reference to each.
    pub(super) fn take_new_lanes(&self, mut each: impl FnMut(*mut Lane)) {
        let mut lane = self.new_lanes.swap(ptr::null_mut(), Ordering::SeqCst);
        while !lane.is_null() {
            // SAFETY: the list has a reference to each of its lanes, which it passes to `each`.
            let next = unsafe { (*lane).shared.next_new.load(Ordering::Relaxed) };
            each(lane);
            lane = next;
        }
    }

    fn release_new_lanes(&self) {
        // SAFETY: the reference is that of the writer, which has ended.
        self.take_new_lanes(|lane| unsafe { Lane::release(lane) });
    }

    /// Closes the session, after which there is no writer, and no thread waits for one.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.requests.close();
        self.pool.wake();
        self.release_new_lanes();
        self.pool.release_memory();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// Waits until the writer has ended.
    pub(super) fn join_writer(&self) {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer {
            let _ = writer.join();
        }
    }

    /// Makes the recorder write a line to standard error if a signal ends the program. It calls the recording `name`.
    pub(super) fn announce_as(&self, name: String) {
        *self.announcement.lock().unwrap_or_else(PoisonError::into_inner) = Announcement::new(name);
    }

    /// Writes that line, after a signal has ended the recording.
    pub(super) fn announce(&self, reason: EndReason) {
        // The thread that the signal interrupted may hold the lock in `announce_as`.
        let Ok(announcement) = self.announcement.try_lock() else { return };
        if let Some(announcement) = &*announcement
            && self.path.get().is_some_and(|path| path.exists())
        {
            announcement.write(reason, self.counts.error().as_deref());
        }
    }

    /// Makes the writer run a query of the observer, and write its notes. Without a writer the query is dropped.
    pub(super) fn query_observer(&self, query: ObserverQuery) {
        let (reply, answer) = channel();
        self.requests.push(WriterRequest::QueryObserver(query, reply));
        self.doorbell.ring();
        let _ = answer.recv();
    }

    /// Returns the observer of a recording that has ended.
    pub(super) fn kept_observer(&self) -> MutexGuard<'_, KeptObserver> {
        self.observer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the totals, once the session is closed.
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

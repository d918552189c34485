//! The events of one thread in one recording, on their way to the writer.
//!
//! Hot file. The warm path, [`Lane::enter`] to [`Lane::leave`], neither allocates nor locks nor makes system calls, and is
//! async-signal-safe. So is the rest, except for waits where the recording is configured to wait.

use std::cell::Cell;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, compiler_fence};

use super::chunk::{CHUNK_WORDS, Chunk};
use super::chunk_start::ChunkStart;
use super::gaps;
use super::loss_counter::LossCounter;
use super::pool::PoolError;
use super::session::RecordingSession;
use crate::clock::Clock;

const WORD: usize = size_of::<u64>();
const PAGE: usize = 4096;
/// The key of a lane whose thread is recording an event.
const BUSY: usize = 0;

/// Shared by its thread, which writes, and the writer, which reads what was published. The last reference unmaps it.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Lane {
    /// The address of its session, or [`BUSY`], which a signal handler on the same thread sees.
    key: AtomicUsize,
    /// The position of the next event; all before it is published. 0 without a chunk.
    cursor: AtomicUsize,
    /// The end of its chunk.
    end: Cell<usize>,
    clock: Clock,
    session: *const RecordingSession,
    /// Whether it has lost events since the beginning of its last chunk.
    has_lost: Cell<bool>,
    /// The index of its current or next chunk.
    sequence: AtomicU64,
    /// The next lane of the same thread.
    pub(super) next_of_thread: Cell<*mut Lane>,
    pub(super) shared: SharedLane,
}

/// The fields of a lane that other threads access.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct SharedLane {
    references: AtomicU32,
    has_ended: AtomicBool,
    /// Whether the destructors of its thread have run.
    is_left: AtomicBool,
    /// Whether the thread's reference is released, by the thread or by the writer.
    is_released: AtomicBool,
    /// The next lane in the list of those that are new to the writer.
    pub(super) next_new: AtomicPtr<Lane>,
    /// The number of its thread in the recording, from 1. Only the writer changes it: it may have assigned a number before.
    pub(super) number: Cell<u32>,
    /// The thread id; 0 if unknown.
    pub(super) tid: u32,
    /// A new name of the thread, boxed, until the writer takes it.
    name: AtomicPtr<String>,
    pub(super) full: LossCounter,
    pub(super) interrupted: LossCounter,
    pub(super) too_large: LossCounter,
    pub(super) no_memory: LossCounter,
    /// The writer's: the index of the next chunk.
    pub(super) expected: Cell<u64>,
    /// The writer's: whether it knows the lane.
    pub(super) is_known: Cell<bool>,
}

const _: () = assert!(size_of::<Lane>() <= PAGE);

impl Lane {
    /// Maps a lane of the calling thread, without a chunk. Returns null without memory. Async-signal-safe.
    ///
    /// It has two references: the thread's and the writer's.
    pub(super) fn map(session: &Arc<RecordingSession>) -> *mut Self {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: maps new memory.
        let page = unsafe { libc::mmap(ptr::null_mut(), PAGE, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
        if page == libc::MAP_FAILED {
            return ptr::null_mut();
        }
        session.pool.add_lane();
        let lane = page.cast::<Self>();
        let session = Arc::into_raw(Arc::clone(session));
        // SAFETY: a new page, aligned and large enough. The session is alive.
        unsafe { lane.write(Self::new(session, (*session).next_thread())) };
        lane
    }

    /// # Safety
    /// The session is alive.
    unsafe fn new(session: *const RecordingSession, number: u32) -> Self {
        Self {
            key: AtomicUsize::new(session.addr()),
            cursor: AtomicUsize::new(0),
            end: Cell::new(0),
            // SAFETY: the caller's promise.
            clock: unsafe { (*session).clock },
            session,
            has_lost: Cell::new(false),
            sequence: AtomicU64::new(0),
            next_of_thread: Cell::new(ptr::null_mut()),
            shared: SharedLane {
                references: AtomicU32::new(2),
                has_ended: AtomicBool::new(false),
                is_left: AtomicBool::new(false),
                is_released: AtomicBool::new(false),
                next_new: AtomicPtr::new(ptr::null_mut()),
                number: Cell::new(number),
                // SAFETY: the caller's promise.
                tid: unsafe { (*session).tid_of_caller() },
                name: AtomicPtr::new(ptr::null_mut()),
                full: LossCounter::new(),
                interrupted: LossCounter::new(),
                too_large: LossCounter::new(),
                no_memory: LossCounter::new(),
                expected: Cell::new(0),
                is_known: Cell::new(false),
            },
        }
    }

    /// Releases one reference.
    ///
    /// # Safety
    /// The caller has a reference, and does not use it afterwards.
    pub(super) unsafe fn release(lane: *mut Self) {
        // SAFETY: the caller's promise.
        let this = unsafe { &*lane };
        if this.shared.references.fetch_sub(1, Ordering::AcqRel) == 1 {
            drop(this.take_name());
            let session = this.session;
            // SAFETY: it was the last reference. The lane had a strong count of its session.
            unsafe {
                libc::munmap(lane.cast(), PAGE);
                drop(Arc::from_raw(session));
            }
        }
    }

    /// Returns its session.
    pub(super) fn session(&self) -> &RecordingSession {
        // SAFETY: the lane holds a strong count of it.
        unsafe { &*self.session }
    }

    /// Returns whether it records for the session at this address.
    pub(super) fn is_of(&self, session: usize) -> bool {
        self.session.addr() == session
    }

    /// Returns whether its thread is recording an event.
    pub(super) fn is_busy(&self) -> bool {
        self.key.load(Ordering::Relaxed) == BUSY
    }

    /// Begins an event, if this is the lane of the session with this address and its thread is not recording one already.
    /// [`Lane::leave`] must follow.
    #[inline]
    pub(super) fn enter(&self, session: usize) -> bool {
        if !self.is_ready_for(session) {
            return false;
        }
        self.key.store(BUSY, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        true
    }

    #[inline]
    pub(super) fn leave(&self, session: usize) {
        compiler_fence(Ordering::SeqCst);
        self.key.store(session, Ordering::Relaxed);
    }

    /// Returns the time by the clock of its session.
    #[inline]
    pub(super) fn ticks(&self) -> u64 {
        self.clock.ticks()
    }

    /// Returns whether it is the lane of the session with this address, and its thread is not recording an event.
    #[inline]
    pub(super) fn is_ready_for(&self, session: usize) -> bool {
        self.key.load(Ordering::Relaxed) == session
    }

    /// Appends an event, between [`Lane::enter`] and [`Lane::leave`].
    #[inline]
    pub(super) fn append(&self, kind: u8, words: &[u64]) {
        self.append_at(self.clock.ticks(), kind, words);
    }

    /// Does the same at a given time.
    #[inline]
    pub(super) fn append_at(&self, ticks: u64, kind: u8, words: &[u64]) {
        let Some(cursor) = self.reserve(1 + words.len(), ticks) else { return };
        // SAFETY: the head and the words fit from the cursor on, in a chunk of this thread.
        unsafe {
            let start: *mut u64 = ptr::with_exposed_provenance_mut(cursor);
            start.write(ticks << 8 | u64::from(kind));
            ptr::copy_nonoverlapping(words.as_ptr(), start.add(1), words.len());
        }
        self.cursor.store(cursor + (1 + words.len()) * WORD, Ordering::Release);
    }

    /// Appends an event that ends with a byte string.
    pub(super) fn append_bytes(&self, kind: u8, words: &[u64], bytes: &[u8]) {
        self.append_bytes_at(self.clock.ticks(), kind, words, bytes);
    }

    /// Does the same at a given time.
    pub(super) fn append_bytes_at(&self, ticks: u64, kind: u8, words: &[u64], bytes: &[u8]) {
        let needed = 2 + words.len() + bytes.len().div_ceil(WORD);
        if needed > CHUNK_WORDS {
            self.shared.too_large.add(ticks);
            return;
        }
        let Some(cursor) = self.reserve(needed, ticks) else { return };
        // SAFETY: all words fit from the cursor on, in a chunk of this thread. The last word is zeroed before the bytes fill all or
        // part of it.
        unsafe {
            let start: *mut u64 = ptr::with_exposed_provenance_mut(cursor);
            start.write(ticks << 8 | u64::from(kind));
            ptr::copy_nonoverlapping(words.as_ptr(), start.add(1), words.len());
            start.add(needed - 1).write(0);
            start.add(1 + words.len()).write(bytes.len() as u64);
            ptr::copy_nonoverlapping(bytes.as_ptr(), start.add(2 + words.len()).cast(), bytes.len());
        }
        self.cursor.store(cursor + needed * WORD, Ordering::Release);
    }

    /// Counts an event of a signal handler that interrupted another event.
    #[cold]
    pub(super) fn refuse_interrupted(&self) {
        self.shared.interrupted.add(self.clock.ticks());
    }

    /// Returns the position for this many words. `None` if they are lost, which is counted.
    #[inline]
    fn reserve(&self, words: usize, ticks: u64) -> Option<usize> {
        let cursor = self.cursor.load(Ordering::Relaxed);
        if self.end.get() - cursor >= words * WORD { Some(cursor) } else { self.next_chunk(words, ticks) }
    }

    #[cold]
    #[inline(never)]
    fn next_chunk(&self, words: usize, ticks: u64) -> Option<usize> {
        let session = self.session();
        if session.is_of_another_process() {
            session.leave_to_parent();
            return None;
        }
        self.retire_chunk();
        match session.next_chunk() {
            Ok(chunk) => {
                self.begin(chunk);
                if self.has_lost.replace(false) {
                    gaps::add();
                }
                if let Some(hook) = session.chunk_hook() {
                    hook(&mut ChunkStart::new(self, ticks, words));
                }
                return Some(self.cursor.load(Ordering::Relaxed));
            }
            Err(PoolError::Full) => self.shared.full.add(ticks),
            Err(PoolError::NoMemory) => self.shared.no_memory.add(ticks),
        }
        self.has_lost.set(true);
        None
    }

    /// Continues in this chunk, which is this thread's.
    fn begin(&self, chunk: *mut Chunk) {
        // SAFETY: from the pool, so no other thread's.
        let head = unsafe { &*chunk };
        head.lane.set(self);
        head.sequence.set(self.sequence.load(Ordering::Relaxed));
        head.words.set(0);
        head.taken.set(0);
        head.observed.set(0);
        let start = Chunk::start(chunk);
        self.end.set(start + CHUNK_WORDS * WORD);
        self.cursor.store(start, Ordering::Release);
    }

    /// Hands its chunk over to the writer. The writer must not find it by the cursor once it is in the queue, because from there
    /// it may get to another thread.
    fn retire_chunk(&self) {
        let cursor = self.cursor.load(Ordering::Relaxed);
        if cursor == 0 {
            return;
        }
        let chunk = Chunk::of_position(cursor);
        // SAFETY: this thread's chunk.
        unsafe { (*chunk).words.set((*chunk).words_before(cursor)) };
        self.end.set(0);
        // This store precedes the next: a writer that finds no chunk then knows that one is about to be queued.
        self.sequence.store(self.sequence.load(Ordering::Relaxed) + 1, Ordering::Release);
        self.cursor.store(0, Ordering::Release);
        let session = self.session();
        session.full.push(chunk);
        session.doorbell.ring();
    }

    /// Hands the lane over to the writer, because the destructors of the thread have run. The thread may still record; the writer
    /// detects its end. Returns whether the session is closed already, so that no writer will do so.
    pub(super) fn leave_to_writer(&self) -> bool {
        self.retire_chunk();
        self.forget_share();
        self.session().is_closed()
    }

    /// Gives up the lane's share of memory in the pool.
    fn forget_share(&self) {
        if !self.shared.is_left.swap(true, Ordering::SeqCst) {
            self.session().pool.forget_lane();
        }
    }

    /// Returns whether the caller must release the thread's reference, because nothing has released it before.
    pub(super) fn release_once(&self) -> bool {
        !self.shared.is_released.swap(true, Ordering::SeqCst)
    }

    /// Ends the lane. Its thread will not use it afterwards, except to release it.
    pub(super) fn end_of_thread(&self) {
        self.retire_chunk();
        self.forget_share();
        self.shared.has_ended.store(true, Ordering::Release);
    }

    /// Returns whether its thread has ended: then its last chunk is in the queue.
    pub(super) fn has_ended(&self) -> bool {
        self.shared.has_ended.load(Ordering::Acquire)
    }

    /// Returns the chunk that is being filled, and the number of its words. `None` if earlier chunks are still in
    /// transit, or there is none. Only the writer calls this.
    pub(super) fn partial(&self) -> Option<(&Chunk, usize)> {
        let cursor = self.cursor.load(Ordering::Acquire);
        if cursor == 0 {
            return None;
        }
        // SAFETY: the chunk was this lane's when the cursor was read, and only the caller, the writer, can pass it to another
        // lane.
        let chunk = unsafe { &*Chunk::of_position(cursor) };
        (chunk.sequence.get() == self.shared.expected.get()).then(|| (chunk, chunk.words_before(cursor)))
    }

    /// Returns the index of the chunk that is being filled, or of the next one. All published words are in it or in
    /// earlier chunks.
    pub(super) fn sequence(&self) -> u64 {
        self.sequence.load(Ordering::Acquire)
    }

    /// Returns whether the writer has everything that was published when [`Lane::sequence`] was `wanted`, although
    /// there is no [`Lane::partial`] chunk.
    pub(super) fn is_taken_up_to(&self, wanted: u64) -> bool {
        let expected = self.shared.expected.get();
        expected > wanted || (!self.has_chunk() && self.sequence() == expected)
    }

    /// Returns whether a chunk is being filled.
    pub(super) fn has_chunk(&self) -> bool {
        self.cursor.load(Ordering::Acquire) != 0
    }

    /// Sets the name of the thread. The writer reads it later.
    pub(super) fn set_name(&self, name: String) {
        let old = self.shared.name.swap(Box::into_raw(Box::new(name)), Ordering::AcqRel);
        if !old.is_null() {
            // SAFETY: boxed here, and removed by the swap.
            drop(unsafe { Box::from_raw(old) });
        }
    }

    /// Takes the new name of the thread, if there is one.
    pub(super) fn take_name(&self) -> Option<String> {
        let name = self.shared.name.swap(ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: boxed by `set_name`, and removed by the swap.
        (!name.is_null()).then(|| *unsafe { Box::from_raw(name) })
    }
}

impl SharedLane {
    /// Returns whether the destructors of its thread have run.
    pub(super) fn is_left(&self) -> bool {
        self.is_left.load(Ordering::SeqCst)
    }
}

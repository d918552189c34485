//! What one thread records into one recording.
//!
//! Hot file. The warm path, [`Lane::enter`] to [`Lane::leave`], neither allocates nor locks nor calls the system, and is
//! async-signal-safe; so is the rest but for waiting, where that is asked for.

use std::cell::Cell;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, compiler_fence};

use super::chunk::{CHUNK_WORDS, Chunk};
use super::chunk_start::ChunkStart;
use super::gaps;
use super::pool::Refusal;
use super::session::Session;
use super::tally::Tally;
use crate::clock::Clock;

const WORD: usize = size_of::<u64>();
const PAGE: usize = 4096;
/// The key of a lane whose thread is recording right now.
const BUSY: usize = 0;

/// Shared by its thread, which writes, and the writer, which reads what was published. The last of them unmaps it.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Lane {
    /// The address of its session, or [`BUSY`]. A signal handler on the same thread finds out by it.
    key: AtomicUsize,
    /// Where the next event goes: all before it is published. 0 without a chunk.
    cursor: AtomicUsize,
    /// Where its chunk ends.
    end: Cell<usize>,
    clock: Clock,
    session: *const Session,
    /// Whether it has lost events since it last began a chunk.
    has_lost: Cell<bool>,
    /// Of its current or its next chunk.
    sequence: AtomicU64,
    /// The next lane of the same thread.
    pub(super) next_of_thread: Cell<*mut Lane>,
    pub(super) shared: Shared,
}

/// What others than its thread look at.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Shared {
    references: AtomicU32,
    has_ended: AtomicBool,
    /// Whether the destructors of its thread have run.
    is_left: AtomicBool,
    /// Whether the thread's reference is given back, by whoever was first.
    is_given_back: AtomicBool,
    /// The next one that the writer does not know yet.
    pub(super) next_new: AtomicPtr<Lane>,
    /// The number of its thread in the recording, from 1. The writer's: it may have given the thread one before.
    pub(super) number: Cell<u32>,
    /// 0 if it was not to be known.
    pub(super) tid: u32,
    /// A name that the thread was given, boxed, until the writer takes it.
    name: AtomicPtr<String>,
    pub(super) full: Tally,
    pub(super) interrupted: Tally,
    pub(super) too_large: Tally,
    pub(super) no_memory: Tally,
    /// The writer's: which chunk comes next.
    pub(super) expected: Cell<u64>,
    /// The writer's: whether it knows the lane.
    pub(super) is_known: Cell<bool>,
}

const _: () = assert!(size_of::<Lane>() <= PAGE);

impl Lane {
    /// A lane of the calling thread, without a chunk. Null without memory. Async-signal-safe.
    ///
    /// It has two references: the thread's and the writer's.
    pub(super) fn map(session: &Arc<Session>) -> *mut Self {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: maps new memory.
        let page = unsafe { libc::mmap(ptr::null_mut(), PAGE, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
        if page == libc::MAP_FAILED {
            return ptr::null_mut();
        }
        session.pool.add_lane();
        let lane = page.cast::<Self>();
        let session = Arc::into_raw(Arc::clone(session));
        // SAFETY: a page of our own, aligned, and large enough. The session is alive.
        unsafe { lane.write(Self::new(session, (*session).next_thread())) };
        lane
    }

    /// # Safety
    /// The session is alive.
    unsafe fn new(session: *const Session, number: u32) -> Self {
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
            shared: Shared {
                references: AtomicU32::new(2),
                has_ended: AtomicBool::new(false),
                is_left: AtomicBool::new(false),
                is_given_back: AtomicBool::new(false),
                next_new: AtomicPtr::new(ptr::null_mut()),
                number: Cell::new(number),
                // SAFETY: the caller's promise.
                tid: unsafe { (*session).tid_of_caller() },
                name: AtomicPtr::new(ptr::null_mut()),
                full: Tally::new(),
                interrupted: Tally::new(),
                too_large: Tally::new(),
                no_memory: Tally::new(),
                expected: Cell::new(0),
                is_known: Cell::new(false),
            },
        }
    }

    /// One reference less.
    ///
    /// # Safety
    /// The caller has one, and does not use it again.
    pub(super) unsafe fn release(lane: *mut Self) {
        // SAFETY: the caller's promise.
        let this = unsafe { &*lane };
        if this.shared.references.fetch_sub(1, Ordering::AcqRel) == 1 {
            drop(this.take_name());
            let session = this.session;
            // SAFETY: the last one is gone. The lane had a strong count of its session.
            unsafe {
                libc::munmap(lane.cast(), PAGE);
                drop(Arc::from_raw(session));
            }
        }
    }

    /// Its session.
    pub(super) fn session(&self) -> &Session {
        // SAFETY: the lane holds a strong count of it.
        unsafe { &*self.session }
    }

    /// Whether it records for the session at this address.
    pub(super) fn is_of(&self, session: usize) -> bool {
        self.session.addr() == session
    }

    /// Whether its thread is in the middle of an event.
    pub(super) fn is_busy(&self) -> bool {
        self.key.load(Ordering::Relaxed) == BUSY
    }

    /// Begins an event, if this is the lane of the session with this address and its thread is not in the middle of
    /// one. [`Lane::leave`] must follow.
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

    /// The time by the clock of its session.
    #[inline]
    pub(super) fn ticks(&self) -> u64 {
        self.clock.ticks()
    }

    /// Whether it is the lane of the session with this address, and its thread is not in the middle of an event.
    #[inline]
    pub(super) fn is_ready_for(&self, session: usize) -> bool {
        self.key.load(Ordering::Relaxed) == session
    }

    /// Adds an event, between [`Lane::enter`] and [`Lane::leave`].
    #[inline]
    pub(super) fn append(&self, kind: u8, words: &[u64]) {
        self.append_at(self.clock.ticks(), kind, words);
    }

    /// The same, at a time that the caller knows.
    #[inline]
    pub(super) fn append_at(&self, ticks: u64, kind: u8, words: &[u64]) {
        let Some(cursor) = self.room(1 + words.len(), ticks) else { return };
        // SAFETY: there is room for the head and the words from the cursor on, in a chunk that is this thread's.
        unsafe {
            let place: *mut u64 = ptr::with_exposed_provenance_mut(cursor);
            place.write(ticks << 8 | u64::from(kind));
            ptr::copy_nonoverlapping(words.as_ptr(), place.add(1), words.len());
        }
        self.cursor.store(cursor + (1 + words.len()) * WORD, Ordering::Release);
    }

    /// Adds an event with a byte string at its end.
    pub(super) fn append_bytes(&self, kind: u8, words: &[u64], bytes: &[u8]) {
        self.append_bytes_at(self.clock.ticks(), kind, words, bytes);
    }

    /// The same, at a time that the caller knows.
    pub(super) fn append_bytes_at(&self, ticks: u64, kind: u8, words: &[u64], bytes: &[u8]) {
        let needed = 2 + words.len() + bytes.len().div_ceil(WORD);
        if needed > CHUNK_WORDS {
            self.shared.too_large.add(ticks);
            return;
        }
        let Some(cursor) = self.room(needed, ticks) else { return };
        // SAFETY: there is room for all words from the cursor on, in a chunk that is this thread's. The last one is set
        // to zero before the bytes fill it, wholly or in part.
        unsafe {
            let place: *mut u64 = ptr::with_exposed_provenance_mut(cursor);
            place.write(ticks << 8 | u64::from(kind));
            ptr::copy_nonoverlapping(words.as_ptr(), place.add(1), words.len());
            place.add(needed - 1).write(0);
            place.add(1 + words.len()).write(bytes.len() as u64);
            ptr::copy_nonoverlapping(bytes.as_ptr(), place.add(2 + words.len()).cast(), bytes.len());
        }
        self.cursor.store(cursor + needed * WORD, Ordering::Release);
    }

    /// An event came from a signal handler in the middle of another.
    #[cold]
    pub(super) fn refuse_interrupted(&self) {
        self.shared.interrupted.add(self.clock.ticks());
    }

    /// Where that many words can go. `None` if they are lost, which is counted.
    #[inline]
    fn room(&self, words: usize, ticks: u64) -> Option<usize> {
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
            Err(Refusal::Full) => self.shared.full.add(ticks),
            Err(Refusal::NoMemory) => self.shared.no_memory.add(ticks),
        }
        self.has_lost.set(true);
        None
    }

    /// Goes on in this chunk, which is this thread's.
    fn begin(&self, chunk: *mut Chunk) {
        // SAFETY: taken from the pool, so nobody else's.
        let head = unsafe { &*chunk };
        head.lane.set(self);
        head.sequence.set(self.sequence.load(Ordering::Relaxed));
        head.words.set(0);
        head.taken.set(0);
        head.told.set(0);
        let start = Chunk::start(chunk);
        self.end.set(start + CHUNK_WORDS * WORD);
        self.cursor.store(start, Ordering::Release);
    }

    /// Leaves its chunk to the writer. The writer must not find it by the cursor once it is in the queue: from there it
    /// may come to another thread.
    fn retire_chunk(&self) {
        let cursor = self.cursor.load(Ordering::Relaxed);
        if cursor == 0 {
            return;
        }
        let chunk = Chunk::of_position(cursor);
        // SAFETY: this thread's chunk.
        unsafe { (*chunk).words.set((*chunk).words_before(cursor)) };
        self.end.set(0);
        // First: who then finds no chunk knows that one is on its way.
        self.sequence.store(self.sequence.load(Ordering::Relaxed) + 1, Ordering::Release);
        self.cursor.store(0, Ordering::Release);
        let session = self.session();
        session.full.push(chunk);
        session.doorbell.ring();
    }

    /// The destructors of the thread have run. It may still record, and will not say when it no longer does: the writer finds
    /// out. Says whether the session was closed before, so that no writer will.
    pub(super) fn leave_to_writer(&self) -> bool {
        self.retire_chunk();
        self.forget_share();
        self.session().is_closed()
    }

    /// From now on the lane has no share of memory of its own.
    fn forget_share(&self) {
        if !self.shared.is_left.swap(true, Ordering::SeqCst) {
            self.session().pool.forget_lane();
        }
    }

    /// Whether nobody has given the thread's reference back yet: the caller does now.
    pub(super) fn give_back_once(&self) -> bool {
        !self.shared.is_given_back.swap(true, Ordering::SeqCst)
    }

    /// The thread ends, and will not use the lane again but for releasing it.
    pub(super) fn end_of_thread(&self) {
        self.retire_chunk();
        self.forget_share();
        self.shared.has_ended.store(true, Ordering::Release);
    }

    /// Whether its thread has ended: its last chunk is in the queue then.
    pub(super) fn has_ended(&self) -> bool {
        self.shared.has_ended.load(Ordering::Acquire)
    }

    /// The writer's: the chunk that is being filled, and the words in it so far. `None` if chunks before it are on their
    /// way, or there is none.
    pub(super) fn partial(&self) -> Option<(&Chunk, usize)> {
        let cursor = self.cursor.load(Ordering::Acquire);
        if cursor == 0 {
            return None;
        }
        // SAFETY: the chunk was this lane's when the cursor was read, and only the caller, the writer, can make it
        // another's.
        let chunk = unsafe { &*Chunk::of_position(cursor) };
        (chunk.sequence.get() == self.shared.expected.get()).then(|| (chunk, chunk.words_before(cursor)))
    }

    /// The writer's: the number of the chunk that is being filled, or would be next. All that is published lies in it or in
    /// earlier ones.
    pub(super) fn sequence(&self) -> u64 {
        self.sequence.load(Ordering::Acquire)
    }

    /// The writer's: whether it has all that was published when [`Lane::sequence`] was `wanted`, though there is no
    /// [`Lane::partial`] chunk.
    pub(super) fn is_taken_up_to(&self, wanted: u64) -> bool {
        let expected = self.shared.expected.get();
        expected > wanted || (!self.has_chunk() && self.sequence() == expected)
    }

    /// The writer's: whether a chunk is being filled.
    pub(super) fn has_chunk(&self) -> bool {
        self.cursor.load(Ordering::Acquire) != 0
    }

    /// Names the thread. The writer will tell it.
    pub(super) fn set_name(&self, name: String) {
        let old = self.shared.name.swap(Box::into_raw(Box::new(name)), Ordering::AcqRel);
        if !old.is_null() {
            // SAFETY: boxed here, and taken out by the swap.
            drop(unsafe { Box::from_raw(old) });
        }
    }

    /// The name that the thread was given since the last time.
    pub(super) fn take_name(&self) -> Option<String> {
        let name = self.shared.name.swap(ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: boxed by `set_name`, and taken out by the swap.
        (!name.is_null()).then(|| *unsafe { Box::from_raw(name) })
    }
}

impl Shared {
    /// Whether the destructors of its thread have run.
    pub(super) fn is_left(&self) -> bool {
        self.is_left.load(Ordering::SeqCst)
    }
}

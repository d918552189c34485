//! What each thread has of its own: whether it is in the middle of an event, and how far it is from its next sample.
//!
//! A thread finds its block by one word of static TLS. Other threads see by it when nobody uses a recording any more. The block of
//! a thread that has ended goes to another one, once the kernel does not know the thread any more: up to its very end a
//! thread may free memory.
//!
//! Hot file: what is done for each event neither allocates nor locks nor calls the system, and is async-signal-safe. A thread's
//! first event may map a page, and asks to be told of the thread's end.

use std::cell::Cell;
use std::mem::offset_of;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use stackweave_store::thread_words::MEMORY_BLOCK;

use crate::platform;

/// In place of where an event began: the thread is in a [`Quiet`](crate::Quiet).
pub(crate) const QUIET: usize = 1;
/// The thread never records.
pub(crate) const NEVER: usize = 2;
/// Greater ones are addresses on a stack.
const LAST_MARK: usize = NEVER;

/// A countdown that has not begun.
pub(crate) const NOT_BEGUN: u64 = 0;

const VACANT: u32 = 0;
const USED: u32 = 1;
/// Its thread ends, but may not be over.
const ENDING: u32 = 2;

/// What a thread has of its own. The first cache line is what events touch.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Block {
    /// 0; or where on the stack the event began that the thread is in the middle of; or a mark.
    pub(crate) busy: AtomicUsize,
    errno: AtomicPtr<i32>,
    /// How many bytes are left to the next sample. Only its thread counts; whoever begins a recording sets all back.
    pub(crate) left: AtomicU64,
    pub(crate) random: Cell<u64>,
    /// The bits of the thread's tag; 0: none.
    pub(crate) tag: AtomicU64,
    /// What a host gave back last on this thread, and the stack of that.
    pub(crate) last_free: Cell<(u64, u64)>,
    tid: AtomicU32,
    use_of: AtomicU32,
    next: AtomicPtr<Block>,
}

const _: () = assert!(offset_of!(Block, next) == 64, "what events touch is one cache line");

// SAFETY: the cells are the thread's alone; the rest are atomics.
unsafe impl Sync for Block {}

const PAGE: usize = 4096;
pub(crate) const BLOCKS_OF_A_PAGE: usize = PAGE / size_of::<Block>();

static FIRST: AtomicPtr<Block> = AtomicPtr::new(ptr::null_mut());
/// The key by which the end of a thread is told, plus one; 0: none.
static THREAD_END: AtomicU32 = AtomicU32::new(0);

impl Block {
    /// The block of the calling thread, if it has one.
    #[inline(always)]
    pub(crate) fn of_this_thread() -> Option<&'static Self> {
        // SAFETY: null, or the block of this thread: blocks are never unmapped, and this one is no other's.
        unsafe { ptr::with_exposed_provenance::<Self>(MEMORY_BLOCK.get()).as_ref() }
    }

    /// The same, given one if there is none. `None` without memory.
    #[inline(always)]
    pub(crate) fn for_this_thread() -> Option<&'static Self> {
        Self::of_this_thread().or_else(attach)
    }

    /// The number that the system has for its thread.
    pub(crate) fn thread(&self) -> u32 {
        self.tid.load(Ordering::Relaxed)
    }

    /// The thread's `errno`.
    #[inline(always)]
    pub(crate) fn errno(&self) -> i32 {
        // SAFETY: the calling thread's own, from `attach`.
        unsafe { *self.errno.load(Ordering::Relaxed) }
    }

    #[inline(always)]
    pub(crate) fn set_errno(&self, value: i32) {
        // SAFETY: as in `errno`.
        unsafe { *self.errno.load(Ordering::Relaxed) = value };
    }

    /// The thread is in the middle of an event from here on.
    #[inline(always)]
    pub(crate) fn begin(&self, place: usize) {
        self.busy.store(place, Ordering::Relaxed);
        std::sync::atomic::compiler_fence(Ordering::SeqCst);
    }

    /// The event is over. What was used for it is used no more.
    #[inline(always)]
    pub(crate) fn end(&self) {
        self.busy.store(0, Ordering::Release);
    }

    /// Whether the event that the thread seems to be in the middle of was left for good: a signal handler has jumped out of it.
    /// What is called in the middle of an event is further inside on the stack.
    #[cold]
    #[inline(never)]
    pub(crate) fn was_left(&self, here: usize) -> bool {
        let place = self.busy.load(Ordering::Relaxed);
        place > LAST_MARK && place <= here && !platform::is_on_signal_stack()
    }

    /// Whether another thread may be in the middle of an event.
    fn is_in_event(&self) -> bool {
        self.busy.load(Ordering::Acquire) > LAST_MARK
    }

    fn take(&self, from: u32, tid: u32) -> bool {
        let taken = self.use_of.compare_exchange(from, USED, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if taken {
            self.tid.store(tid, Ordering::Relaxed);
            self.left.store(NOT_BEGUN, Ordering::Relaxed);
            self.tag.store(0, Ordering::Relaxed);
            self.last_free.set((0, 0));
        }
        taken
    }
}

/// All blocks there are.
fn all() -> impl Iterator<Item = &'static Block> {
    // SAFETY: the list only grows, and blocks are never unmapped.
    let follow = |block: *mut Block| unsafe { block.as_ref() };
    std::iter::successors(follow(FIRST.load(Ordering::Acquire)), move |block| {
        follow(block.next.load(Ordering::Acquire))
    })
}

/// Gives the calling thread a block: one whose thread is over, or a new one.
#[cold]
#[inline(never)]
fn attach() -> Option<&'static Block> {
    let errno = platform::errno_place();
    // SAFETY: the calling thread's own.
    let before = unsafe { *errno };
    let tid = platform::thread_number();
    let block = all().find(|block| reuse(block, tid)).or_else(|| map_page(tid))?;
    block.errno.store(errno, Ordering::Relaxed);
    // Whatever the system allocates to note the thread's end is ours.
    block.busy.store(QUIET, Ordering::Relaxed);
    MEMORY_BLOCK.set(ptr::from_ref(block).expose_provenance());
    if let Some(key) = THREAD_END.load(Ordering::Acquire).checked_sub(1) {
        // SAFETY: the key exists; the value is this thread's block.
        unsafe { libc::pthread_setspecific(key, ptr::from_ref(block).cast()) };
    }
    block.busy.store(0, Ordering::Relaxed);
    block.set_errno(before);
    Some(block)
}

/// Takes a block that nobody uses. One whose thread ends is that thread's until the kernel does not know it any more, or knows
/// another by its number: the calling one.
fn reuse(block: &Block, tid: u32) -> bool {
    match block.use_of.load(Ordering::Acquire) {
        VACANT => block.take(VACANT, tid),
        ENDING => {
            let owner = block.tid.load(Ordering::Relaxed);
            (owner == tid || platform::is_gone(owner)) && block.take(ENDING, tid)
        }
        _ => false,
    }
}

/// A page of new blocks, of which the first is the calling thread's.
fn map_page(tid: u32) -> Option<&'static Block> {
    let page = platform::map_zeros(PAGE)?.cast::<Block>().as_ptr();
    // SAFETY: a page of zeros, which are vacant blocks, for ever.
    let blocks: &'static [Block] = unsafe { std::slice::from_raw_parts(page, BLOCKS_OF_A_PAGE) };
    let (own, rest) = blocks.split_first()?;
    own.take(VACANT, tid);
    for (block, next) in blocks.iter().zip(rest) {
        block.next.store(ptr::from_ref(next).cast_mut(), Ordering::Relaxed);
    }
    let last = blocks.last()?;
    let mut first = FIRST.load(Ordering::Relaxed);
    loop {
        last.next.store(first, Ordering::Relaxed);
        match FIRST.compare_exchange_weak(first, page, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return Some(own),
            Err(now) => first = now,
        }
    }
}

/// Asks the system, once, to tell of the ends of threads. Without it, each thread's block stays its own.
pub(crate) fn watch_threads() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let mut key: libc::pthread_key_t = 0;
        // SAFETY: the function stays loaded as long as the process uses it; the key has a place.
        if unsafe { libc::pthread_key_create(&raw mut key, Some(at_thread_end)) } == 0 {
            THREAD_END.store(key + 1, Ordering::Release);
        }
    });
}

extern "C" fn at_thread_end(block: *mut libc::c_void) {
    // SAFETY: the block of this thread.
    let block = unsafe { &*block.cast::<Block>() };
    block.use_of.store(ENDING, Ordering::Release);
}

/// A recording begins: no thread has a tag, nor a countdown of an earlier one.
pub(crate) fn reset() {
    for block in all() {
        block.left.store(NOT_BEGUN, Ordering::Relaxed);
        block.tag.store(0, Ordering::Relaxed);
    }
}

/// In a forked child: there are no other threads.
pub(crate) fn forget_other_threads() {
    let own = Block::of_this_thread();
    for block in all() {
        if own.is_some_and(|own| ptr::eq(own, block)) {
            block.tid.store(platform::thread_number(), Ordering::Relaxed);
        } else {
            block.busy.store(0, Ordering::Relaxed);
            block.use_of.store(VACANT, Ordering::Release);
        }
    }
}

/// Waits until no other thread is in the middle of an event that has begun before this call. What was stored before it is seen
/// by all later events: by then there must be none. False if that took too long.
pub(crate) fn wait_for_others(until: Instant) -> bool {
    platform::order_all_threads();
    let own = Block::of_this_thread();
    all().filter(|block| !own.is_some_and(|own| ptr::eq(own, *block))).all(|block| {
        // A thread that the kernel has ended in the middle of an event is no longer in it.
        while block.is_in_event() && !platform::is_gone(block.tid.load(Ordering::Relaxed)) {
            if Instant::now() > until {
                return false;
            }
            std::thread::sleep(Duration::from_micros(50));
        }
        true
    })
}

#[cfg(test)]
pub(crate) fn count() -> usize {
    all().count()
}

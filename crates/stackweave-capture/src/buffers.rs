//! What each thread captures into, and what it counts.
//!
//! Mapped once per thread, and never touched beyond the depth of its stacks: most of it is never backed by memory.
//!
//! Hot file: no allocation, no lock, async-signal-safe once warm.

use core::cell::UnsafeCell;
use core::ops::Range;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use stackweave_core::{CodeAddress, RawFrame, SourceStop, SourceWalk, StackPointer};
use stackweave_unwind::ThreadMemory;

use crate::last_stack::LastStack;
use crate::repeated::Repeated;

/// The most frames of one kind in a stack.
pub(crate) const DEPTH: usize = 1 << 16;
/// What the Python source keeps between walks, in words: some for each frame.
const PYTHON_MEMORY: usize = 4 * DEPTH;
/// What each of the first other sources keeps.
const SCRIPT_MEMORY: usize = 512;
const SCRIPT_MEMORIES: usize = 15;

/// A thread's buffers. All zeros are a valid value of each part.
pub(crate) struct Buffers {
    pub(crate) counters: Counters,
    next: AtomicPtr<Buffers>,
    is_listed: AtomicU64,
    own: UnsafeCell<Own>,
}

/// What other threads may read.
pub(crate) struct Counters {
    pub(crate) captures: AtomicU64,
    pub(crate) source_stops: [AtomicU64; SourceStop::ALL.len()],
}

impl Counters {
    /// Adds one to a counter that only this thread writes.
    #[inline(always)]
    pub(crate) fn count(counter: &AtomicU64) {
        counter.store(counter.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }
}

/// What only the capture that has the lease touches.
pub(crate) struct Own {
    pub(crate) addresses: [CodeAddress; DEPTH],
    pub(crate) stack_pointers: [StackPointer; DEPTH],
    pub(crate) frames: [RawFrame; DEPTH],
    pub(crate) activations: [StackPointer; DEPTH],
    pub(crate) last: LastStack,
    pub(crate) repeated: Repeated,
    python_memory: [u64; PYTHON_MEMORY],
    script_memory: [[u64; SCRIPT_MEMORY]; SCRIPT_MEMORIES],
}

impl Own {
    /// What a walk of the Python source gets, for `room` frames. Without native frames to weave with, the source writes
    /// straight to where the woven stack goes.
    #[inline(always)]
    pub(crate) fn for_python(&mut self, room: usize, is_woven: bool, in_signal_handler: bool) -> SourceWalk<'_> {
        let frames = if is_woven { self.last.next() } else { &mut self.frames };
        SourceWalk {
            frames: &mut frames[..room],
            activations: &mut self.activations[..room],
            memory: &mut self.python_memory,
            source: 0,
            in_signal_handler,
        }
    }

    /// The same for another source, behind the frames of those before it. The first few may keep something.
    pub(crate) fn for_script(&mut self, range: Range<usize>, source: u8, in_signal_handler: bool) -> SourceWalk<'_> {
        SourceWalk {
            frames: &mut self.frames[range.clone()],
            activations: &mut self.activations[range],
            memory: self.script_memory.get_mut(usize::from(source)).map_or(&mut [], |memory| memory),
            source,
            in_signal_handler,
        }
    }
}

/// The buffers of this thread, lent to one capture.
pub(crate) struct Lent(ThreadMemory);

static ALL: AtomicPtr<Buffers> = AtomicPtr::new(ptr::null_mut());

impl Lent {
    /// `None` when the kernel has no memory, or the platform can't capture.
    #[inline(always)]
    pub(crate) fn take() -> Option<Self> {
        let lent = Self(ThreadMemory::lease(size_of::<Buffers>())?);
        if lent.buffers().is_listed.load(Ordering::Relaxed) == 0 {
            lent.list();
        }
        Some(lent)
    }

    #[inline(always)]
    pub(crate) fn counters(&self) -> &Counters {
        &self.buffers().counters
    }

    #[inline(always)]
    pub(crate) fn own(&mut self) -> &mut Own {
        // SAFETY: the lease keeps everybody else away.
        unsafe { &mut *self.buffers().own.get() }
    }

    #[inline(always)]
    fn buffers(&self) -> &'static Buffers {
        // SAFETY: memory of this size, of zeros or of what a lease before left, which is never unmapped.
        unsafe { self.0.as_ptr().cast::<Buffers>().as_ref() }
    }

    /// Makes the counters known to [`all`].
    #[cold]
    #[inline(never)]
    fn list(&self) {
        let buffers = self.buffers();
        buffers.is_listed.store(1, Ordering::Relaxed);
        let mut first = ALL.load(Ordering::Relaxed);
        loop {
            buffers.next.store(first, Ordering::Relaxed);
            match ALL.compare_exchange_weak(
                first,
                self.0.as_ptr().as_ptr().cast(),
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(now) => first = now,
            }
        }
    }
}

/// The counters of every thread that ever captured.
pub(crate) fn all() -> impl Iterator<Item = &'static Counters> {
    // SAFETY: the list only grows, and buffers are never unmapped.
    let follow = |buffers: *mut Buffers| unsafe { buffers.as_ref() };
    core::iter::successors(follow(ALL.load(Ordering::Acquire)), move |buffers| {
        follow(buffers.next.load(Ordering::Acquire))
    })
    .map(|buffers| &buffers.counters)
}

//! The buffers that a thread captures into, and its counters.
//!
//! They are mapped once per thread, and only touched up to the depth of its stacks: most of the memory is never
//! backed by pages.
//!
//! Hot file: no allocation, no lock, async-signal-safe once warm.

use core::cell::UnsafeCell;
use core::ops::Range;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use stackweave_core::{CodeAddress, RawFrame, SourceStop, SourceWalk, StackPointer};
use stackweave_unwind::ThreadMemory;

use crate::known_captures::KnownCaptures;
use crate::last_stack::LastWovenStack;

/// The maximum number of frames of one kind in a stack.
pub(crate) const DEPTH: usize = 1 << 16;
/// The memory that the Python source keeps between walks, in words: some for each frame.
const PYTHON_MEMORY: usize = 6 * DEPTH;
/// The memory that each of the first other sources keeps.
const SCRIPT_MEMORY: usize = 512;
const SCRIPT_MEMORIES: usize = 15;

/// The buffers of a thread. All zeros are a valid value of each part.
pub(crate) struct ThreadBuffers {
    pub(crate) counters: CaptureCounters,
    next: AtomicPtr<ThreadBuffers>,
    is_listed: AtomicU64,
    own: UnsafeCell<CaptureBuffers>,
}

/// The part that other threads may read.
pub(crate) struct CaptureCounters {
    pub(crate) captures: AtomicU64,
    pub(crate) source_stops: [AtomicU64; SourceStop::ALL.len()],
}

impl CaptureCounters {
    /// Increments a counter that only this thread writes.
    #[inline(always)]
    pub(crate) fn count(counter: &AtomicU64) {
        counter.store(counter.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }
}

/// The part that only the capture with the lease accesses.
pub(crate) struct CaptureBuffers {
    pub(crate) addresses: [CodeAddress; DEPTH],
    pub(crate) stack_pointers: [StackPointer; DEPTH],
    pub(crate) frames: [RawFrame; DEPTH],
    pub(crate) activations: [StackPointer; DEPTH],
    pub(crate) last: LastWovenStack,
    pub(crate) known: KnownCaptures,
    /// The number and the hash of the frames that the Python source wrote last; 0: not known.
    pub(crate) python_hash: (usize, u64),
    python_memory: [u64; PYTHON_MEMORY],
    script_memory: [[u64; SCRIPT_MEMORY]; SCRIPT_MEMORIES],
}

impl CaptureBuffers {
    /// Returns the input of a walk of the Python source, for `capacity` frames. If there are no native frames to
    /// weave with, the source writes directly to the output of the weave.
    #[inline(always)]
    pub(crate) fn for_python(&mut self, capacity: usize, is_woven: bool, in_signal_handler: bool) -> SourceWalk<'_> {
        let frames = if is_woven { self.last.next() } else { &mut self.frames };
        SourceWalk {
            frames: &mut frames[..capacity],
            activations: &mut self.activations[..capacity],
            memory: &mut self.python_memory,
            source: 0,
            in_signal_handler,
        }
    }

    /// Returns the input of a walk of another source, whose frames follow those of the sources before. The first
    /// few have memory.
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
pub(crate) struct LentBuffers(ThreadMemory);

static ALL: AtomicPtr<ThreadBuffers> = AtomicPtr::new(ptr::null_mut());

impl LentBuffers {
    /// Lends the buffers. `None` if the kernel has no memory, or the platform does not support capturing.
    #[inline(always)]
    pub(crate) fn take() -> Option<Self> {
        let lent = Self(ThreadMemory::lease(size_of::<ThreadBuffers>())?);
        if lent.buffers().is_listed.load(Ordering::Relaxed) == 0 {
            lent.list();
        }
        Some(lent)
    }

    #[inline(always)]
    pub(crate) fn counters(&self) -> &CaptureCounters {
        &self.buffers().counters
    }

    #[inline(always)]
    pub(crate) fn own(&mut self) -> &mut CaptureBuffers {
        // SAFETY: no other capture has the lease.
        unsafe { &mut *self.buffers().own.get() }
    }

    #[inline(always)]
    fn buffers(&self) -> &'static ThreadBuffers {
        // SAFETY: memory of this size, containing zeros or what the last lease wrote, which is never unmapped.
        unsafe { self.0.as_ptr().cast::<ThreadBuffers>().as_ref() }
    }

    /// Adds the counters to the list of [`all`].
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

/// Returns the counters of every thread that has captured.
pub(crate) fn all() -> impl Iterator<Item = &'static CaptureCounters> {
    // SAFETY: the list only grows, and buffers are never unmapped.
    let follow = |buffers: *mut ThreadBuffers| unsafe { buffers.as_ref() };
    core::iter::successors(follow(ALL.load(Ordering::Acquire)), move |buffers| {
        follow(buffers.next.load(Ordering::Acquire))
    })
    .map(|buffers| &buffers.counters)
}

//! Several stacks in the memory that is passed to a walk, for a thread whose stacks alternate.
//!
//! The walk replays the one that has an innermost frame of this stack, at the same instruction. A stack with none of
//! these gets a cache of its own, in turn; while that has not been useful, mostly that of the last walk.
//!
//! Hot file: no allocation, no lock, no GIL. Not for signal handlers, which may find frames incomplete.

use stackweave_core::SourceWalkResult;

use super::frame_chain::FrameChain;
use super::replay;
use super::source_frames::{CodeIds, FrameBuffers};
use super::stack_cache::{CAPACITY, StackCache};
use crate::memory::is_plausible;

/// The largest number of frames of a stack beside the main one.
const FEW: usize = 1 << 11;
const STACKS: usize = 16;
/// This many of the innermost frames lead to a stack.
const INNERMOST: usize = 4;
/// The number of stacks that get a cache without any having been replayed.
const PATIENCE: u32 = 64;
/// After that, one of this many gets one.
const RARELY: u32 = 8;
const INDEX_BITS: u32 = 9;

/// The contents of the memory. All zeros are a valid value: no stack yet.
#[derive(Debug)]
#[repr(C)]
struct Caches {
    /// The stack of the last walk; 0 is the main one.
    last: usize,
    /// The innermost frame of the last walk, and its instruction.
    last_top: (u64, u64),
    /// The one that got a cache last.
    newest: usize,
    /// Whether a stack had more than [`FEW`] frames: then only the main one is used.
    is_deep: u32,
    /// The number of stacks that got a cache, or none, since one was replayed.
    fruitless: u32,
    /// A hash of a frame and its instruction, in place of whose lowest bits is the stack.
    index: [u64; 1 << INDEX_BITS],
    main: [u64; StackCache::<CAPACITY>::WORDS],
    others: [[u64; StackCache::<FEW>::WORDS]; STACKS - 1],
}

/// The number of words of the memory.
pub(crate) const WORDS: usize = size_of::<Caches>() / size_of::<u64>();

// A capture provides as many words (`PYTHON_MEMORY` in stackweave-capture).
const _: () = assert!(WORDS <= 6 << 16);

/// Walks from `frame` on, and stores the stack in the memory; `None` if there is too little memory.
///
/// # Safety
/// As for [`replay::walk`].
#[inline(always)]
pub(super) unsafe fn walk<F: FrameChain, C: CodeIds>(
    chain: F,
    frame: u64,
    (memory, deaths): (&mut [u64], u64),
    buffers: FrameBuffers<'_>,
    codes: &C,
) -> Option<SourceWalkResult> {
    if memory.len() < WORDS {
        return None;
    }
    // SAFETY: there is enough memory, and the type consists of numbers with any bits, none larger than a word.
    let caches = unsafe { &mut *memory.as_mut_ptr().cast::<Caches>() };
    // SAFETY: passed on to the caller.
    let chosen = unsafe { caches.choose::<F>(frame) };
    let is_last = core::mem::replace(&mut caches.last, chosen) == chosen;
    let mut result = if chosen == 0 {
        let cache = StackCache::<CAPACITY>::open(&mut caches.main, deaths)?;
        // SAFETY: passed on to the caller.
        unsafe { replay::walk(chain, frame, cache, buffers, codes) }
    } else {
        let cache = StackCache::<FEW>::open(caches.others.get_mut(chosen - 1)?, deaths)?;
        // SAFETY: passed on to the caller.
        unsafe { replay::walk(chain, frame, cache, buffers, codes) }
    };
    if result.len > FEW {
        caches.is_deep = 1;
    }
    result.is_unchanged &= is_last;
    Some(result)
}

impl Caches {
    /// Chooses the stack to replay.
    ///
    /// # Safety
    /// The frame is the top of a chain.
    #[inline(always)]
    unsafe fn choose<F: FrameChain>(&mut self, frame: u64) -> usize {
        if self.is_deep != 0 || !is_plausible(frame) {
            return 0;
        }
        // SAFETY: passed on to the caller.
        let top = (frame, unsafe { F::word(frame) });
        if top == self.last_top {
            return self.last % STACKS;
        }
        self.last_top = top;
        match self.stack_of(hash(top.0, top.1)) {
            Some(stack) => {
                if stack != self.last {
                    self.fruitless = 0;
                }
                stack
            }
            // SAFETY: passed on to the caller.
            None => unsafe { self.choose_for_new::<F>(frame) },
        }
    }

    #[inline(always)]
    fn stack_of(&self, hash: u64) -> Option<usize> {
        let entry = self.index[slot(hash)];
        ((entry ^ hash) & !(STACKS as u64 - 1) == 0).then_some(entry as usize % STACKS)
    }

    /// Chooses a stack for one whose first frame is not in the index.
    ///
    /// # Safety
    /// The frame is the top of a chain.
    #[inline(never)]
    unsafe fn choose_for_new<F: FrameChain>(&mut self, frame: u64) -> usize {
        let mut hashes = [0; INNERMOST];
        let mut next = frame;
        for slot in &mut hashes {
            if !is_plausible(next) {
                break;
            }
            // SAFETY: the frame is the next of the chain.
            unsafe { (*slot, next) = (hash(next, F::word(next)), F::previous(next)) };
        }
        let known = hashes.iter().find_map(|hash| self.stack_of(*hash));
        let stack = known.unwrap_or_else(|| self.stack_for_new());
        for hash in hashes {
            self.index[slot(hash)] = hash & !(STACKS as u64 - 1) | stack as u64;
        }
        stack
    }

    /// Returns the stack that a different one replaces.
    fn stack_for_new(&mut self) -> usize {
        self.fruitless = self.fruitless.wrapping_add(1);
        if self.fruitless > PATIENCE && !self.fruitless.is_multiple_of(RARELY) {
            return self.last % STACKS;
        }
        self.newest = (self.newest + 1) % STACKS;
        self.newest
    }
}

/// Returns how many frames walks with this memory have reused.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn replayed(memory: &[u64]) -> u64 {
    if memory.len() < WORDS {
        return 0;
    }
    // SAFETY: as in `walk`.
    let caches = unsafe { &*memory.as_ptr().cast::<Caches>() };
    let others = caches.others.iter().map(|cache| super::stack_cache::replayed(cache)).sum::<u64>();
    super::stack_cache::replayed(&caches.main) + others
}

/// Returns the hash of a frame at an instruction.
#[inline(always)]
fn hash(frame: u64, word: u64) -> u64 {
    let mixed = (frame ^ word.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 32
}

#[inline(always)]
fn slot(hash: u64) -> usize {
    (hash >> (u64::BITS - INDEX_BITS)) as usize
}

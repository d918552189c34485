//! One event: a block is taken, or is about to be given back.
//!
//! Hot file. On a thread that has told of an event before, nothing here allocates, locks or calls the system, but as
//! [`Recorder`](stackweave_recording::Recorder) and [`capture`] say; and `errno` stays as it was. A signal handler that comes in the
//! middle of an event may call any hook: it does only what it stands for.

use std::hint::black_box;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::Ordering;

use stackweave_capture::{Request, Start, capture};
use stackweave_core::StackPointer;
use stackweave_recording::events::Allocator;

use crate::blocks::Block;
use crate::state::{self, Active, way};
use crate::{failure, platform, sampled_blocks, sampler};

/// An address in the stack frame of the function that this is inlined into.
#[inline(always)]
pub(crate) fn place() -> usize {
    let local = MaybeUninit::<u64>::uninit();
    ptr::from_ref(black_box(&local)).addr()
}

/// The calling thread is in the middle of an event, until this is dropped: whatever it calls meanwhile is told of to nobody.
#[derive(Debug)]
pub(crate) struct HookEvent {
    pub(crate) block: &'static Block,
    pub(crate) active: &'static Active,
}

impl HookEvent {
    /// Begins one, unless the thread is in the middle of another, or nothing is recorded. `place` is an address in the stack frame of
    /// the outermost function of ours: stacks begin with its caller.
    #[inline(always)]
    pub(crate) fn begin(place: usize) -> Option<Self> {
        let block = Block::for_this_thread()?;
        if block.busy.load(Ordering::Relaxed) != 0 && !block.was_left(place) {
            return None;
        }
        Self::begin_on(block, place)
    }

    /// The same on a thread that is known not to be in the middle of one.
    #[inline(always)]
    pub(crate) fn begin_on(block: &'static Block, place: usize) -> Option<Self> {
        block.begin(place);
        let active = state::active();
        if active.is_none() {
            block.end();
        }
        Some(Self { block, active: active? })
    }

    /// A block, or a mapping, was taken.
    #[inline(always)]
    pub(crate) fn allocated(&self, allocator: Allocator, address: usize, size: usize) {
        let errno = self.block.errno();
        platform::refresh_if_needed();
        let kind = self.active.kinds.of_allocators[allocator as usize];
        self.active.recorder.record_fixed(kind, [address as u64, size as u64, self.stack()]);
        self.block.set_errno(errno);
    }

    /// A block is about to be given back.
    #[inline(always)]
    pub(crate) fn about_to_free(&self, address: usize) {
        let errno = self.block.errno();
        let Active { recorder, kinds, .. } = self.active;
        if self.active.free_stacks {
            recorder.record_fixed(kinds.free_at, [address as u64, self.stack()]);
        } else {
            recorder.record_fixed(kinds.free, [address as u64]);
        }
        self.block.set_errno(errno);
    }

    /// Addresses are about to be given back, or were by what was mapped there.
    pub(crate) fn about_to_unmap(&self, address: usize, size: usize) {
        let errno = self.block.errno();
        self.active.recorder.record_fixed(self.active.kinds.munmap, [address as u64, size as u64]);
        self.block.set_errno(errno);
    }

    /// What was last told to be given back was not.
    #[cold]
    #[inline(never)]
    pub(crate) fn kept(&self, address: usize) {
        let errno = self.block.errno();
        self.active.recorder.record_fixed(self.active.kinds.kept, [address as u64]);
        self.block.set_errno(errno);
    }

    /// Memory was asked for that there is not.
    #[cold]
    #[inline(never)]
    pub(crate) fn failed(&self, allocator: Allocator, size: usize) {
        let errno = self.block.errno();
        failure::record(self.active, allocator, size, self.stack_id());
        self.block.set_errno(errno);
    }

    /// Whether an allocation of this size is told.
    #[inline(always)]
    pub(crate) fn wants(&self, way: usize, size: usize) -> bool {
        match way {
            way::ALL => true,
            way::SAMPLED => {
                !sampler::passes(self.block, size) && sampler::is_chosen(self.block, size, self.active.every)
            }
            _ => false,
        }
    }

    /// Tells of a block that was taken, if blocks of this size are wanted.
    #[inline(always)]
    pub(crate) fn allocated_if_wanted(&self, way: usize, allocator: Allocator, address: usize, size: usize) {
        if self.wants(way, size) {
            if way == way::SAMPLED {
                sampled_blocks::insert(address as u64);
            }
            self.allocated(allocator, address, size);
        }
    }

    /// Tells that a block is about to be given back, if it is known. Says whether it was told.
    #[inline(always)]
    pub(crate) fn about_to_free_if_known(&self, way: usize, address: usize) -> bool {
        let is_known = is_known(way, address);
        if is_known {
            self.about_to_free(address);
        }
        is_known
    }

    /// The call after which a block would have been given back has failed.
    #[cold]
    #[inline(never)]
    pub(crate) fn kept_if_told(&self, was_told: bool, way: usize, address: usize) {
        if was_told {
            if is_sampled(way) {
                sampled_blocks::insert(address as u64);
            }
            self.kept(address);
        }
    }

    /// The word of the stack here; 0 for none.
    #[inline(always)]
    pub(crate) fn stack(&self) -> u64 {
        self.stack_id().map_or(0, |stack| stack.get().into())
    }

    #[inline(always)]
    pub(crate) fn stack_id(&self) -> Option<stackweave_core::StackId> {
        let Active { native, limit, .. } = *self.active;
        if limit == 0 {
            return None;
        }
        let place = self.block.busy.load(Ordering::Relaxed) as u64;
        let start = if native { Start::CallerOf(StackPointer(place)) } else { Start::Caller };
        capture(&Request { python: true, native, script: true, skip: 0, limit, start }).stack
    }
}

impl Drop for HookEvent {
    #[inline(always)]
    fn drop(&mut self) {
        self.block.end();
    }
}

/// Whether only some allocations are told.
#[inline(always)]
pub(crate) const fn is_sampled(way: usize) -> bool {
    matches!(way, way::SAMPLED | way::SAMPLED_FREES)
}

/// Whether the free of a block is to be told; once, where only some are known.
#[inline(always)]
fn is_known(way: usize, address: usize) -> bool {
    !is_sampled(way) || sampled_blocks::may_hold(address as u64) && sampled_blocks::remove(address as u64)
}

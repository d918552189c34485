//! One event: a block was allocated, or is about to be freed.
//!
//! Hot file. On a thread that has recorded an event before, nothing here allocates, locks or calls the system, except
//! as [`Recorder`](stackweave_recording::Recorder) and [`capture`] state, and `errno` is preserved. A signal handler
//! that runs in the middle of an event may call any hook: the hook then only calls its original.

use std::hint::black_box;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::Ordering;

use stackweave_capture::{CaptureRequest, CaptureStart, capture};
use stackweave_core::StackPointer;
use stackweave_recording::events::Allocator;

use crate::hook_threads::HookThread;
use crate::state::{self, ActiveRecording, hook_mode};
use crate::{failed_allocations, platform, sampled_blocks, sampler};

/// Returns an address in the stack frame of the function that this is inlined into.
#[inline(always)]
pub(crate) fn stack_address() -> usize {
    let local = MaybeUninit::<u64>::uninit();
    ptr::from_ref(black_box(&local)).addr()
}

/// Marks the calling thread as in an event until it is dropped. What the thread allocates meanwhile is not recorded.
#[derive(Debug)]
pub(crate) struct HookEvent {
    pub(crate) thread: &'static HookThread,
    pub(crate) active: &'static ActiveRecording,
}

impl HookEvent {
    /// Begins an event, unless the thread is in another, or nothing is recorded. `stack_address` is in the stack frame
    /// of our outermost function: stacks begin with its caller.
    #[inline(always)]
    pub(crate) fn begin(stack_address: usize) -> Option<Self> {
        let thread = HookThread::current_or_attach()?;
        if thread.busy.load(Ordering::Relaxed) != 0 && !thread.has_left_event(stack_address) {
            return None;
        }
        Self::begin_on(thread, stack_address)
    }

    /// Begins an event on a thread that is known not to be in one.
    #[inline(always)]
    pub(crate) fn begin_on(thread: &'static HookThread, stack_address: usize) -> Option<Self> {
        thread.begin_event(stack_address);
        let active = state::active();
        if active.is_none() {
            thread.end_event();
        }
        Some(Self { thread, active: active? })
    }

    /// Records that a block or a mapping was allocated.
    #[inline(always)]
    pub(crate) fn allocated(&self, allocator: Allocator, address: usize, size: usize) {
        let errno = self.thread.errno();
        platform::refresh_if_needed();
        let kind = self.active.kinds.of_allocators[allocator as usize];
        self.active.recorder.record_fixed(kind, [address as u64, size as u64, self.stack()]);
        self.thread.set_errno(errno);
    }

    /// Records that a block is about to be freed.
    #[inline(always)]
    pub(crate) fn about_to_free(&self, address: usize) {
        let errno = self.thread.errno();
        let ActiveRecording { recorder, kinds, .. } = self.active;
        if self.active.free_stacks {
            recorder.record_fixed(kinds.free_at, [address as u64, self.stack()]);
        } else {
            recorder.record_fixed(kinds.free, [address as u64]);
        }
        self.thread.set_errno(errno);
    }

    /// Records that addresses are about to be unmapped, or were replaced by a new mapping.
    pub(crate) fn about_to_unmap(&self, address: usize, size: usize) {
        let errno = self.thread.errno();
        self.active.recorder.record_fixed(self.active.kinds.munmap, [address as u64, size as u64]);
        self.thread.set_errno(errno);
    }

    /// Records that the last recorded free or unmapping did not happen.
    #[cold]
    #[inline(never)]
    pub(crate) fn kept(&self, address: usize) {
        let errno = self.thread.errno();
        self.active.recorder.record_fixed(self.active.kinds.kept, [address as u64]);
        self.thread.set_errno(errno);
    }

    /// Records that an allocation failed.
    #[cold]
    #[inline(never)]
    pub(crate) fn failed(&self, allocator: Allocator, size: usize) {
        let errno = self.thread.errno();
        failed_allocations::record(self.active, allocator, size, self.stack_id());
        self.thread.set_errno(errno);
    }

    /// Returns whether an allocation of this size is recorded.
    #[inline(always)]
    pub(crate) fn wants(&self, mode: usize, size: usize) -> bool {
        match mode {
            hook_mode::ALL => true,
            hook_mode::SAMPLED => {
                !sampler::count_unsampled(self.thread, size) && sampler::is_chosen(self.thread, size, self.active.every)
            }
            _ => false,
        }
    }

    /// Records the allocation of a block, if blocks of this size are wanted.
    #[inline(always)]
    pub(crate) fn allocated_if_wanted(&self, mode: usize, allocator: Allocator, address: usize, size: usize) {
        if self.wants(mode, size) {
            if mode == hook_mode::SAMPLED {
                sampled_blocks::insert(address as u64);
            }
            self.allocated(allocator, address, size);
        }
    }

    /// Records that a block is about to be freed, if its allocation was recorded. Returns whether it was.
    #[inline(always)]
    pub(crate) fn about_to_free_if_known(&self, mode: usize, address: usize) -> bool {
        let is_known = is_known(mode, address);
        if is_known {
            self.about_to_free(address);
        }
        is_known
    }

    /// Records that a block is still live, because the call that would have freed it has failed.
    #[cold]
    #[inline(never)]
    pub(crate) fn kept_if_recorded(&self, was_recorded: bool, mode: usize, address: usize) {
        if was_recorded {
            if is_sampled(mode) {
                sampled_blocks::insert(address as u64);
            }
            self.kept(address);
        }
    }

    /// Captures the stack and returns it as a word; 0 for none.
    #[inline(always)]
    pub(crate) fn stack(&self) -> u64 {
        self.stack_id().map_or(0, |stack| stack.get().into())
    }

    #[inline(always)]
    pub(crate) fn stack_id(&self) -> Option<stackweave_core::StackId> {
        let ActiveRecording { native, limit, .. } = *self.active;
        if limit == 0 {
            return None;
        }
        let stack_address = self.thread.busy.load(Ordering::Relaxed) as u64;
        let start = if native { CaptureStart::CallerOf(StackPointer(stack_address)) } else { CaptureStart::Caller };
        capture(&CaptureRequest { python: true, native, script: true, skip: 0, limit, start }).stack
    }
}

impl Drop for HookEvent {
    #[inline(always)]
    fn drop(&mut self) {
        self.thread.end_event();
    }
}

/// Returns whether only some allocations are recorded.
#[inline(always)]
pub(crate) const fn is_sampled(mode: usize) -> bool {
    matches!(mode, hook_mode::SAMPLED | hook_mode::SAMPLED_FREES)
}

/// Returns whether the free of a block is recorded. In a sampled recording, this forgets the block's address.
#[inline(always)]
fn is_known(mode: usize, address: usize) -> bool {
    !is_sampled(mode) || sampled_blocks::may_hold(address as u64) && sampled_blocks::remove(address as u64)
}

//! Signals interrupt events, and their handlers may allocate, or never return.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use stackweave_testkit::signals::{SignalStack, Ticker, in_handler, with_handlers};

use super::recorded::Running;
use crate::MemoryOptions;
use crate::hook_event::{HookEvent, stack_address};
use crate::hook_threads::HookThread;
use crate::platform::hooks;

/// Addresses that are not in use.
static NEXT: AtomicUsize = AtomicUsize::new(FIRST);
const FIRST: usize = 1 << 40;
const LAST: usize = 1 << 44;
/// Blocks of at least this size have such addresses, so that signal handlers may allocate them. The C library, whose
/// calls are hooked as well, allocates smaller ones.
const LARGE: usize = 1 << 50;

unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    if size < LARGE {
        // SAFETY: passed on to the caller.
        return unsafe { libc::malloc(size) };
    }
    ptr::without_provenance_mut(NEXT.fetch_add(16, Ordering::Relaxed))
}

unsafe extern "C" fn free(block: *mut c_void) {
    if !(FIRST..LAST).contains(&block.addr()) {
        // SAFETY: passed on to the caller.
        unsafe { libc::free(block) };
    }
}

/// Replaces the allocator while it lives.
struct FakeAllocator(usize, usize);

impl FakeAllocator {
    fn begin() -> Self {
        let before = (&hooks::ORIGINALS.malloc, &hooks::ORIGINALS.free);
        Self(
            before.0.swap(malloc as *const () as usize, Ordering::SeqCst),
            before.1.swap(free as *const () as usize, Ordering::SeqCst),
        )
    }
}

impl Drop for FakeAllocator {
    fn drop(&mut self) {
        hooks::ORIGINALS.malloc.store(self.0, Ordering::SeqCst);
        hooks::ORIGINALS.free.store(self.1, Ordering::SeqCst);
    }
}

#[test]
fn a_handler_that_allocates_does_no_harm() {
    for stack in [SignalStack::Normal, SignalStack::Alternate] {
        let running = Running::start(MemoryOptions::default());
        let (mut in_handler, mut events) = (0_u64, 0_u64);
        {
            let _fake = FakeAllocator::begin();
            // SAFETY: as these functions are meant to be called; the allocator is async-signal-safe.
            let handler = &mut |_: *mut c_void| unsafe {
                hooks::free(hooks::malloc(LARGE + 8));
                in_handler += 1;
            };
            with_handlers(&[libc::SIGUSR2], stack, handler, || {
                let _ticker = Ticker::start(libc::SIGUSR2, 100);
                let until = std::time::Instant::now() + std::time::Duration::from_millis(300);
                while std::time::Instant::now() < until {
                    for _ in 0..100 {
                        // SAFETY: as above.
                        unsafe { hooks::free(hooks::malloc(LARGE + 24)) };
                        events += 1;
                    }
                }
            });
        }
        let seen = running.stop();
        let of_size =
            |size: usize| seen.iter().filter(|event| event.kind == "malloc" && event.words[1] == size as u64).count();
        assert_eq!(of_size(LARGE + 24) as u64, events, "no event of the program is lost");
        assert!(in_handler > 0 && of_size(LARGE + 8) as u64 <= in_handler);
    }
}

/// Begins an event, as one that a signal handler has jumped out of: nothing ends it.
#[inline(never)]
fn leave_an_event(deeper: u32) {
    if deeper > 0 {
        return leave_an_event(std::hint::black_box(deeper - 1));
    }
    HookThread::current_or_attach().unwrap().begin_event(stack_address());
}

#[test]
fn a_thread_that_jumped_out_of_an_event_is_recorded_again() {
    let running = Running::start(MemoryOptions { depth: 0, ..MemoryOptions::default() });
    {
        let _fake = FakeAllocator::begin();
        leave_an_event(50);
        // SAFETY: as these functions are meant to be called.
        unsafe { hooks::free(hooks::malloc(LARGE + 44)) };
        // A handler on an alternate stack, above or below, can't be distinguished: the event continues, and the handler's
        // events are not recorded.
        // SAFETY: as above.
        let handler = &mut |_: *mut c_void| unsafe { hooks::free(hooks::malloc(LARGE + 55)) };
        let event = HookEvent::begin(stack_address()).unwrap();
        in_handler(SignalStack::Alternate, handler);
        drop(event);
    }
    let seen = running.stop();
    let is_recorded = |size: usize| seen.iter().any(|event| event.kind == "malloc" && event.words[1] == size as u64);
    assert!(is_recorded(LARGE + 44) && !is_recorded(LARGE + 55));
}

//! Signals come in the middle of events, and their handlers may allocate, or never come back.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use stackweave_testkit::signals::{SignalStack, Ticker, in_handler, with_handlers};

use super::recorded::Running;
use crate::MemoryOptions;
use crate::blocks::Block;
use crate::hook_event::{HookEvent, place};
use crate::platform::hooks;

/// Addresses that nobody uses.
static NEXT: AtomicUsize = AtomicUsize::new(FIRST);
const FIRST: usize = 1 << 40;
const LAST: usize = 1 << 44;
/// Blocks of this size and more have such addresses: what takes them may be called by signal handlers. The C library, whose
/// calls come to hooks as well, takes smaller ones.
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

/// Takes the allocator's place while it lives.
struct MadeUp(usize, usize);

impl MadeUp {
    fn begin() -> Self {
        let before = (&hooks::ORIGINALS.malloc, &hooks::ORIGINALS.free);
        Self(
            before.0.swap(malloc as *const () as usize, Ordering::SeqCst),
            before.1.swap(free as *const () as usize, Ordering::SeqCst),
        )
    }
}

impl Drop for MadeUp {
    fn drop(&mut self) {
        hooks::ORIGINALS.malloc.store(self.0, Ordering::SeqCst);
        hooks::ORIGINALS.free.store(self.1, Ordering::SeqCst);
    }
}

#[test]
fn a_handler_that_allocates_harms_nobody() {
    for stack in [SignalStack::Normal, SignalStack::Alternate] {
        let running = Running::start(MemoryOptions::default());
        let (mut in_handler, mut events) = (0_u64, 0_u64);
        {
            let _made_up = MadeUp::begin();
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
        assert_eq!(of_size(LARGE + 24) as u64, events, "none of the program's own is lost");
        assert!(in_handler > 0 && of_size(LARGE + 8) as u64 <= in_handler);
    }
}

/// Begins an event that a signal handler has jumped out of: nobody is there any more to end it.
#[inline(never)]
fn leave_an_event(deeper: u32) {
    if deeper > 0 {
        return leave_an_event(std::hint::black_box(deeper - 1));
    }
    Block::for_this_thread().unwrap().begin(place());
}

#[test]
fn a_thread_that_left_an_event_is_told_of_again() {
    let running = Running::start(MemoryOptions { depth: 0, ..MemoryOptions::default() });
    {
        let _made_up = MadeUp::begin();
        leave_an_event(50);
        // SAFETY: as these functions are meant to be called.
        unsafe { hooks::free(hooks::malloc(LARGE + 44)) };
        // A handler on a stack of its own, above or below, can't tell: the event goes on, and is none of it.
        // SAFETY: as above.
        let handler = &mut |_: *mut c_void| unsafe { hooks::free(hooks::malloc(LARGE + 55)) };
        let event = HookEvent::begin(place()).unwrap();
        in_handler(SignalStack::Alternate, handler);
        drop(event);
    }
    let seen = running.stop();
    let is_told = |size: usize| seen.iter().any(|event| event.kind == "malloc" && event.words[1] == size as u64);
    assert!(is_told(LARGE + 44) && !is_told(LARGE + 55));
}

//! What hot files claim: an event allocates nothing, and calls the system for nothing.

use stackweave_testkit::counting_allocator::{CountingAllocator, requests};

use super::recorded::Running;
use crate::platform::hooks;
use crate::{HostBlock, HostEvent, MemoryOptions, Mode, tell_host};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Fewer events than fill a buffer.
const FEW: usize = 500;

fn take_and_give_back(count: usize) {
    for size in 0..count {
        // SAFETY: as these functions are meant to be called.
        unsafe {
            let block = hooks::realloc(hooks::malloc(64 + size), 128 + size);
            hooks::free(block);
        }
        let block = HostBlock { address: 4096, size: 100, device: 1, ..HostBlock::default() };
        for event in [HostEvent::Allocate, HostEvent::FreeRequested, HostEvent::FreeCompleted] {
            tell_host(event, &block, None);
        }
    }
}

#[test]
fn an_event_asks_our_allocator_for_nothing() {
    let ways = [
        MemoryOptions::default(),
        MemoryOptions { depth: 0, ..MemoryOptions::default() },
        MemoryOptions { native: false, free_stacks: true, ..MemoryOptions::default() },
        MemoryOptions { mode: Mode::Sampled { every: 1000 }, ..MemoryOptions::default() },
    ];
    for options in ways {
        let running = Running::start(options);
        // The thread gets its buffers, and the stack is seen: also where only some events are told.
        take_and_give_back(100);
        let before = requests();
        take_and_give_back(FEW);
        assert_eq!(requests(), before);
        drop(vec![1]);
        assert_eq!(requests(), before + 2, "what is counted is counted");
        running.stop();
    }
}

/// How often the calling thread has waited for something, or was made to.
fn switches() -> (i64, i64) {
    // SAFETY: all zeros are a valid value, which the call replaces.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: a place for the answer.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    (usage.ru_nvcsw, usage.ru_nivcsw)
}

#[test]
fn an_event_waits_for_nobody() {
    let running = Running::start(MemoryOptions::default());
    take_and_give_back(10);
    let others = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !others.load(std::sync::atomic::Ordering::Relaxed) {
                    take_and_give_back(10);
                }
            });
        }
        let before = switches().0;
        // A lock that all threads share would be waited for now and then.
        (0..100).for_each(|_| take_and_give_back(10));
        let waited = switches().0 - before;
        others.store(true, std::sync::atomic::Ordering::Relaxed);
        // The original's own locks, and a buffer now and then: far fewer than one of a hundred events.
        assert!(waited < 60, "{waited}");
    });
    running.stop();
}

//! The claims of hot files: an event allocates nothing, and makes no system call.

use stackweave_testkit::counting_allocator::{CountingAllocator, requests};

use super::recorded::Running;
use crate::platform::hooks;
use crate::{HostBlock, HostEventKind, MemoryMode, MemoryOptions, record_host_event};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Fewer events than fill a buffer.
const FEW: usize = 500;

fn allocate_and_free(count: usize) {
    for size in 0..count {
        // SAFETY: as these functions are meant to be called.
        unsafe {
            let block = hooks::realloc(hooks::malloc(64 + size), 128 + size);
            hooks::free(block);
        }
        let block = HostBlock { address: 4096, size: 100, device: 1, ..HostBlock::default() };
        for kind in [HostEventKind::Allocate, HostEventKind::FreeRequested, HostEventKind::FreeCompleted] {
            record_host_event(kind, &block, None);
        }
    }
}

#[test]
fn an_event_allocates_nothing() {
    let variants = [
        MemoryOptions::default(),
        MemoryOptions { depth: 0, ..MemoryOptions::default() },
        MemoryOptions { native: false, free_stacks: true, ..MemoryOptions::default() },
        MemoryOptions { mode: MemoryMode::Sampled { every: 1000 }, ..MemoryOptions::default() },
    ];
    for options in variants {
        let running = Running::start(options);
        // This allocates the thread's buffers and adds the stack to the table, also if only some events are recorded.
        allocate_and_free(100);
        let before = requests();
        allocate_and_free(FEW);
        assert_eq!(requests(), before);
        drop(vec![1]);
        assert_eq!(requests(), before + 2, "the counter works");
        running.stop();
    }
}

/// Returns how often the calling thread has waited, and how often it was preempted.
fn switches() -> (i64, i64) {
    // SAFETY: all zeros are a valid value, which the call replaces.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is writable.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    (usage.ru_nvcsw, usage.ru_nivcsw)
}

#[test]
fn an_event_does_not_wait_for_other_threads() {
    let running = Running::start(MemoryOptions::default());
    allocate_and_free(10);
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    allocate_and_free(10);
                }
            });
        }
        let before = switches().0;
        // A thread would wait now and then for a lock that all threads share.
        (0..100).for_each(|_| allocate_and_free(10));
        let waited = switches().0 - before;
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        // The original's own locks, and a buffer now and then: far fewer waits than one per hundred events.
        assert!(waited < 60, "{waited}");
    });
    running.stop();
}

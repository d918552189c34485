//! Threads start and end, and pass blocks of memory to each other.

use std::collections::{HashMap, HashSet};
use std::ffi::c_void;
use std::sync::mpsc::channel;
use std::thread;

use stackweave_testkit::random::Random;

use super::recorded::record;
use crate::platform::hooks;
use crate::{MemoryOptions, SuppressGuard, hook_threads};

/// A block on its way to another thread.
struct SentBlock(*mut c_void);

// SAFETY: the receiver owns the block.
unsafe impl Send for SentBlock {}

#[test]
fn a_free_is_always_recorded_before_its_address_is_allocated_again() {
    const ROUNDS: usize = 5_000;
    let seen = record(MemoryOptions { depth: 0, ..MemoryOptions::default() }, |_| {
        let (send, receive) = channel::<SentBlock>();
        let receive = std::sync::Mutex::new(receive);
        thread::scope(|scope| {
            for seed in 0..4 {
                let (send, receive) = (send.clone(), &receive);
                scope.spawn(move || {
                    let mut random = Random::new(seed);
                    for _ in 0..ROUNDS {
                        // SAFETY: as these functions are meant to be called.
                        let block = unsafe { hooks::malloc(16 + random.below(4) * 16) };
                        send.send(SentBlock(block)).unwrap();
                        let next = receive.lock().unwrap().recv().unwrap();
                        // SAFETY: the thread that owned it has sent it.
                        unsafe { hooks::free(next.0) };
                    }
                });
            }
        });
    });
    // Memory that the C library allocates for its threads is recorded, too; some of it was allocated before.
    let mut live: HashMap<u64, bool> = HashMap::new();
    let mut ever: HashSet<u64> = HashSet::new();
    let mut allocated = 0;
    for event in &seen {
        match &*event.kind {
            kind @ ("malloc" | "calloc" | "realloc" | "posix_memalign" | "aligned_alloc") => {
                allocated += usize::from(kind == "malloc");
                ever.insert(event.words[0]);
                assert_eq!(live.insert(event.words[0], kind == "malloc"), None, "allocated twice");
            }
            "free" => {
                let was_live = live.remove(&event.words[0]).is_some();
                assert!(was_live || !ever.contains(&event.words[0]), "freed before it was allocated");
            }
            _ => {}
        }
    }
    live.retain(|_, is_ours| *is_ours);
    assert_eq!((allocated, live.len()), (4 * ROUNDS, 0));
}

#[test]
fn the_entries_of_ended_threads_are_reused() {
    record(MemoryOptions { depth: 0, ..MemoryOptions::default() }, |_| {
        let before = hook_threads::count();
        for _ in 0..300 {
            // SAFETY: as these functions are meant to be called.
            thread::spawn(|| unsafe { hooks::free(hooks::malloc(10)) }).join().unwrap();
        }
        // The kernel may know a joined thread for a moment longer.
        assert!(hook_threads::count() <= before + hook_threads::THREADS_PER_PAGE, "{before} {}", hook_threads::count());
    });
}

#[test]
fn nothing_is_recorded_while_suppressed() {
    let mut recorded = 0;
    let seen = record(MemoryOptions { depth: 0, ..MemoryOptions::default() }, |_| {
        // SAFETY: as these functions are meant to be called.
        let allocate = |size: usize| unsafe {
            let block = hooks::malloc(size);
            hooks::free(block);
            block.addr()
        };
        let outer = SuppressGuard::begin();
        allocate(771);
        drop(SuppressGuard::begin());
        allocate(772);
        drop(outer);
        recorded = allocate(773);
        let never = thread::spawn(move || {
            SuppressGuard::for_ever();
            drop(SuppressGuard::begin());
            allocate(774)
        });
        never.join().unwrap();
    });
    let sizes: Vec<u64> = seen.iter().filter(|event| event.kind == "malloc").map(|event| event.words[1]).collect();
    assert!(sizes.contains(&773) && !sizes.iter().any(|size| [771, 772, 774].contains(size)), "{sizes:?}");
}

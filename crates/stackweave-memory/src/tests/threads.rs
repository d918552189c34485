//! Threads come and go, and hand their blocks of memory to each other.

use std::collections::{HashMap, HashSet};
use std::ffi::c_void;
use std::sync::mpsc::channel;
use std::thread;

use stackweave_testkit::random::Random;

use super::recorded::record;
use crate::platform::hooks;
use crate::{MemoryOptions, Quiet, blocks};

/// A block on its way to another thread.
struct Sent(*mut c_void);

// SAFETY: whoever gets it owns it.
unsafe impl Send for Sent {}

#[test]
fn a_block_is_always_told_to_be_given_back_before_its_address_is_taken_again() {
    const ROUNDS: usize = 5_000;
    let seen = record(MemoryOptions { depth: 0, ..MemoryOptions::default() }, |_| {
        let (give, take) = channel::<Sent>();
        let take = std::sync::Mutex::new(take);
        thread::scope(|scope| {
            for seed in 0..4 {
                let (give, take) = (give.clone(), &take);
                scope.spawn(move || {
                    let mut random = Random::new(seed);
                    for _ in 0..ROUNDS {
                        // SAFETY: as these functions are meant to be called.
                        let block = unsafe { hooks::malloc(16 + random.below(4) * 16) };
                        give.send(Sent(block)).unwrap();
                        let next = take.lock().unwrap().recv().unwrap();
                        // SAFETY: it was sent by who owned it.
                        unsafe { hooks::free(next.0) };
                    }
                });
            }
        });
    });
    // What the C library takes for its threads is told, too; some of it was there before.
    let mut live: HashMap<u64, bool> = HashMap::new();
    let mut ever: HashSet<u64> = HashSet::new();
    let mut taken = 0;
    for event in &seen {
        match &*event.kind {
            kind @ ("malloc" | "calloc" | "realloc" | "posix_memalign" | "aligned_alloc") => {
                taken += usize::from(kind == "malloc");
                ever.insert(event.words[0]);
                assert_eq!(live.insert(event.words[0], kind == "malloc"), None, "taken twice");
            }
            "free" => {
                let was_live = live.remove(&event.words[0]).is_some();
                assert!(was_live || !ever.contains(&event.words[0]), "given back before it was taken");
            }
            _ => {}
        }
    }
    live.retain(|_, is_ours| *is_ours);
    assert_eq!((taken, live.len()), (4 * ROUNDS, 0));
}

#[test]
fn threads_that_end_leave_their_place_to_others() {
    record(MemoryOptions { depth: 0, ..MemoryOptions::default() }, |_| {
        let before = blocks::count();
        for _ in 0..300 {
            // SAFETY: as these functions are meant to be called.
            thread::spawn(|| unsafe { hooks::free(hooks::malloc(10)) }).join().unwrap();
        }
        // A thread that was joined may be known to the kernel a moment longer.
        assert!(blocks::count() <= before + blocks::BLOCKS_OF_A_PAGE, "{before} {}", blocks::count());
    });
}

#[test]
fn what_is_quiet_is_not_told() {
    let mut loud = 0;
    let seen = record(MemoryOptions { depth: 0, ..MemoryOptions::default() }, |_| {
        // SAFETY: as these functions are meant to be called.
        let take = |size: usize| unsafe {
            let block = hooks::malloc(size);
            hooks::free(block);
            block.addr()
        };
        let outer = Quiet::begin();
        take(771);
        drop(Quiet::begin());
        take(772);
        drop(outer);
        loud = take(773);
        let never = thread::spawn(move || {
            Quiet::for_ever();
            drop(Quiet::begin());
            take(774)
        });
        never.join().unwrap();
    });
    let sizes: Vec<u64> = seen.iter().filter(|event| event.kind == "malloc").map(|event| event.words[1]).collect();
    assert!(sizes.contains(&773) && !sizes.iter().any(|size| [771, 772, 774].contains(size)), "{sizes:?}");
}

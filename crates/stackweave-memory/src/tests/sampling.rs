//! Sampled allocations stand for those that were not recorded, and their frees are recorded.

use std::collections::HashSet;
use std::ffi::c_void;
use std::mem::transmute;
use std::ptr;
use std::sync::atomic::Ordering;

use stackweave_testkit::fixtures::KNOWN_AMOUNTS;
use stackweave_testkit::library::Library;

use super::recorded::{Running, exclusive, record};
use crate::hook_threads::{HookThread, NOT_BEGUN};
use crate::platform::hooks;
use crate::sampled_blocks::{SLOTS, clear, has_more, insert, may_hold, remove};
use crate::{MemoryMode, MemoryOptions, sampler};

/// Returns the bytes that a recorded allocation stands for.
fn stands_for(size: u64, every: u64) -> f64 {
    let size = size.max(1) as f64;
    size / (1.0 - (-size / every as f64).exp())
}

/// Sums over many seeds, for sizes far below, near and far above the sampling interval.
#[test]
fn sums_are_right_on_average() {
    const EVERY: u64 = 4096;
    const SEEDS: u64 = 64;
    let _exclusive = exclusive();
    let thread = HookThread::current_or_attach().unwrap();
    for size in [0_usize, 1, 16, 500, 4096, 20_000, 200_000] {
        // About 200 samples for each seed.
        let count = 200 * (EVERY as usize / size.max(1)).max(1);
        let chance = 1.0 - (-(size.max(1) as f64) / EVERY as f64).exp();
        let mut sum = 0.0;
        for seed in 0..SEEDS {
            sampler::seed(seed.wrapping_mul(0x1234_5678_9abc_def1));
            thread.bytes_to_sample.store(NOT_BEGUN, Ordering::Relaxed);
            for _ in 0..count {
                if !sampler::count_unsampled(thread, size) && sampler::is_chosen(thread, size, EVERY) {
                    sum += stands_for(size as u64, EVERY);
                }
            }
        }
        let tries = (count as u64 * SEEDS) as f64;
        let truth = tries * size.max(1) as f64;
        // Each allocation is sampled independently.
        let sigma = (tries * chance * (1.0 - chance)).sqrt() * stands_for(size as u64, EVERY);
        assert!((sum - truth).abs() <= 6.0 * sigma + 1e-6 * truth, "{size}: {sum} for {truth}, sigma {sigma}");
    }
}

#[test]
fn sums_of_mixed_sizes_are_right_by_size() {
    const EVERY: u64 = 1000;
    const ROUNDS: usize = 100_000;
    let _exclusive = exclusive();
    let thread = HookThread::current_or_attach().unwrap();
    let sizes = [24_usize, 100, 3000];
    let mut sums = [0.0; 3];
    sampler::seed(99);
    thread.bytes_to_sample.store(NOT_BEGUN, Ordering::Relaxed);
    for _ in 0..ROUNDS {
        for (size, sum) in sizes.iter().zip(&mut sums) {
            if !sampler::count_unsampled(thread, *size) && sampler::is_chosen(thread, *size, EVERY) {
                *sum += stands_for(*size as u64, EVERY);
            }
        }
    }
    for (size, sum) in sizes.iter().zip(sums) {
        let chance = 1.0 - (-(*size as f64) / EVERY as f64).exp();
        let (truth, rounds) = ((ROUNDS * size) as f64, ROUNDS as f64);
        let sigma = (rounds * chance * (1.0 - chance)).sqrt() * stands_for(*size as u64, EVERY);
        assert!((sum - truth).abs() <= 6.0 * sigma, "{size}: {sum} for {truth}, sigma {sigma}");
    }
}

#[test]
fn the_free_of_every_recorded_block_is_recorded() {
    let options = MemoryOptions { mode: MemoryMode::Sampled { every: 2000 }, depth: 0, ..MemoryOptions::default() };
    let mut ours = HashSet::new();
    // SAFETY: as these functions are meant to be called.
    let seen = record(options, |_| unsafe {
        let mut live = Vec::new();
        for number in 0..20_000_usize {
            let mut block = hooks::malloc(1 + number % 300);
            ours.insert(block.addr() as u64);
            if number % 3 == 0 {
                block = hooks::realloc(block, 700);
                ours.insert(block.addr() as u64);
            }
            live.push(block);
            if live.len() > 500 {
                hooks::free(live.swap_remove(number % 500));
            }
        }
        for block in live {
            hooks::free(block);
        }
    });
    let mut live = HashSet::new();
    let (mut allocations, mut frees) = (0, 0);
    for event in seen.iter().filter(|event| event.words.first().is_some_and(|word| ours.contains(word))) {
        if event.kind == "free" {
            frees += 1;
            assert!(live.remove(&event.words[0]), "an allocation is recorded before its free");
        } else {
            allocations += 1;
            assert!(live.insert(event.words[0]), "an allocation is recorded once");
        }
    }
    // Of 20,000 blocks of 150 bytes one in 14 is sampled, and of the third that is reallocated with 700 bytes three in
    // ten: 3,400, sigma 55.
    assert!(live.is_empty() && allocations == frees, "{allocations} {frees}");
    assert!((3000..3800).contains(&allocations), "{allocations}");
}

#[test]
fn a_block_whose_reallocation_failed_stays_known() {
    let options = MemoryOptions { mode: MemoryMode::Sampled { every: 1 }, depth: 0, ..MemoryOptions::default() };
    let mut at = 0;
    // SAFETY: as these functions are meant to be called.
    let seen = record(options, |_| unsafe {
        let block = hooks::malloc(50_000);
        at = block.addr();
        assert!(hooks::realloc(block, usize::MAX / 2).is_null());
        hooks::free(block);
    });
    let kinds: Vec<&str> = seen.iter().filter(|event| event.words[0] == at as u64).map(|event| &*event.kind).collect();
    assert_eq!(kinds, ["malloc", "free", "kept", "free"]);
}

#[test]
fn an_address_is_known_until_it_is_removed_even_if_the_table_is_full() {
    let _exclusive = exclusive();
    clear();
    let addresses = (1..=SLOTS as u64 / 2).map(|number| 0x7f00_0000_0000 + 16 * number);
    addresses.clone().for_each(insert);
    assert!(addresses.clone().all(may_hold) && !has_more());
    assert!(!remove(0x10) && addresses.clone().all(remove) && !addresses.clone().any(remove));
    assert!(!addresses.clone().any(may_hold));
    let many = (1..=2 * SLOTS as u64).map(|number| 16 * number);
    many.clone().for_each(insert);
    assert!(has_more() && many.clone().all(|address| may_hold(address) && remove(address)));
    clear();
    assert!(!remove(16) && !may_hold(16));
}

#[test]
fn a_library_that_is_loaded_later_is_hooked_though_no_event_is_recorded() {
    type Hold = unsafe extern "C" fn(*mut *mut c_void, u64, u64);
    const TOO_MUCH: u64 = 1 << 46;
    let running =
        Running::start(MemoryOptions { mode: MemoryMode::Sampled { every: 1 << 40 }, ..MemoryOptions::default() });
    // Modules that were loaded before need no further recheck.
    (0..1000).for_each(|_| crate::platform::recheck_slots());
    let library = Library::open(KNOWN_AMOUNTS).unwrap();
    // SAFETY: the function has this type.
    let hold = unsafe { transmute::<*mut c_void, Hold>(library.symbol("sw_hold")) };
    // The writer does this in each of its rounds.
    crate::platform::recheck_slots();
    let mut block = ptr::null_mut();
    // SAFETY: there is room for one block.
    unsafe { hold(&raw mut block, 1, TOO_MUCH) };
    assert!(block.is_null());
    assert_eq!(crate::failed_allocations::count(), 1, "a failure is recorded in every mode");
    running.stop();
}

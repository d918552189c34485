//! A recording has what an independent counter counts in the same program, to the byte.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a failure fails the test, which prints its figures")]

mod common;

use std::collections::BTreeMap;

use common::{Counter, Counts, Recorded, allocators, bytes_by_function, function, run};
use stackweave_memory::{MemoryMode, MemoryOptions};
use stackweave_testkit::child::role;
use stackweave_testkit::fixtures::{COUNTER, WORKLOAD};
use stackweave_testkit::library::Library;

const ROUNDS: u64 = 20_000;
/// All functions, and empty blocks.
const ALL: u32 = u32::MAX;
/// Without what allocators implement differently, or not: `pvalloc`, and `realloc` to nothing.
const COMMON: u32 = u32::MAX >> 1 & !(1 << 7);

type Workload = unsafe extern "C" fn(u64, u64, u32);

/// Does what the role requests, and prints the counts.
fn play(role: &str) {
    let library = Library::open(WORKLOAD).unwrap();
    let calls = if role.ends_with("common") { COMMON } else { ALL };
    // SAFETY: the fixture's function.
    let workload: Workload = unsafe { function(&library, "sw_workload") };
    // SAFETY: as above.
    let work = || unsafe { workload(12345, ROUNDS, calls) };
    // Allocations that happen only once in a process are not the program's.
    work();
    // SAFETY: the fixture's function.
    unsafe { function::<unsafe extern "C" fn()>(&library, "sw_workload_end")() };
    let mode = match role.split(' ').next() {
        Some("counted") => {
            let counter = Counter::begin(COUNTER, 0);
            work();
            println!("{}", counter.end());
            return;
        }
        Some("aggregated") => MemoryMode::Aggregate,
        _ => MemoryMode::History,
    };
    let before = place_bytes(&library);
    let recorded = Recorded::start(MemoryOptions { mode, ..MemoryOptions::default() });
    work();
    let outcome = recorded.stop();
    let counts = Counts::of(&outcome.snapshot);
    let mut expected = place_bytes(&library);
    for (name, bytes) in &before {
        *expected.get_mut(name).unwrap() -= bytes;
    }
    assert_eq!(bytes_by_function(&outcome.snapshot, "sw_site_"), expected);
    assert_eq!(outcome.snapshot.devices[0].totals.replaced, 0);
    println!("{counts}");
}

/// Returns what the library's functions have requested, by their own count.
fn place_bytes(library: &Library) -> BTreeMap<String, u64> {
    const PLACES: usize = 14;
    let counted = library.symbol("sw_site_bytes").cast::<[u64; PLACES]>();
    // SAFETY: the fixture's array.
    let counted = unsafe { counted.read_volatile() };
    let named = counted.into_iter().enumerate().map(|(place, bytes)| (format!("sw_site_{place}"), bytes));
    named.filter(|(_, bytes)| *bytes != 0).collect()
}

#[test]
fn totals_and_sites_are_those_of_an_independent_count() {
    const NAME: &str = "totals_and_sites_are_those_of_an_independent_count";
    if let Some(role) = role() {
        return play(&role);
    }
    let counted = Counts::in_text(&run(NAME, "counted all", Some(COUNTER))).unwrap();
    assert!(counted.allocations > ROUNDS && counted.peak_bytes > counted.live_bytes, "{counted:?}");
    println!("{counted:?}");
    for role in ["recorded all", "aggregated all"] {
        assert_eq!(Counts::in_text(&run(NAME, role, None)), Some(counted), "{role}");
    }
}

#[test]
fn totals_are_the_same_with_any_allocator() {
    const NAME: &str = "totals_are_the_same_with_any_allocator";
    if let Some(role) = role() {
        return play(&role);
    }
    let counted = Counts::in_text(&run(NAME, "counted common", Some(COUNTER))).unwrap();
    for allocator in allocators() {
        let recorded = Counts::in_text(&run(NAME, "recorded common", Some(allocator)));
        assert_eq!(recorded, Some(counted), "{allocator}");
        println!("{allocator}: as counted");
    }
}

//! A ledger in a process that can't allocate memory: it continues to count, and reports the lack.

#![cfg(target_os = "linux")]

use stackweave_heap::{CallSite, Ledger, LedgerOptions};
use stackweave_testkit::child;

const MANY: u64 = 2_000_000;

/// Allocates at far more call sites than there is memory for.
fn allocate_too_many() {
    let mut ledger = Ledger::new(LedgerOptions::default());
    for number in 0..MANY {
        let stack = u32::try_from(number / 4).unwrap();
        let site = ledger.site(CallSite { stack, thread: 1, allocator: 1, tag: 0 });
        ledger.allocate(number, 1, 0x1000 + number * 16, 10, site);
        if number % 1000 == 0 {
            ledger.map(number, 1, 0x7000_0000_0000 + number * 4096, 4096, site);
        }
    }
    assert!(ledger.is_incomplete());
    let totals = ledger.totals();
    assert_eq!(totals.figures.allocations, MANY + MANY / 1000);
    let kept = totals.figures.live_blocks;
    assert!(kept > 100_000 && kept < MANY, "{kept}");
    let sum = ledger.sites().map(|(_, figures)| figures.allocations).sum::<u64>();
    assert_eq!(sum, totals.figures.allocations);
    // Known blocks can still be freed.
    for number in 0..100_000 {
        ledger.free(MANY + number, 1, 0x1000 + number * 16);
    }
    assert_eq!((ledger.totals().frees, ledger.totals().figures.live_blocks), (100_000, kept - 100_000));
}

#[test]
fn without_memory_it_goes_on_counting() {
    if child::role().is_some() {
        allocate_too_many();
        return;
    }
    let mut command = child::command(&child::own_executable(), "ledger_memory::without_memory_it_counts_on", "poor");
    let output = child::run_for(child::limit_memory(&mut command, 64 << 20), 120);
    assert!(output.status.success(), "{}", child::text(&output));
}

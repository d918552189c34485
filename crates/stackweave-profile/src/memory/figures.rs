//! Sums and differences of figures.

use stackweave_heap::{Figures, Totals};

/// Adds figures.
pub fn add(to: &mut Figures, other: &Figures) {
    for (sum, more) in values_mut(to).into_iter().zip(values(other)) {
        *sum = sum.saturating_add(more);
    }
}

/// Adds the figures of another process, whose ticks are different.
pub fn add_totals(to: &mut Totals, other: &Totals) {
    add(&mut to.figures, &other.figures);
    to.frees = to.frees.saturating_add(other.frees);
    to.unknown_frees = to.unknown_frees.saturating_add(other.unknown_frees);
    to.replaced = to.replaced.saturating_add(other.replaced);
}

/// Returns the counts since `start`; figures of live memory and of the peak are unchanged.
pub(super) fn since(now: &Figures, start: &Figures) -> Figures {
    Figures {
        allocations: now.allocations.saturating_sub(start.allocations),
        bytes: now.bytes.saturating_sub(start.bytes),
        temporary: now.temporary.saturating_sub(start.temporary),
        temporary_bytes: now.temporary_bytes.saturating_sub(start.temporary_bytes),
        ..*now
    }
}

fn values(of: &Figures) -> [u64; 8] {
    let mut copy = *of;
    values_mut(&mut copy).map(|value| *value)
}

fn values_mut(of: &mut Figures) -> [&mut u64; 8] {
    let Figures { allocations, bytes, live_blocks, live_bytes, peak_blocks, peak_bytes, temporary, temporary_bytes } =
        of;
    [allocations, bytes, live_blocks, live_bytes, peak_blocks, peak_bytes, temporary, temporary_bytes]
}

//! Ours: opens and aggregates a recording, in a process that has done nothing else.

use std::io;
use std::path::Path;

use stackweave_profile::{AggregateOptions, Measure, Profile, Statistics, aggregate};
use stackweave_recording::Recording;

use super::calls::{FILE, WILD_FILE};
use super::outcome::print_figure;
use crate::meter::{Spent, forget_peak};

/// Measures a profile of `calls` calls, with cProfile's statistics.
pub(super) fn calls(calls: usize, folder: &Path) -> io::Result<()> {
    statistics(&format!("{} M calls", calls / 1_000_000), calls, &folder.join(FILE))
}

/// Measures the same with very many paths.
pub(super) fn wild_calls(calls: usize, folder: &Path) -> io::Result<()> {
    statistics(&format!("{} M calls, very many paths", calls / 1_000_000), calls, &folder.join(WILD_FILE))
}

fn statistics(case: &str, calls: usize, path: &Path) -> io::Result<()> {
    measure_read("recording/read-calls", case, || {
        let statistics = Statistics::of(&profile(path, Measure::WallTime)?);
        let found = statistics.functions().map(|(_, function)| function.calls).sum::<u64>();
        must_hold(found, calls)
    })
}

/// Measures a profile of the bytes that were allocated.
pub(super) fn allocated(events: usize, folder: &Path) -> io::Result<()> {
    allocations(Measure::AllocatedBytes, "allocated", events, folder)
}

/// Measures a profile of the bytes that were not freed.
pub(super) fn live(events: usize, folder: &Path) -> io::Result<()> {
    allocations(Measure::LiveBytes, "live at the end", events, folder)
}

fn allocations(measure: Measure, what: &str, events: usize, folder: &Path) -> io::Result<()> {
    measure_read("recording/read-allocations", &format!("{} M events, {what}", events / 1_000_000), || {
        let profile = profile(&folder.join("allocations.swv"), measure)?;
        must_hold(profile.counts().events, events)
    })
}

fn profile(path: &Path, measure: Measure) -> io::Result<Profile> {
    let recording = Recording::open(path).map_err(io::Error::other)?;
    let options = AggregateOptions { measure: Some(measure), ..AggregateOptions::default() };
    let aggregated = aggregate(recording.processes(), &options, None, &mut |_| {});
    Ok(aggregated.map_err(io::Error::other)?.merged())
}

/// Fails if far fewer were read than recorded. Some difference is normal: the workloads end with a whole tree, and with
/// live blocks.
fn must_hold(found: u64, wanted: usize) -> io::Result<()> {
    let enough = found >= wanted as u64 * 9 / 10;
    if enough { Ok(()) } else { Err(io::Error::other(format!("read {found} of {wanted}"))) }
}

fn measure_read(bench: &str, case: &str, read: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    forget_peak();
    let before = Spent::by_this_process();
    read()?;
    let after = Spent::by_this_process();
    print_figure(bench, case, "ms", "ours", after.cpu_ms - before.cpu_ms)?;
    print_figure(&format!("{bench}-memory"), case, "MB", "ours", after.peak_mb - before.peak_mb)
}

//! Very many pairs: the cost of recording them, and of computing their statistics.

use std::fs;
use std::io;
use std::path::Path;

use stackweave_core::RawFrame;
use stackweave_profile::{AggregateOptions, Statistics, aggregate};
use stackweave_recording::Recording;

use super::naive::Listed;
use super::pairs::{frame, start};
use crate::meter::{Spent, forget_peak};
use crate::record::share;
use crate::recording::calls;
use crate::recording::outcome::print_figure;

const BENCH: &str = "timing/many";
const FILE: &str = "many.swv";
const FUNCTIONS: usize = 100;
/// The number of pairs that are open at once.
const DEPTH: usize = 10;
/// The memory that ten million pairs may use.
const TARGET_MB: f64 = 400.0;

fn case(pairs: usize) -> String {
    format!("Rust, {} M pairs", pairs / 1_000_000)
}

/// Returns the functions that are open in successive stacks. A function has different callers in different stacks.
fn stacks(pairs: usize) -> impl Iterator<Item = [usize; DEPTH]> {
    (0..pairs / DEPTH).map(|number| std::array::from_fn(|depth| (number % 7 + depth * (1 + number % 5)) % FUNCTIONS))
}

fn names() -> io::Result<Vec<RawFrame>> {
    (0..FUNCTIONS).map(|number| frame(&format!("phase_{number}"))).collect()
}

/// Returns the nanoseconds of CPU time of all threads, and the growth of the peak memory.
fn since(before: Spent) -> (f64, f64) {
    let now = Spent::by_this_process();
    ((now.cpu_ms - before.cpu_ms) * 1e6, now.peak_mb - before.peak_mb)
}

/// Measures the recording of `pairs` pairs. The memory is the growth of the peak until the file is complete.
#[expect(clippy::cast_precision_loss, reason = "a file here is far below 2^52 bytes")]
pub(super) fn record(folder: &Path, pairs: usize) -> io::Result<()> {
    let (path, names) = (folder.join(FILE), names()?);
    forget_peak();
    let before = Spent::by_this_process();
    let timing = start(&path)?;
    for stack in stacks(pairs) {
        for place in stack {
            timing.push(names[place]);
        }
        for _ in stack {
            timing.pop();
        }
    }
    calls::stop(timing.recorder())?;
    let (took, peak_mb) = since(before);
    let case = case(pairs);
    print_figure(BENCH, &case, "ns", "ours", share(took, pairs))?;
    print_figure("timing/many-memory", &case, "MB", "ours", peak_mb)?;
    print_figure("timing/many-memory", &case, "MB", "target", TARGET_MB)?;
    print_figure("timing/many-bytes", &case, "bytes", "ours", share(fs::metadata(path)?.len() as f64, pairs))
}

/// Measures the same pairs in a list.
#[expect(clippy::cast_precision_loss, reason = "the size of a struct")]
pub(super) fn list(pairs: usize) -> io::Result<()> {
    forget_peak();
    let before = Spent::by_this_process();
    let mut listed = Listed::default();
    for stack in stacks(pairs) {
        for place in stack {
            listed.push(place as u64);
        }
        for _ in stack {
            listed.pop();
        }
    }
    let (took, peak_mb) = since(before);
    let (case, entry) = (case(pairs), size_of_val(&listed.ended[0]));
    print_figure(BENCH, &case, "ns", "Instant, list", share(took, pairs))?;
    print_figure("timing/many-memory", &case, "MB", "Instant, list", peak_mb)?;
    print_figure("timing/many-bytes", &case, "bytes", "Instant, list", entry as f64)
}

/// Measures opening the recording and computing the statistics that `cProfile` has.
pub(super) fn statistics(folder: &Path, pairs: usize) -> io::Result<()> {
    let before = Spent::by_this_process();
    let recording = Recording::open(&folder.join(FILE)).map_err(io::Error::other)?;
    let options = AggregateOptions::default();
    let aggregated = aggregate(recording.processes(), &options, None, &mut |_| {}).map_err(io::Error::other)?;
    let statistics = Statistics::of(&aggregated.merged());
    let (took, _) = since(before);
    let found = statistics.functions().map(|(_, function)| function.calls).sum::<u64>();
    if found != (pairs / DEPTH * DEPTH) as u64 {
        return Err(io::Error::other(format!("read {found} of {pairs} pairs")));
    }
    print_figure("timing/statistics", &case(pairs), "ms", "ours", took / 1e6)
}

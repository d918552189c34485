//! The cost of one event for the recording thread: `cargo run --release -p stackweave-recording --example record_cost`.
//!
//! Prints the nanoseconds per event, the best of several rounds, each long enough to fill a buffer several times.

use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use stackweave_core::NoNames;
use stackweave_recording::clock::Clock;
use stackweave_recording::live::{Recorder, RecorderOptions, WhenFull};
use stackweave_store::{StackTable, label};

static STACKS: StackTable = StackTable::new();

const ROUNDS: usize = 50;

/// Returns the lowest average duration of a call, in nanoseconds, over rounds of `count` calls.
#[expect(clippy::cast_precision_loss, reason = "figures for people")]
fn best(count: u64, mut call: impl FnMut(u64)) -> f64 {
    let mut lowest = f64::MAX;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for number in 0..count {
            call(number);
        }
        lowest = lowest.min(start.elapsed().as_nanos() as f64 / count as f64);
    }
    lowest
}

#[expect(clippy::print_stdout, reason = "the figures are printed")]
fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::temp_dir().join(format!("record-cost-{}.swv", std::process::id()));
    let options = RecorderOptions { when_full: WhenFull::Drop, ..RecorderOptions::new(&path) };
    let recorder = Recorder::start(options, &STACKS, Arc::new(NoNames))?;
    let frame = label("work", "", 0).ok_or("no label")?;
    let stack = STACKS.intern(&[frame]);
    let (clock, _) = Clock::start();

    let alone = best(10_000, |_| {
        black_box(clock.ticks());
    });
    println!("clock alone ({:?}): {alone:.2}", clock.source());
    // Less than a buffer in each round: the best round has a warm buffer, and the writer has the other core.
    println!(
        "begin, end: {:.2}",
        best(2_000, |_| {
            recorder.begin(black_box(frame));
            recorder.end();
        }) / 2.0
    );
    println!("allocate: {:.2}", best(2_000, |number| recorder.allocate(black_box(number << 6), 64, stack)));
    println!("allocate, paused: {:.2}", {
        recorder.pause();
        let paused = best(10_000, |number| recorder.allocate(black_box(number << 6), 64, stack));
        recorder.resume();
        paused
    });
    let start = Instant::now();
    let before = recorder.stats().events;
    for number in 0..20_000_000 {
        recorder.allocate(black_box(number << 6), 64, stack);
    }
    let took = start.elapsed();
    recorder.flush()?;
    let stats = recorder.stats();
    println!(
        "20 million at full speed: {:.2} s, {} written, {:?}",
        took.as_secs_f64(),
        stats.events - before,
        stats.lost
    );
    println!("{:?}", recorder.stop());
    std::fs::remove_file(path)?;
    Ok(())
}

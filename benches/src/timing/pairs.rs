//! The cost of a push and a pop from Rust, with nothing between them.

use std::hint::black_box;
use std::io;
use std::path::Path;
use std::time::Instant;

use stackweave_core::RawFrame;
use stackweave_recording::timing::{Outcome, Timing};
use stackweave_store::label;

use super::naive::{Listed, Totals};
use crate::meter::thread_cpu_ns;
use crate::record::share;
use crate::recording::calls;
use crate::recording::outcome::print_figure;
use crate::recording::words::ticks;

const BENCH: &str = "timing/pair";
const CASE: &str = "Rust";
/// The number of pairs in one timing.
const PAIRS: usize = 20_000;
/// The target for one pair.
const TARGET_NS: f64 = 30.0;

/// Starts a recording of phases, and replaces an existing file.
pub(super) fn start(path: &Path) -> io::Result<Timing> {
    Timing::new(calls::start(path)?).ok_or_else(|| io::Error::other("no numbers for kinds of events"))
}

pub(super) fn frame(name: &str) -> io::Result<RawFrame> {
    label(name, "phases.py", 1).ok_or_else(|| io::Error::other("no memory for names"))
}

/// Measures each contender `timings` times, in turn, and prints the minimum.
pub(super) fn measure(folder: &Path, timings: usize) -> io::Result<()> {
    let timing = start(&folder.join("pairs.swv"))?;
    let (name, recorder) = (frame("phase")?, timing.recorder());
    let (mut listed, mut totals) = (Listed::default(), Totals::default());
    let mut contenders: [(&str, &mut dyn FnMut() -> f64); 7] = [
        ("ours", &mut || {
            timed(|| {
                timing.push(black_box(name));
                timing.pop();
            })
        }),
        ("ours, token", &mut || {
            timed(|| {
                let token = timing.push(black_box(name));
                timing.close(token, Outcome::Done, &[]);
            })
        }),
        ("recorder only", &mut || {
            timed(|| {
                recorder.begin(black_box(name));
                recorder.end();
            })
        }),
        ("Instant, list", &mut || {
            listed.ended.clear();
            timed(|| {
                listed.push(black_box(name.to_bits()));
                listed.pop();
            })
        }),
        ("Instant, totals", &mut || {
            timed(|| {
                totals.push(black_box(name.to_bits()));
                totals.pop();
            })
        }),
        ("rdtsc", &mut || timed(|| _ = black_box((ticks(), ticks())))),
        ("clock_gettime", &mut || timed(|| _ = black_box((Instant::now(), Instant::now())))),
    ];
    let mut least = contenders.each_ref().map(|_| f64::INFINITY);
    for _ in 0..timings {
        for (least, (_, pair)) in least.iter_mut().zip(&mut contenders) {
            *least = least.min(pair());
        }
    }
    for (cost, (peer, _)) in least.into_iter().zip(&contenders) {
        print_figure(BENCH, CASE, "ns", peer, cost)?;
    }
    print_figure(BENCH, CASE, "ns", "target", TARGET_NS)?;
    calls::stop(recorder)
}

fn timed(mut pair: impl FnMut()) -> f64 {
    let before = thread_cpu_ns();
    for _ in 0..PAIRS {
        pair();
    }
    share(thread_cpu_ns() - before, PAIRS)
}

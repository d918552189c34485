//! Two threads that intern the same known stacks: the time that one waits for the other.
//!
//! The measure is wall-clock time, because waiting for a lock uses no CPU time.

use std::io;
use std::sync::Barrier;
use std::thread::{self, ScopedJoinHandle};
use std::time::Instant;

use super::interners::{self, Interner};
use super::known_stacks::STACKS;
use super::rounds::{case, samples, share};
use super::stacks::{Stack, Stacks};
use crate::options::Effort;
use crate::report::Case;

pub(super) const BENCH: &str = "record/intern-threads";

const DEPTH: usize = 20;
const PASSES: usize = 60;

pub(super) fn measure(effort: Effort, done: &mut dyn FnMut(Case) -> io::Result<()>) -> io::Result<()> {
    let stacks = Stacks::new(DEPTH).take(STACKS);
    let entrants = interners::all();
    for (_, interner) in &entrants {
        interner.intern_all(&stacks);
    }
    for threads in [1, 2] {
        let samples =
            samples(&entrants, effort.pick(11, 41), |_, (_, interner)| together(&**interner, &stacks, threads))?;
        let name = format!("depth {DEPTH}, {threads} thread{}", if threads == 1 { "" } else { "s" });
        done(case(BENCH, name, Some(DEPTH), &entrants, &samples))?;
    }
    Ok(())
}

/// Returns the nanoseconds for each stack of each thread, on average.
fn together(interner: &dyn Interner, stacks: &[Stack], threads: usize) -> io::Result<f64> {
    let start = Barrier::new(threads);
    let run = || {
        start.wait();
        let began = Instant::now();
        for _ in 0..PASSES {
            interner.intern_all(stacks);
        }
        share(began.elapsed().as_secs_f64() * 1e9, PASSES * STACKS)
    };
    let times = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        threads.into_iter().map(ScopedJoinHandle::join).collect::<Result<Vec<f64>, _>>()
    });
    let times = times.map_err(|_| io::Error::other("a thread panicked"))?;
    Ok(share(times.iter().sum(), threads))
}

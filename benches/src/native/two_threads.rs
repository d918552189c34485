//! The effect of a second capturing thread on the first: CPU time per capture, alone and together.

use std::io::{self, Write};

use super::ffi;
use super::stage::{self, Code, Results, Scene};
use crate::options::Effort;
use crate::peers::Unwinder;
use crate::report::{Case, Entry, Outcome};
use crate::statistics::median;

const DEPTH: usize = 30;

pub(super) fn measure(
    unwinders: &[Unwinder],
    effort: Effort,
    done: &mut dyn FnMut(Case) -> io::Result<()>,
) -> io::Result<()> {
    let scene = Scene {
        driver: ffi::bench_drive_pair,
        samples_per_round: 2,
        // Long compared with the time that a sleeping thread needs to wake up.
        batch_ns: 1_500_000.0,
        ..Scene::repeated(Code::WithoutFramePointers, DEPTH, effort.pick(11, 31))
    };
    let [first, second] = match stage::run_pair(&scene, unwinders) {
        Ok(results) => results,
        Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {
            return writeln!(io::stderr(), "native: two threads need two CPUs");
        }
        Err(error) => return Err(error),
    };

    let alone = first.entries(|samples| median(&every_second(samples, 0)));
    let together = together(&first, &second);
    let slowdown = alone.iter().zip(&together).map(|(alone, together)| slowdown(alone, together)).collect();
    for (name, unit, entries) in
        [("1 thread", "ns", alone), ("2 threads", "ns", together), ("2 threads to 1", "times", slowdown)]
    {
        done(Case { bench: "native/threads", name: format!("{name}, nofp {DEPTH}"), unit, entries })?;
    }
    Ok(())
}

/// Returns the mean of the two threads' medians.
fn together(first: &Results, second: &Results) -> Vec<Entry> {
    let entries = |lane: &Results, index| lane.entries(|samples| median(&every_second(samples, index)));
    // The second thread does not capture while the first is alone, so it has one sample per round.
    let (mut entries, others) = (entries(first, 1), second.entries(median));
    for (entry, other) in entries.iter_mut().zip(others) {
        entry.outcome = match (&entry.outcome, other.outcome) {
            (Outcome::Measured { cost, frames }, Outcome::Measured { cost: other, .. }) => {
                Outcome::Measured { cost: f64::midpoint(*cost, other), frames: *frames }
            }
            (Outcome::Absent(why), _) => Outcome::Absent(why.clone()),
            (_, absent) => absent,
        };
    }
    entries
}

fn every_second(samples: &[f64], offset: usize) -> Vec<f64> {
    samples.iter().copied().skip(offset).step_by(2).collect()
}

fn slowdown(alone: &Entry, together: &Entry) -> Entry {
    let outcome = match (&alone.outcome, &together.outcome) {
        (Outcome::Measured { cost: alone, .. }, Outcome::Measured { cost: together, .. }) => {
            Outcome::Measured { cost: together / alone, frames: None }
        }
        (Outcome::Absent(why), _) | (_, Outcome::Absent(why)) => Outcome::Absent(why.clone()),
    };
    Entry { peer: alone.peer, outcome }
}

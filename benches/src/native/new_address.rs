//! Return addresses never seen before: what it costs to learn the rule of one.

use std::io;

use super::ffi;
use super::stage::{self, Code, Scene};
use crate::options::Effort;
use crate::peers::Unwinder;
use crate::report::{Case, Entry, Outcome};
use crate::statistics::{median, median_excess};

pub(super) fn measure(
    unwinders: &[Unwinder],
    effort: Effort,
    done: &mut dyn FnMut(Case) -> io::Result<()>,
) -> io::Result<()> {
    let scene = Scene {
        driver: ffi::bench_drive_sites,
        at_base: true,
        samples_per_round: 2,
        // Each round uses up 64 of the 4,000 call sites.
        ..Scene::repeated(Code::WithoutFramePointers, 1, effort.pick(20, 62))
    };
    let results = stage::run(&scene, unwinders)?;
    done(Case {
        bench: "native/new-address",
        name: "first visit, whole capture".to_owned(),
        unit: "ns",
        entries: results.entries(|samples| median(&visits(samples).0)),
    })?;

    let extra = results.entries(|samples| {
        let (first, again) = visits(samples);
        median_excess(&first, &again)
    });
    done(Case {
        bench: "native/new-address",
        name: "first visit less the next: one rule".to_owned(),
        unit: "ns",
        entries: unwinders.iter().zip(extra).map(only_if_remembered).collect(),
    })
}

/// The first visits and the visits after them.
fn visits(samples: &[f64]) -> (Vec<f64>, Vec<f64>) {
    samples.chunks_exact(2).map(|pair| (pair[0], pair[1])).unzip()
}

fn only_if_remembered((unwinder, entry): (&Unwinder, Entry)) -> Entry {
    match entry.outcome {
        Outcome::Measured { cost, .. } if unwinder.remembers_addresses => {
            Entry { outcome: Outcome::Measured { cost, frames: None }, ..entry }
        }
        Outcome::Measured { .. } => {
            Entry { outcome: Outcome::Absent("n/a: learns nothing from a visit".to_owned()), ..entry }
        }
        Outcome::Absent(_) => entry,
    }
}

//! Return addresses that no unwinder has seen: the cost of finding the rule of one.

use std::io::{self, Write};

use super::ffi;
use super::stage::{self, Code, Scene};
use crate::options::Effort;
use crate::peers::Unwinder;
use crate::report::{Case, Entry, Outcome};
use crate::statistics::{median, median_excess};

/// The call sites that `build/sites.rs` writes, and how many of them one round of `c/sites.c` uses up.
const SITES: usize = 4000;
const SITES_PER_ROUND: usize = 64;

pub(super) fn measure(
    unwinders: &[Unwinder],
    effort: Effort,
    done: &mut dyn FnMut(Case) -> io::Result<()>,
) -> io::Result<()> {
    let scene = Scene {
        driver: ffi::bench_drive_sites,
        at_base: true,
        samples_per_round: 2,
        ..Scene::repeated(Code::WithoutFramePointers, 1, effort.pick(20, SITES / SITES_PER_ROUND))
    };
    let before = stackweave_unwind::stats().misses;
    let results = stage::run(&scene, unwinders)?;
    let misses = stackweave_unwind::stats().misses - before;
    writeln!(io::stderr(), "native: {} new call sites, {misses} rules read by ours", scene.rounds * SITES_PER_ROUND)?;
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

/// Separates the samples of first visits from those of second visits.
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

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::ffi::c_void;
    use std::slice;
    use std::sync::{Mutex, PoisonError};

    use super::*;
    use crate::peers;

    static CALLERS: Mutex<Option<HashSet<usize>>> = Mutex::new(None);

    /// Captures as the reference does, and records the caller.
    unsafe extern "C" fn noting(buffer: *mut *mut c_void, max: usize) -> usize {
        // SAFETY: as for any capture.
        let count = unsafe { peers::reference(buffer, max) };
        // SAFETY: the reference wrote the first `count` words.
        let frames = unsafe { slice::from_raw_parts(buffer, count) };
        // The frames are the reference, this function, the caller.
        if let Some(caller) = frames.get(2) {
            let mut callers = CALLERS.lock().unwrap_or_else(PoisonError::into_inner);
            callers.get_or_insert_default().insert(caller.addr());
        }
        count
    }

    #[test]
    fn every_site_has_its_own_address() {
        let unwinder = Unwinder {
            name: "noting",
            version: String::new,
            capture: Ok(noting),
            needs_frame_pointers: false,
            remembers_addresses: false,
        };
        assert!(measure(&[unwinder], Effort::Full, &mut |_| Ok(())).is_ok());
        let callers = CALLERS.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(callers.as_ref().is_some_and(|callers| callers.len() >= SITES / SITES_PER_ROUND * SITES_PER_ROUND));
    }
}

//! The unwinders of a scene, with the memory that the C side uses.

use std::ffi::c_void;
use std::ptr;

use super::ffi::{self, Job, Subject, verdict};
use super::stage::{Code, Results, Scene, Timed};
use crate::peers::{self, Unwinder};

/// The most frames that a capture may write; no stack here is deeper.
const MAX_FRAMES: usize = 512;

/// glibc's two root functions, which have no frame pointer.
const ROOTS_WITHOUT_FRAME_POINTER: usize = 2;

/// The memory that a job points into.
#[derive(Debug)]
pub(super) struct Cast {
    /// For each unwinder the index of its subject, or why it has none.
    roles: Vec<Result<usize, String>>,
    subjects: Vec<Subject>,
    samples: Vec<Vec<f64>>,
    buffer: Vec<*mut c_void>,
}

impl Cast {
    pub(super) fn new(scene: &Scene, unwinders: &[Unwinder]) -> Self {
        let length = scene.rounds * scene.samples_per_round;
        let mut cast = Self {
            roles: Vec::new(),
            subjects: Vec::new(),
            samples: vec![vec![f64::NAN; length]; unwinders.len() + 1],
            // Not null, so that the pages are resident before the first capture.
            buffer: vec![ptr::dangling_mut::<u64>().cast(); MAX_FRAMES],
        };
        for unwinder in unwinders {
            let samples = &mut cast.samples[cast.subjects.len()];
            let slack = if unwinder.needs_frame_pointers { ROOTS_WITHOUT_FRAME_POINTER } else { 0 };
            let role = match &unwinder.capture {
                Err(why) => Err(why.clone()),
                Ok(_) if unwinder.needs_frame_pointers && scene.code == Code::WithoutFramePointers => {
                    Err("n/a: needs frame pointers".to_owned())
                }
                Ok(capture) => {
                    cast.subjects.push(Subject::new(*capture, slack, samples));
                    Ok(cast.subjects.len() - 1)
                }
            };
            cast.roles.push(role);
        }
        let samples = &mut cast.samples[cast.subjects.len()];
        cast.subjects.push(Subject::nothing(samples));
        cast
    }

    pub(super) fn job(&mut self, scene: &Scene) -> Job {
        let (chain, tree): (ffi::ChainFn, ffi::TreeFn) = match scene.code {
            Code::WithoutFramePointers => (ffi::nofp_chain, ffi::nofp_tree),
            Code::WithFramePointers => (ffi::fp_chain, ffi::fp_tree),
        };
        let (shared, lane) = ffi::UNPAIRED;
        Job {
            chain,
            tree,
            depth: scene.depth,
            driver_at_base: usize::from(scene.at_base),
            driver: scene.driver,
            body: scene.body,
            subjects: self.subjects.as_mut_ptr(),
            subject_count: self.subjects.len(),
            reference: peers::reference,
            rounds: scene.rounds,
            batch_ns: scene.batch_ns,
            sweep_bytes: scene.sweep_bytes,
            buffer: self.buffer.as_mut_ptr(),
            max: self.buffer.len(),
            shared,
            lane,
        }
    }

    pub(super) fn results(mut self, unwinders: &[Unwinder]) -> Results {
        let mut timed = Vec::new();
        for (unwinder, role) in unwinders.iter().zip(&self.roles) {
            let outcome = role.clone().and_then(|index| {
                judge(&self.subjects[index])?;
                let samples = self.samples[index].iter().copied().filter(|sample| !sample.is_nan()).collect();
                let subject = &self.subjects[index];
                Ok(Timed { samples, frames: (subject.frame_total + subject.checked / 2) / subject.checked.max(1) })
            });
            timed.push((unwinder.name, outcome));
        }
        let last = self.subjects.len() - 1;
        Results { timed, calls_alone: self.samples.swap_remove(last) }
    }
}

/// Checks that every verified capture was complete, or returns what was wrong with the first one that was not.
fn judge(subject: &Subject) -> Result<(), String> {
    let (equal, expected) = (subject.equal, subject.expected);
    match subject.verdict {
        verdict::WHOLE => Ok(()),
        verdict::UNCHECKED => Err("unchecked".to_owned()),
        verdict::NO_FRAMES => Err("no frames".to_owned()),
        verdict::SHORT => Err(format!("short: {equal} of {expected} frames")),
        _ => Err(format!("wrong: differs after {equal} of {expected} frames")),
    }
}

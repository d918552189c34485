//! Runs unwinders on the C side's stacks, and returns their results.

use std::fmt;
use std::io;

use super::cast::Cast;
use super::ffi::{self, BodyFn, DriverFn};
use crate::peers::Unwinder;
use crate::report::{Entry, Outcome};

/// How the stack under test was compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    WithoutFramePointers,
    WithFramePointers,
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WithoutFramePointers => "nofp",
            Self::WithFramePointers => "fp",
        })
    }
}

/// One measurement of all unwinders.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scene {
    pub(super) code: Code,
    pub(super) depth: usize,
    pub(super) driver: DriverFn,
    pub(super) body: BodyFn,
    /// Whether the driver runs above the chain, so that the body descends it.
    pub(super) at_base: bool,
    pub(super) rounds: usize,
    pub(super) samples_per_round: usize,
    pub(super) batch_ns: f64,
    pub(super) sweep_bytes: usize,
}

impl Scene {
    /// Returns a scene of round-robin batches, with captures at the end of the chain.
    pub(super) fn repeated(code: Code, depth: usize, rounds: usize) -> Self {
        Self {
            code,
            depth,
            driver: ffi::bench_drive_round_robin,
            body: ffi::bench_body_same_stack,
            at_base: false,
            rounds,
            samples_per_round: 1,
            batch_ns: 400_000.0,
            sweep_bytes: 0,
        }
    }
}

/// The samples and the frames of one unwinder in a scene.
#[derive(Clone, Debug)]
pub(super) struct Timed {
    pub(super) samples: Vec<f64>,
    pub(super) frames: usize,
}

#[derive(Debug)]
pub(super) struct Results {
    /// The results of the unwinders, in their order, or why one was not timed.
    pub(super) timed: Vec<(&'static str, Result<Timed, String>)>,
    /// The samples of the subject that captures nothing.
    pub(super) calls_alone: Vec<f64>,
}

impl Results {
    /// Returns one entry for each unwinder, with the cost that `cost` computes from its samples.
    pub(super) fn entries(&self, cost: impl Fn(&[f64]) -> Option<f64>) -> Vec<Entry> {
        let outcome = |timed: &Result<Timed, String>| match timed {
            Ok(timed) => cost(&timed.samples).map_or_else(
                || Outcome::Absent("not sampled".to_owned()),
                |cost| Outcome::Measured { cost, frames: Some(timed.frames) },
            ),
            Err(why) => Outcome::Absent(why.clone()),
        };
        self.timed.iter().map(|(peer, timed)| Entry { peer, outcome: outcome(timed) }).collect()
    }
}

pub(super) fn run(scene: &Scene, unwinders: &[Unwinder]) -> io::Result<Results> {
    let mut cast = Cast::new(scene, unwinders);
    let mut job = cast.job(scene);
    // SAFETY: the job's pointers lead into `cast`, which outlives the call; the thread ends before the call does.
    succeed(unsafe { ffi::bench_run(&raw mut job) })?;
    Ok(cast.results(unwinders))
}

/// Runs the scene on the caller's stack, and does not descend the chain.
pub(super) fn run_here(scene: &Scene, unwinders: &[Unwinder]) -> Results {
    let mut cast = Cast::new(scene, unwinders);
    let mut job = cast.job(scene);
    // SAFETY: the job's pointers lead into `cast`, which outlives the call.
    unsafe { (scene.driver)(&raw mut job) };
    cast.results(unwinders)
}

/// Runs the same scene on two threads at once.
pub(super) fn run_pair(scene: &Scene, unwinders: &[Unwinder]) -> io::Result<[Results; 2]> {
    let mut casts = [Cast::new(scene, unwinders), Cast::new(scene, unwinders)];
    let [mut first, mut second] = casts.each_mut().map(|cast| cast.job(scene));
    // SAFETY: each job's pointers lead into its own cast, which outlives the call; both threads end before it does.
    succeed(unsafe { ffi::bench_run_pair(&raw mut first, &raw mut second) })?;
    Ok(casts.map(|cast| cast.results(unwinders)))
}

fn succeed(error: i32) -> io::Result<()> {
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

#[cfg(test)]
mod tests {
    use std::ffi::c_void;

    use super::*;
    use crate::peers::{self, CaptureFn};

    /// Captures as the reference does, then applies `change` to the frames. `change` returns the new count.
    unsafe fn changed(buffer: *mut *mut c_void, max: usize, change: impl Fn(&mut [*mut c_void]) -> usize) -> usize {
        // SAFETY: the caller passes `max` writable words.
        let count = unsafe { peers::reference(buffer, max) };
        // SAFETY: the reference wrote the first `count` of them.
        change(unsafe { std::slice::from_raw_parts_mut(buffer, count) })
    }

    unsafe extern "C" fn honest(buffer: *mut *mut c_void, max: usize) -> usize {
        // SAFETY: as for any capture.
        unsafe { changed(buffer, max, |frames| frames.len()) }
    }

    unsafe extern "C" fn gives_up(buffer: *mut *mut c_void, max: usize) -> usize {
        // SAFETY: as for any capture.
        unsafe { changed(buffer, max, |frames| frames.len() - 5) }
    }

    unsafe extern "C" fn lies(buffer: *mut *mut c_void, max: usize) -> usize {
        let lie = |frames: &mut [*mut c_void]| {
            let count = frames.len();
            frames.swap(count - 4, count - 3);
            count
        };
        // SAFETY: as for any capture.
        unsafe { changed(buffer, max, lie) }
    }

    unsafe extern "C" fn silent(_buffer: *mut *mut c_void, _max: usize) -> usize {
        0
    }

    fn unwinder(name: &'static str, capture: Result<CaptureFn, String>) -> Unwinder {
        Unwinder { name, version: String::new, capture, needs_frame_pointers: false, remembers_addresses: false }
    }

    fn outcomes(scene: &Scene) -> Vec<Result<usize, String>> {
        let unwinders = [
            unwinder("honest", Ok(honest)),
            unwinder("gives up", Ok(gives_up)),
            unwinder("lies", Ok(lies)),
            unwinder("silent", Ok(silent)),
            unwinder("absent", Err("not installed".to_owned())),
            Unwinder { needs_frame_pointers: true, ..unwinder("blind", Ok(honest)) },
        ];
        let timed = run(scene, &unwinders).map(|results| results.timed).unwrap_or_default();
        timed.into_iter().map(|(_, timed)| timed.map(|timed| timed.samples.len())).collect()
    }

    #[test]
    fn only_whole_stacks_are_timed() {
        let scene = Scene { batch_ns: 0.0, ..Scene::repeated(Code::WithoutFramePointers, 10, 3) };
        let outcomes = outcomes(&scene);
        let why = |index: usize| outcomes[index].clone().err().unwrap_or_default();
        assert_eq!(outcomes[0], Ok(3));
        assert!(why(1).starts_with("short: "), "{}", why(1));
        assert!(why(2).starts_with("wrong: "), "{}", why(2));
        assert_eq!(why(3), "no frames");
        assert_eq!(why(4), "not installed");
        assert_eq!(why(5), "n/a: needs frame pointers");
    }

    #[test]
    fn every_body_and_driver_checks_what_it_times() {
        let scene = Scene { batch_ns: 0.0, ..Scene::repeated(Code::WithFramePointers, 10, 2) };
        let scenes = [
            Scene { body: ffi::bench_body_tree, ..scene },
            Scene { body: ffi::bench_body_shifted, at_base: true, ..scene },
            Scene { driver: ffi::bench_drive_evicted, sweep_bytes: 4096, ..scene },
            Scene { driver: ffi::bench_drive_once, rounds: 1, ..scene },
            Scene { driver: ffi::bench_drive_sites, at_base: true, samples_per_round: 2, ..scene },
        ];
        for scene in scenes {
            let outcomes = outcomes(&scene);
            assert_eq!(outcomes[0], Ok(scene.rounds * scene.samples_per_round));
            assert!(outcomes[1..5].iter().all(Result::is_err), "{outcomes:?}");
        }
    }
}

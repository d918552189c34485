//! The interface to the C side, as `c/bench.h` declares it.

use std::ffi::{c_int, c_void};
use std::ptr;

use crate::peers::CaptureFn;

pub(super) type DriverFn = unsafe extern "C" fn(*mut Job);
pub(super) type BodyFn = unsafe extern "C" fn(*const Job, CaptureFn, usize);
pub(super) type LeafFn = unsafe extern "C" fn(*mut c_void);
pub(super) type ChainFn = unsafe extern "C" fn(usize, LeafFn, *mut c_void);
pub(super) type TreeFn = unsafe extern "C" fn(CaptureFn, *mut *mut c_void, usize);

/// The values of `enum verdict`.
pub(super) mod verdict {
    pub(in super::super) const UNCHECKED: u32 = 0;
    pub(in super::super) const WHOLE: u32 = 1;
    pub(in super::super) const NO_FRAMES: u32 = 2;
    pub(in super::super) const SHORT: u32 = 3;
}

/// Mirrors `struct subject`.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) capture: CaptureFn,
    pub(super) root_slack: usize,
    pub(super) uncheckable: usize,
    pub(super) verdict: u32,
    pub(super) reserved: u32,
    pub(super) equal: usize,
    pub(super) expected: usize,
    pub(super) checked: usize,
    pub(super) frame_total: usize,
    pub(super) batch: usize,
    pub(super) samples: *mut f64,
}

impl Subject {
    pub(super) fn new(capture: CaptureFn, root_slack: usize, samples: &mut [f64]) -> Self {
        Self {
            capture,
            root_slack,
            uncheckable: 0,
            verdict: verdict::UNCHECKED,
            reserved: 0,
            equal: 0,
            expected: 0,
            checked: 0,
            frame_total: 0,
            batch: 0,
            samples: samples.as_mut_ptr(),
        }
    }

    /// Returns a subject that captures nothing, so that its time is the time of the calls alone.
    pub(super) fn nothing(samples: &mut [f64]) -> Self {
        Self { uncheckable: 1, ..Self::new(bench_capture_nothing, 0, samples) }
    }
}

/// Mirrors `struct job`.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Job {
    pub(super) chain: ChainFn,
    pub(super) tree: TreeFn,
    pub(super) depth: usize,
    pub(super) driver_at_base: usize,
    pub(super) driver: DriverFn,
    pub(super) body: BodyFn,
    pub(super) subjects: *mut Subject,
    pub(super) subject_count: usize,
    pub(super) reference: CaptureFn,
    pub(super) rounds: usize,
    pub(super) batch_ns: f64,
    pub(super) sweep_bytes: usize,
    pub(super) buffer: *mut *mut c_void,
    pub(super) max: usize,
    pub(super) shared: *mut c_void,
    pub(super) lane: usize,
}

/// The initial pair fields of a job. The C side sets them when it runs a pair.
pub(super) const UNPAIRED: (*mut c_void, usize) = (ptr::null_mut(), 0);

unsafe extern "C" {
    pub(super) fn bench_run(job: *mut Job) -> c_int;
    pub(super) fn bench_run_pair(first: *mut Job, second: *mut Job) -> c_int;

    pub(super) fn bench_drive_round_robin(job: *mut Job);
    pub(super) fn bench_drive_once(job: *mut Job);
    pub(super) fn bench_drive_evicted(job: *mut Job);
    pub(super) fn bench_drive_sites(job: *mut Job);
    pub(super) fn bench_drive_pair(job: *mut Job);

    pub(super) fn bench_body_same_stack(job: *const Job, capture: CaptureFn, repetitions: usize);
    pub(super) fn bench_body_tree(job: *const Job, capture: CaptureFn, repetitions: usize);
    pub(super) fn bench_body_shifted(job: *const Job, capture: CaptureFn, repetitions: usize);

    pub(super) fn nofp_chain(links: usize, leaf: LeafFn, argument: *mut c_void);
    pub(super) fn fp_chain(links: usize, leaf: LeafFn, argument: *mut c_void);
    pub(super) fn nofp_tree(capture: CaptureFn, buffer: *mut *mut c_void, max: usize);
    pub(super) fn fp_tree(capture: CaptureFn, buffer: *mut *mut c_void, max: usize);

    pub(super) fn bench_thread_cpu_ns() -> f64;
    fn bench_capture_nothing(buffer: *mut *mut c_void, max: usize) -> usize;
}

//! CPU time and peak memory, of this process or of a child that is still running.

use std::fs;
use std::mem::MaybeUninit;

/// The CPU time and the peak memory that a process has used so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spent {
    pub(crate) cpu_ms: f64,
    pub(crate) peak_mb: f64,
}

impl Spent {
    pub(crate) fn by_this_process() -> Self {
        Self { cpu_ms: clock_ms(libc::CLOCK_PROCESS_CPUTIME_ID), peak_mb: peak_mb("self") }
    }

    pub(crate) fn by_process(id: u32) -> Self {
        let mut clock = 0;
        // SAFETY: `clock` is writable; any process id is allowed.
        let error = unsafe { libc::clock_getcpuclockid(id.cast_signed(), &raw mut clock) };
        let cpu_ms = if error == 0 { clock_ms(clock) } else { f64::NAN };
        Self { cpu_ms, peak_mb: peak_mb(&id.to_string()) }
    }
}

/// Returns the nanoseconds of CPU time that this thread has used.
pub(crate) fn thread_cpu_ns() -> f64 {
    clock_ms(libc::CLOCK_THREAD_CPUTIME_ID) * 1e6
}

/// Resets the peak to what is resident now. Where the kernel refuses, an earlier peak may hide growth.
pub(crate) fn forget_peak() {
    let _ = fs::write("/proc/self/clear_refs", "5");
}

fn clock_ms(clock: libc::clockid_t) -> f64 {
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: `time` is writable, and the call rejects an unknown clock.
    let error = unsafe { libc::clock_gettime(clock, time.as_mut_ptr()) };
    if error != 0 {
        return f64::NAN;
    }
    // SAFETY: all-zero bytes are a valid `timespec`, and the call left it valid.
    let time = unsafe { time.assume_init() };
    #[expect(clippy::cast_precision_loss, reason = "CPU time in seconds and nanoseconds is far below 2^52")]
    let ms = time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6;
    ms
}

fn peak_mb(process: &str) -> f64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = peak.and_then(|rest| rest.trim().split(' ').next()).and_then(|number| number.parse::<f64>().ok());
    kilobytes.map_or(f64::NAN, |kilobytes| kilobytes / 1024.0)
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::process;

    use super::*;

    #[test]
    fn work_and_memory_are_seen() {
        forget_peak();
        let before = Spent::by_this_process();
        let pages = black_box(vec![1_u8; 64 << 20]);
        let after = Spent::by_process(process::id());
        assert!(after.cpu_ms > before.cpu_ms, "{before:?} {after:?}");
        assert!(after.peak_mb > before.peak_mb + 30.0, "{before:?} {after:?}");
        drop(pages);
    }
}

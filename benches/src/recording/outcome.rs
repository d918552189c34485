//! The cost of recording the events of a workload. `python/recordings/outcome.py` measures the same in Python.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

use crate::meter::{Spent, forget_peak};
use crate::python::reported_figure::ReportedFigure;
use crate::record::share;

/// The cost of one recording. CPU times are net of the same workload without it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    cpu_ns: f64,
    total_ns: f64,
    stop_ns: f64,
    bytes: u64,
    peak_mb: f64,
}

impl Outcome {
    /// Runs the workload without and with recording. Both closures return the CPU time of their threads; `stop` returns
    /// when the file is complete.
    pub(super) fn measure<T>(
        bare: impl Fn() -> io::Result<f64>,
        start: impl FnOnce() -> io::Result<T>,
        recorded: impl FnOnce(&T) -> io::Result<f64>,
        stop: impl FnOnce(T) -> io::Result<()>,
        path: &Path,
    ) -> io::Result<Self> {
        bare()?;
        let before_bare = Spent::by_this_process();
        let bare_cpu_ns = bare()?;
        forget_peak();
        let before = Spent::by_this_process();
        let handle = start()?;
        let cpu_ns = recorded(&handle)?;
        let stopping = Instant::now();
        stop(handle)?;
        let stop_ns = stopping.elapsed().as_secs_f64() * 1e9;
        let after = Spent::by_this_process();
        let bare_ms = before.cpu_ms - before_bare.cpu_ms;
        Ok(Self {
            cpu_ns: cpu_ns - bare_cpu_ns,
            total_ns: (after.cpu_ms - before.cpu_ms - bare_ms) * 1e6,
            stop_ns,
            bytes: fs::metadata(path)?.len(),
            peak_mb: after.peak_mb - before.peak_mb,
        })
    }

    /// Prints the figures, where it makes sense as the cost of one of `events` events.
    #[expect(clippy::cast_precision_loss, reason = "a file here is far below 2^52 bytes")]
    pub(super) fn print_figure(&self, area: &str, case: &str, peer: &str, events: usize) -> io::Result<()> {
        print_figure(area, case, "ns", peer, share(self.cpu_ns, events))?;
        print_figure(&format!("{area}-total"), case, "ns", peer, share(self.total_ns, events))?;
        print_figure(&format!("{area}-bytes"), case, "bytes", peer, share(self.bytes as f64, events))?;
        print_figure(&format!("{area}-stop"), case, "ms", peer, self.stop_ns / 1e6)?;
        print_figure(&format!("{area}-memory"), case, "MB", peer, self.peak_mb)
    }
}

/// Prints one figure, as the scripts do.
pub(crate) fn print_figure(bench: &str, case: &str, unit: &str, peer: &str, cost: f64) -> io::Result<()> {
    let reported = ReportedFigure::new(bench, case, unit, peer, cost);
    let reported = reported.ok_or_else(|| io::Error::other(format!("unknown: {peer:?} or {unit:?}")))?;
    writeln!(io::stdout(), "{}", reported.to_line())
}

/// Returns the name of a case with `threads` threads.
pub(super) fn threads_name(threads: usize) -> String {
    if threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") }
}

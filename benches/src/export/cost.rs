//! The cost of an export. `python/exports/cost.py` measures the same in Python.

use std::io::{self, Write};
use std::time::Instant;

use crate::meter::{Spent, forget_peak};
use crate::python::reported_figure::ReportedFigure;

/// The cost of one export: CPU time of all threads, wall-clock time, growth of the peak memory, and size of the file.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    pub(crate) cpu_ms: f64,
    pub(crate) wall_ms: f64,
    pub(crate) peak_mb: f64,
    pub(crate) file_mb: f64,
}

impl Cost {
    /// Measures `work` in this process. `work` returns how many bytes it wrote.
    pub(crate) fn of(work: impl FnOnce() -> io::Result<u64>) -> io::Result<Self> {
        forget_peak();
        let (before, began) = (Spent::by_this_process(), Instant::now());
        let bytes = work()?;
        let wall_ms = began.elapsed().as_secs_f64() * 1e3;
        let after = Spent::by_this_process();
        Ok(Self {
            cpu_ms: after.cpu_ms - before.cpu_ms,
            wall_ms,
            peak_mb: after.peak_mb - before.peak_mb,
            file_mb: megabytes(bytes),
        })
    }

    /// Returns the cost of two programs that run one after the other.
    pub(crate) fn then(self, next: Self) -> Self {
        Self {
            cpu_ms: self.cpu_ms + next.cpu_ms,
            wall_ms: self.wall_ms + next.wall_ms,
            peak_mb: self.peak_mb.max(next.peak_mb),
            file_mb: next.file_mb,
        }
    }
}

/// Prints the cost of one case for a contender, or why there is no figure, as lines for the benchmark.
pub(crate) fn print_figure(area: &str, case: &str, peer: &str, cost: &io::Result<Cost>) -> io::Result<()> {
    let figures = cost.as_ref().map(|cost| [cost.cpu_ms, cost.wall_ms, cost.peak_mb, cost.file_mb]);
    for (index, (suffix, unit)) in [("", "ms"), ("-wall", "ms"), ("-memory", "MB"), ("-file", "MB")].iter().enumerate()
    {
        let bench = format!("{area}{suffix}");
        let reported = match &figures {
            Ok(figures) => ReportedFigure::new(&bench, case, unit, peer, figures[index]),
            Err(why) => ReportedFigure::absent(&bench, case, unit, peer, why.to_string()),
        };
        print_line(reported)?;
    }
    Ok(())
}

/// Prints the wall-clock time that an export should stay below.
pub(crate) fn print_target(area: &str, case: &str, wall_ms: f64) -> io::Result<()> {
    print_line(ReportedFigure::new(&format!("{area}-wall"), case, "ms", "target", wall_ms))
}

fn print_line(reported: Option<ReportedFigure>) -> io::Result<()> {
    let reported = reported.ok_or_else(|| io::Error::other("an unknown contender has a figure"))?;
    writeln!(io::stdout(), "{}", reported.to_line())
}

#[expect(clippy::cast_precision_loss, reason = "a file here is far below 2^52 bytes")]
pub(crate) fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_programs_share_the_higher_peak() {
        let first = Cost { cpu_ms: 1.0, wall_ms: 2.0, peak_mb: 30.0, file_mb: 5.0 };
        let both = first.then(Cost { cpu_ms: 10.0, wall_ms: 20.0, peak_mb: 3.0, file_mb: 7.0 });
        assert_eq!(
            [both.cpu_ms, both.wall_ms, both.peak_mb, both.file_mb].map(f64::to_bits),
            [11.0_f64, 22.0, 30.0, 7.0].map(f64::to_bits)
        );
    }
}

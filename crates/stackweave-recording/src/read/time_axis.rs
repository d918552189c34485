//! What times of several processes are counted from.

use super::process::ProcessRecording;

/// Where 0 is on a line of nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeAxis {
    /// The moment when the process began to record.
    SinceBase,
    /// The start of the machine, by its monotonic clock: nobody can set it, and it is the same for all processes.
    Monotonic,
    /// 1970, by the wall clock of each machine.
    Wall,
}

impl TimeAxis {
    /// The best axis that all of these have in common.
    pub fn common(processes: &[ProcessRecording]) -> Self {
        let boot = |process: &ProcessRecording| process.start().boot_id.clone();
        let first = processes.first().map(boot).unwrap_or_default();
        let is_one_boot = !first.is_empty() && processes.iter().all(|process| process.start().boot_id == first);
        let have_points = processes.iter().all(|process| process.section().has_clock_points);
        if is_one_boot && have_points { Self::Monotonic } else { Self::Wall }
    }

    /// Where these ticks of a process are on it.
    pub fn time_ns(self, process: &ProcessRecording, ticks: u64) -> i64 {
        let timeline = process.timeline();
        let since_base = timeline.nanoseconds(ticks);
        match self {
            Self::SinceBase => i64::try_from(since_base).unwrap_or(i64::MAX),
            Self::Monotonic => i64::try_from(timeline.monotonic_ns(since_base)).unwrap_or(i64::MAX),
            Self::Wall => timeline.wall_ns(since_base),
        }
    }
}

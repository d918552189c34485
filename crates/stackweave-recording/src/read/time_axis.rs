//! The common time axis of several processes.

use super::process::ProcessRecording;

/// The origin of times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeAxis {
    /// The start of the process's recording.
    SinceBase,
    /// The boot of the machine, by its monotonic clock, which can't be set and is common to all processes.
    Monotonic,
    /// 1970, by the wall clock of each machine.
    Wall,
}

impl TimeAxis {
    /// Returns the best axis that all these processes have in common.
    pub fn common(processes: &[ProcessRecording]) -> Self {
        let boot = |process: &ProcessRecording| process.start().boot_id.clone();
        let first = processes.first().map(boot).unwrap_or_default();
        let is_one_boot = !first.is_empty() && processes.iter().all(|process| process.start().boot_id == first);
        let have_points = processes.iter().all(|process| process.section().has_clock_points);
        if is_one_boot && have_points { Self::Monotonic } else { Self::Wall }
    }

    /// Returns the time of these ticks of a process on the axis.
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

//! Which processes are measured together, and how often.

use crate::options::Effort;

/// Figures that come from the same processes, which are started for a setting.
#[derive(Debug)]
pub(crate) struct Plan<Setting, Process> {
    pub(crate) benches: &'static [&'static str],
    pub(crate) what: &'static str,
    /// The number of rounds, quick and full.
    pub(crate) rounds: (usize, usize),
    /// The processes of one round.
    pub(crate) processes: fn(&Setting) -> Vec<Process>,
}

impl<Setting, Process> Plan<Setting, Process> {
    pub(crate) fn rounds(&self, effort: Effort) -> usize {
        effort.pick(self.rounds.0, self.rounds.1)
    }
}

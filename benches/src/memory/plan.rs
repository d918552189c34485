//! The processes of the area `memory`.

use crate::options::Effort;

/// The recorders, as the scripts and the report name them.
pub(super) const TOOLS: [&str; 16] = [
    "ours",
    "ours, Python stacks",
    "ours, Python allocators",
    "ours, aggregate",
    "ours, sampled",
    "memray",
    "memray, native",
    "memray, Python allocators",
    "memray, Python allocators, native",
    "memray, aggregate",
    "tracemalloc 1",
    "tracemalloc 25",
    "filprofiler",
    "scalene",
    "heaptrack",
    "plain",
];
/// The programs that they record, in the order of the report.
pub(super) const PROGRAMS: [&str; 8] =
    ["objects", "churn", "blocks", "calls", "numpy", "malloc", "malloc, 2 threads", TORCH];
pub(super) const TORCH: &str = "torch";

/// How one process measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Measured {
    pub(super) tool: &'static str,
    /// The number of runs of each program without and with the recorder.
    pub(super) pairs: usize,
    /// The divisor of each program's repetitions.
    pub(super) part: usize,
}

/// Returns every tool in turn, once for each round.
pub(super) fn measured(effort: Effort) -> impl Iterator<Item = Measured> {
    let (rounds, pairs, part) = (effort.pick(1, 3), 1, effort.pick(5, 1));
    let round = TOOLS.map(|tool| Measured { tool, pairs, part });
    round.into_iter().cycle().take(rounds * TOOLS.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_take_turns() {
        let all: Vec<Measured> = measured(Effort::Full).collect();
        assert_eq!(all.len(), 3 * TOOLS.len());
        assert_eq!((all[0], all[TOOLS.len()].tool), (Measured { tool: "ours", pairs: 1, part: 1 }, "ours"));
        assert!(measured(Effort::Quick).all(|one| one.part > 1));
    }
}

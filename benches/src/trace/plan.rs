//! The processes for one Python.

use std::iter;

use crate::options::Effort;

/// The tracers, as the scripts and the report name them.
pub(super) const TOOLS: [&str; 11] = [
    "ours",
    "ours, C calls",
    "ours, demotion",
    "cProfile",
    "viztracer",
    "viztracer, no C",
    "yappi",
    "empty hook",
    "hooks only",
    "hooks, words",
    "plain",
];
pub(super) const TORCH: &str = "torch";

const MILLION: usize = 1_000_000;

/// A run of the programs under one tool.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Measured {
    pub(super) tool: &'static str,
    /// The number of runs of each program without and with the tool.
    pub(super) pairs: usize,
}

/// Returns every tool in turn, once for each round. torch, whose events are expensive, comes once at the end.
pub(super) fn measured(effort: Effort, has_torch: bool) -> Vec<Measured> {
    let (rounds, pairs) = (effort.pick(1, 3), effort.pick(1, 3));
    let round = TOOLS.map(|tool| (tool, pairs));
    let torch = has_torch.then_some((TORCH, 1));
    let all = round.into_iter().cycle().take(rounds * TOOLS.len()).chain(torch);
    all.map(|(tool, pairs)| Measured { tool, pairs }).collect()
}

/// A run that records `events` events with a tool, and then stops it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stopped {
    pub(super) tool: &'static str,
    pub(super) events: usize,
    /// If above 1, the cost is also reported multiplied by it: that many events would need more memory than a machine
    /// may have.
    pub(super) times: usize,
}

pub(super) fn stopped(effort: Effort, has_torch: bool) -> Vec<Stopped> {
    let of_all = |tools: &[&'static str], events, times| {
        tools.iter().map(|&tool| Stopped { tool, events, times }).collect::<Vec<_>>()
    };
    let torch = if has_torch { &[TORCH][..] } else { &[] };
    let small = of_all(&["ours", "cProfile"], MILLION, 1).into_iter();
    let small = iter::repeat_n(small, effort.pick(1, 3)).flatten();
    let keeping_all = of_all(&["viztracer, no C"], MILLION, effort.pick(1, 10));
    let keeping_all = keeping_all.into_iter().chain(of_all(torch, MILLION, effort.pick(1, 10)));
    let big = if effort == Effort::Full { of_all(&["ours", "cProfile"], 10 * MILLION, 1) } else { Vec::new() };
    small.chain(keeping_all).chain(big).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_take_turns_and_torch_comes_once() {
        let all = measured(Effort::Full, true);
        assert_eq!(all.len(), 3 * TOOLS.len() + 1);
        assert_eq!(all[TOOLS.len()], Measured { tool: "ours", pairs: 3 });
        assert_eq!(all.last(), Some(&Measured { tool: TORCH, pairs: 1 }));
        assert!(measured(Effort::Quick, false).iter().all(|one| one.tool != TORCH));
    }

    #[test]
    fn only_tools_with_bounded_memory_get_ten_million_events() {
        let big = stopped(Effort::Full, true).into_iter().filter(|one| one.events > MILLION).map(|one| one.tool);
        assert_eq!(big.collect::<Vec<_>>(), ["ours", "cProfile"]);
    }
}

//! Which processes are run for one Python.

use std::iter;

use crate::options::Effort;

/// What traces, as the scripts and the report call it.
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

/// The programs under one tool.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Measured {
    pub(super) tool: &'static str,
    /// How often each program is run without and with it.
    pub(super) pairs: usize,
}

/// Every tool in turn, and that so many times; torch, whose events cost much, once.
pub(super) fn measured(effort: Effort, has_torch: bool) -> Vec<Measured> {
    let (rounds, pairs) = (effort.pick(1, 3), effort.pick(1, 3));
    let round = TOOLS.map(|tool| (tool, pairs));
    let torch = has_torch.then_some((TORCH, 1));
    let all = round.into_iter().cycle().take(rounds * TOOLS.len()).chain(torch);
    all.map(|(tool, pairs)| Measured { tool, pairs }).collect()
}

/// So many events recorded by a tool, and what it then takes to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stopped {
    pub(super) tool: &'static str,
    pub(super) events: usize,
    /// Above 1: also reported as if there were so many times as many, which would take more memory than a machine may have.
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
    fn ten_million_events_are_for_who_can_hold_them() {
        let big = stopped(Effort::Full, true).into_iter().filter(|one| one.events > MILLION).map(|one| one.tool);
        assert_eq!(big.collect::<Vec<_>>(), ["ours", "cProfile"]);
    }
}

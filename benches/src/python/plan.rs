//! The scripts of the area `python`, with their arguments and rounds.

use crate::options::Effort;

/// One script, and the benches that it reports.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) benches: &'static [&'static str],
    pub(super) what: &'static str,
    pub(super) script: &'static str,
    /// The arguments of each process of a round, besides the library and the effort.
    pub(super) processes: fn() -> Vec<Vec<&'static str>>,
    /// The number of rounds, quick and full.
    rounds: (usize, usize),
}

impl Plan {
    pub(super) fn rounds(&self, effort: Effort) -> usize {
        effort.pick(self.rounds.0, self.rounds.1)
    }
}

pub(super) const PLANS: [Plan; 6] = [
    Plan {
        benches: &["python/from-python"],
        what: "fresh stacks, called from Python",
        script: "fresh_frames.py",
        processes: || vec![vec!["from-python"]],
        rounds: (1, 3),
    },
    Plan {
        benches: &["python/from-c"],
        what: "fresh stacks, called from C",
        script: "fresh_frames.py",
        processes: || vec![vec!["from-c"]],
        rounds: (1, 3),
    },
    Plan {
        benches: &["python/without-gil"],
        what: "while another thread holds the GIL",
        script: "contended.py",
        processes: || vec![Vec::new()],
        rounds: (1, 3),
    },
    Plan {
        benches: &["python/import", "python/first-capture", "python/first-resolve"],
        what: "first of a process",
        script: "first_use.py",
        processes: || combined(&["ours", "PyTorch's way", "torch", "traceback"], &[&["plain"], &["torch"]]),
        rounds: (1, 5),
    },
    Plan {
        benches: &["python/traceback-memory"],
        what: "memory of held tracebacks",
        script: "traceback_memory.py",
        processes: || {
            let cases: [&[&str]; 4] = [&["python", "20"], &["python", "100"], &["woven", "20"], &["woven", "100"]];
            combined(&["ours", "ours, id", "PyTorch's way", "torch", "traceback"], &cases)
        },
        rounds: (1, 1),
    },
    Plan {
        benches: &["python/resolve"],
        what: "a batch of tracebacks",
        script: "batch.py",
        processes: || {
            let contenders = ["ours", "torch fast", "torch addr2line", "torch dladdr", "traceback"];
            combined(&contenders, &[&["builtins"], &["torch"]])
        },
        rounds: (1, 3),
    },
];

/// Combines every case with every contender. Each combination is the arguments of one process.
fn combined(contenders: &[&'static str], cases: &[&[&'static str]]) -> Vec<Vec<&'static str>> {
    let of_case = |case: &&[&'static str]| {
        let case = *case;
        contenders.iter().map(move |contender| [&[*contender], case].concat()).collect::<Vec<_>>()
    };
    cases.iter().flat_map(of_case).collect()
}

#[cfg(test)]
mod tests {
    use super::super::reported_figure::CONTENDERS;
    use super::*;

    #[test]
    fn contenders_take_turns_within_a_case() {
        assert_eq!(combined(&["a", "b"], &[&["x"], &["y"]]), [["a", "x"], ["b", "x"], ["a", "y"], ["b", "y"]]);
    }

    #[test]
    fn every_contender_of_a_plan_is_known() {
        for plan in PLANS.iter().skip(3) {
            assert!((plan.processes)().iter().all(|arguments| CONTENDERS.contains(&arguments[0])), "{}", plan.script);
        }
    }
}

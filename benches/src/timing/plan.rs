//! The processes that each group of figures needs.

use crate::options::Effort;

/// The program that runs a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// This program, with a job.
    Rust,
    /// The Python that has the peers, with a script.
    Python,
    /// Every Python that is installed, with a script.
    EachPython,
}

/// One process. The files that it writes stay in the folder, so that a later process can read them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) by: By,
    pub(super) name: &'static str,
    pub(super) arguments: Vec<String>,
}

/// Figures that come from the same processes.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) benches: &'static [&'static str],
    pub(super) what: &'static str,
    /// The number of rounds, quick and full.
    rounds: (usize, usize),
    processes: &'static [(By, &'static str, &'static [&'static str], Count)],
}

/// The number that a process gets as its argument, quick and full.
type Count = (usize, usize);

/// The number of times that a process measures the pairs. The minimum counts.
const TIMED: Count = (9, 25);
const PAIRS: Count = (1_000_000, 10_000_000);
/// torch keeps an object of half a kilobyte for each pair.
const PAIRS_OF_TORCH: Count = (100_000, 1_000_000);

pub(super) const PLANS: [Plan; 3] = [
    Plan {
        benches: &["timing/pair"],
        what: "a push and a pop",
        rounds: (1, 3),
        processes: &[(By::Rust, "pairs", &[], TIMED), (By::EachPython, "pairs.py", &[], TIMED)],
    },
    Plan {
        benches: &["timing/many", "timing/many-memory", "timing/many-bytes", "timing/statistics"],
        what: "very many pairs, and their statistics",
        rounds: (1, 3),
        processes: &[
            (By::Rust, "many", &[], PAIRS),
            (By::Rust, "statistics", &[], PAIRS),
            (By::Rust, "many-listed", &[], PAIRS),
            (By::Python, "many.py", &["ours"], PAIRS),
            (By::Python, "many.py", &["torch"], PAIRS_OF_TORCH),
        ],
    },
    Plan {
        benches: &["timing/graph"],
        what: "a call graph of 200 functions",
        rounds: (1, 3),
        processes: &[(By::Python, "graph.py", &["ours"], (1, 1)), (By::Python, "graph.py", &["torch"], (1, 1))],
    },
];

impl Plan {
    pub(super) fn rounds(&self, effort: Effort) -> usize {
        effort.pick(self.rounds.0, self.rounds.1)
    }

    /// Returns the processes of one round.
    pub(super) fn processes(&self, effort: Effort) -> Vec<Process> {
        let process = |&(by, name, words, (quick, full)): &(By, &'static str, &[&str], Count)| {
            let count = effort.pick(quick, full).to_string();
            let arguments = words.iter().map(|word| (*word).to_owned()).chain([count]).collect();
            Process { by, name, arguments }
        };
        self.processes.iter().map(process).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_script_is_there_and_what_is_read_was_written_before() {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/timing");
        let processes = PLANS.iter().flat_map(|plan| plan.processes(Effort::Quick)).collect::<Vec<_>>();
        let of_python = processes.iter().filter(|process| process.by != By::Rust);
        assert!(of_python.clone().count() > 0 && of_python.into_iter().all(|of| scripts.join(of.name).exists()));
        let place = |name| processes.iter().position(|process| process.name == name).unwrap();
        assert!(place("many") < place("statistics"));
        assert_eq!(processes[place("many")].arguments, processes[place("statistics")].arguments);
    }
}

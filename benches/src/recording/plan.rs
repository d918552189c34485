//! The processes that each group of figures needs.

use std::path::PathBuf;

use crate::options::Effort;
use crate::plan::Plan;

/// The number of calls, or of allocations and frees, in a recording.
const EVENTS: usize = 1_000_000;
const MANY_EVENTS: usize = 10 * EVENTS;

/// One process. The files that it writes stay in the folder, so that a later process can read them.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Process {
    /// This program.
    Own(Vec<String>),
    /// A script of `python/recordings/`, run by the Python that has the peers.
    Script(&'static str, Vec<String>),
}

/// The arguments of child processes.
#[derive(Debug)]
pub(super) struct Setting {
    pub(super) effort: Effort,
    /// The folder for all files.
    pub(super) folder: PathBuf,
    /// This program's library.
    pub(super) library: PathBuf,
}

impl Setting {
    fn own(&self, job: &str, numbers: &[usize]) -> Process {
        let numbers = numbers.iter().map(usize::to_string);
        Process::Own([job.to_owned(), self.folder.display().to_string()].into_iter().chain(numbers).collect())
    }

    fn calls(&self, contender: &str, threads: usize, calls: usize) -> Process {
        let [threads, calls] = [threads, calls].map(|number| number.to_string());
        Process::Script("calls.py", vec![contender.to_owned(), threads, calls, self.folder.display().to_string()])
    }

    fn allocations(&self, contender: &str, threads: usize, events: usize, part: &str) -> Process {
        let [threads, events] = [threads, events].map(|number| number.to_string());
        let (library, folder) = (self.library.display().to_string(), self.folder.display().to_string());
        let arguments = vec![library, contender.to_owned(), threads, events, folder, part.to_owned()];
        Process::Script("allocations.py", arguments)
    }

    fn read(&self, script: &'static str, events: usize) -> Process {
        Process::Script(script, vec![self.folder.display().to_string(), events.to_string()])
    }

    /// Returns the sizes of the recordings that are read.
    fn sizes(&self) -> &'static [usize] {
        match self.effort {
            Effort::Quick => &[EVENTS],
            Effort::Full => &[EVENTS, MANY_EVENTS],
        }
    }
}

pub(super) const PLANS: [Plan<Setting, Process>; 5] = [
    Plan {
        benches: &["recording/limits"],
        what: "limits",
        rounds: (1, 3),
        processes: |setting| vec![setting.own("limits", &[])],
    },
    Plan {
        benches: &[
            "recording/calls",
            "recording/calls-total",
            "recording/calls-bytes",
            "recording/calls-stop",
            "recording/calls-memory",
        ],
        what: "calls, recorded",
        rounds: (1, 5),
        processes: record_calls,
    },
    Plan {
        benches: &[
            "recording/allocations",
            "recording/allocations-total",
            "recording/allocations-bytes",
            "recording/allocations-stop",
            "recording/allocations-memory",
        ],
        what: "allocations, recorded",
        rounds: (1, 5),
        processes: record_allocations,
    },
    Plan {
        benches: &["recording/read-calls", "recording/read-calls-memory"],
        what: "calls, read and aggregated",
        rounds: (1, 3),
        processes: read_calls,
    },
    Plan {
        benches: &["recording/read-allocations", "recording/read-allocations-memory"],
        what: "allocations, read and aggregated",
        rounds: (1, 3),
        processes: read_allocations,
    },
];

fn record_calls(setting: &Setting) -> Vec<Process> {
    let of_threads = |threads| {
        let scripts = ["ours, Python", "viztracer", "viztracer, raw"].map(|name| setting.calls(name, threads, EVENTS));
        [setting.own("calls", &[threads, EVENTS])].into_iter().chain(scripts)
    };
    let once = [setting.calls("cProfile", 1, EVENTS), setting.own("compressed", &[EVENTS])];
    [1, 2].into_iter().flat_map(of_threads).chain(once).collect()
}

fn record_allocations(setting: &Setting) -> Vec<Process> {
    let cases = [("python", 1), ("python", 2), ("woven", 1), ("woven", 2)];
    let of_case = |(part, threads)| {
        ["ours", "capture only", "memray"].map(|name| setting.allocations(name, threads, EVENTS, part))
    };
    cases.into_iter().flat_map(of_case).collect()
}

/// Returns the processes that make each recording and then read it.
fn read_calls(setting: &Setting) -> Vec<Process> {
    let ours = setting.sizes().iter().flat_map(|&calls| {
        [
            setting.own("calls", &[1, calls]),
            setting.own("read-calls", &[calls]),
            setting.own("wild-calls", &[calls]),
            setting.own("read-wild-calls", &[calls]),
        ]
    });
    // viztracer's memory grows with the calls, and more of them may exceed the memory of the machine.
    let largest = setting.sizes().last().map_or(1, |calls| calls / EVENTS).to_string();
    let arguments = vec![setting.folder.display().to_string(), EVENTS.to_string(), largest];
    ours.chain([setting.calls("viztracer, raw", 1, EVENTS), Process::Script("read_calls.py", arguments)]).collect()
}

fn read_allocations(setting: &Setting) -> Vec<Process> {
    let of_size = |&events: &usize| {
        [
            setting.allocations("ours", 1, events, "python"),
            setting.own("read-allocated", &[events]),
            setting.own("read-live", &[events]),
            setting.allocations("memray", 1, events, "python"),
            setting.read("read_allocated.py", events),
            setting.read("read_live.py", events),
        ]
    };
    setting.sizes().iter().flat_map(of_size).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_is_made_before_it_is_read() {
        let setting = Setting { effort: Effort::Full, folder: "f".into(), library: "l".into() };
        let own = |words: &[&str]| Process::Own(words.iter().map(|word| (*word).to_owned()).collect());
        let processes = read_calls(&setting);
        assert_eq!(processes[4..6], [own(&["calls", "f", "1", "10000000"]), own(&["read-calls", "f", "10000000"])]);
        assert_eq!(read_allocations(&setting).len(), 12);
    }
}

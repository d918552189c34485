//! The processes that each group of figures needs.

use std::path::PathBuf;

use stackweave_export::Format;

use super::{CALLS, GRAPH};
use crate::plan::Plan;

/// The numbers of calls in the two recordings.
const CALL_COUNTS: [usize; 2] = [1_000_000, 10_000_000];
const GRAPH_CASE: &str = "200 functions";

/// One process. The files that it writes stay in the folder, so that a later process can read them.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Process {
    /// This program.
    Own(Vec<String>),
    /// A script of `python/exports/`, run with the Python that has viztracer.
    Script(&'static str, Vec<String>),
    /// A script of `python/exports/`, run with the Python that has torch.
    TorchScript(&'static str, Vec<String>),
}

/// The arguments of child processes.
#[derive(Debug)]
pub(super) struct Setting {
    /// The folder for all files.
    pub(super) folder: PathBuf,
    /// The Python that has gprof2dot.
    pub(super) python: PathBuf,
    /// inferno's program, if it could be built.
    pub(super) inferno: Option<PathBuf>,
}

impl Setting {
    fn folder(&self) -> String {
        self.folder.display().to_string()
    }

    fn own(&self, job: &str, arguments: &[&str]) -> Process {
        let arguments = arguments.iter().map(|argument| (*argument).to_owned());
        Process::Own([job.to_owned(), self.folder()].into_iter().chain(arguments).collect())
    }

    fn gprof2dot(&self, area: &str, case: &str) -> Process {
        self.own("gprof2dot", &[area, &self.python.display().to_string(), case])
    }

    fn viztracer(&self, contender: &str, calls: usize, times: usize) -> Process {
        let numbers = [calls, times].map(|number| number.to_string());
        Process::Script("viztracer_save.py", [contender.to_owned(), self.folder()].into_iter().chain(numbers).collect())
    }
}

pub(super) const PLANS: [Plan<Setting, Process>; 3] = [
    Plan {
        benches: &["export/calls", "export/calls-wall", "export/calls-memory", "export/calls-file"],
        what: "1 million calls",
        rounds: (1, 3),
        processes: of_one_million,
    },
    Plan {
        benches: &["export/calls", "export/calls-wall", "export/calls-memory", "export/calls-file"],
        what: "10 million calls",
        rounds: (0, 1),
        processes: of_ten_million,
    },
    Plan {
        benches: &["export/graph", "export/graph-wall", "export/graph-memory", "export/graph-file"],
        what: "a call graph of 200 functions",
        rounds: (1, 3),
        processes: of_graph,
    },
];

/// Returns the processes that export a recording of `calls` calls, and the programs that read some of the exports.
fn of_calls(setting: &Setting, calls: usize) -> Vec<Process> {
    let case = format!("{} M calls", calls / 1_000_000);
    let record = setting.own("record", &[&calls.to_string()]);
    let ours = Format::all().map(|format| setting.own("export", &[CALLS, format.name(), &case]));
    let inferno =
        setting.inferno.iter().map(|program| setting.own("inferno", &[&program.display().to_string(), &case]));
    [record].into_iter().chain(ours).chain(inferno).chain([setting.gprof2dot(CALLS, &case)]).collect()
}

fn of_one_million(setting: &Setting) -> Vec<Process> {
    let [calls, _] = CALL_COUNTS;
    let viztracer = ["viztracer", "viztracer, raw"].map(|name| setting.viztracer(name, calls, 1));
    let torch = Process::TorchScript("torch_trace.py", vec![setting.folder(), calls.to_string()]);
    of_calls(setting, calls).into_iter().chain(viztracer).chain([torch]).collect()
}

fn of_ten_million(setting: &Setting) -> Vec<Process> {
    let [fewer, calls] = CALL_COUNTS;
    // Ten million calls would need ten times the memory, which is more than a machine may have.
    let viztracer = setting.viztracer("viztracer", fewer, calls / fewer);
    of_calls(setting, calls).into_iter().chain([viztracer, setting.viztracer("viztracer, raw", calls, 1)]).collect()
}

fn of_graph(setting: &Setting) -> Vec<Process> {
    let export = |format: Format| setting.own("export", &[GRAPH, format.name(), GRAPH_CASE]);
    let ours = [Format::Callgraph, Format::Dot, Format::Pstats].map(export);
    let peers = [setting.gprof2dot(GRAPH, GRAPH_CASE), setting.own("dot-of-ours", &[GRAPH_CASE])];
    [setting.own("record-graph", &[])].into_iter().chain(ours).chain(peers).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_is_exported_before_a_peer_reads_it() {
        let setting = Setting { folder: "f".into(), python: "p".into(), inferno: Some("i".into()) };
        let own = |words: &[&str]| Process::Own(words.iter().map(|word| (*word).to_owned()).collect());
        let processes = of_one_million(&setting);
        let place = |process: Process| processes.iter().position(|found| *found == process);
        let exported = |name| place(own(&["export", "f", CALLS, name, "1 M calls"]));
        assert_eq!(place(own(&["record", "f", "1000000"])), Some(0));
        assert!(Format::all().all(|format| exported(format.name()).is_some()));
        assert!(exported("folded") < place(own(&["inferno", "f", "i", "1 M calls"])));
        assert!(exported("pstats") < place(own(&["gprof2dot", "f", CALLS, "p", "1 M calls"])));
    }
}

//! Exports: the cost of writing a recording in the formats of other viewers, compared with the programs that write or
//! draw the same.
//!
//! Each figure comes from a separate process: this program with a hidden command, which exports or runs a peer's
//! program, or a script of `python/exports/`. The processes print what they measured; this module only collects the
//! figures.

pub(crate) mod cost;
mod graph_program;
mod inferno;
mod ours;
mod plan;
pub(crate) mod programs;

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, iter};

use crate::machine::first_line_of;
use crate::options::{EXPORT, Options};
use crate::peers::torch;
use crate::plan::Plan;
use crate::python::{lines_of, reported_figure};
use crate::recording::calls;
use crate::recording::peers::{self, Python};
use crate::report::Case;
use plan::{PLANS, Process, Setting};

/// The prefixes of bench names: calls in all formats, and a call graph of many functions.
const CALLS: &str = "export/calls";
const GRAPH: &str = "export/graph";

/// The Python, the programs and the folder that the processes use.
#[derive(Debug)]
pub(crate) struct Stage {
    python: Python,
    inferno: Result<PathBuf, String>,
    folder: PathBuf,
}

impl Stage {
    pub(crate) fn set() -> io::Result<Self> {
        let folder = peers::target_folder().map_err(io::Error::other)?.join("bench-exports");
        fs::create_dir_all(&folder)?;
        Ok(Self { python: Python::set_up(), inferno: inferno::install(), folder })
    }

    pub(crate) fn describe(&self) -> String {
        let mut text = String::from("Exporters\n");
        let _ = match &self.python.without_peers {
            None => writeln!(text, "  {}", peers::versions()),
            Some(why) => writeln!(text, "  peers can't be installed: {why}"),
        };
        let _ = match &self.inferno {
            Ok(_) => writeln!(text, "  {}", inferno::version()),
            Err(why) => writeln!(text, "  inferno can't be built: {why}"),
        };
        let torch = "import torch; print('torch', torch.__version__)";
        let _ = writeln!(text, "  {}", first_line_of(&torch::python(), &["-c", torch]).replace("unknown", "no torch"));
        let _ = writeln!(text, "  {}", graphviz());
        text
    }

    pub(crate) fn run(&self, options: &Options, done: &mut dyn FnMut(Case) -> io::Result<()>) -> io::Result<()> {
        let (python, inferno) = (self.python.executable.clone(), self.inferno.as_ref().ok().cloned());
        let setting = Setting { folder: self.folder.clone(), python, inferno };
        for plan in PLANS.iter().filter(|plan| plan.benches.iter().any(|bench| bench.contains(&options.only))) {
            let rounds = plan.rounds(options.effort);
            if rounds > 0 {
                writeln!(io::stderr(), "export: {}", plan.what)?;
            }
            let reported = self.reported(plan, &setting, rounds)?;
            for bench in plan.benches.iter().filter(|bench| bench.contains(&options.only)) {
                reported_figure::cases(bench, &reported).into_iter().try_for_each(&mut *done)?;
            }
        }
        fs::remove_dir_all(&self.folder)
    }

    /// Runs the processes of all rounds, and returns the figures that they print.
    fn reported(
        &self,
        plan: &Plan<Setting, Process>,
        setting: &Setting,
        rounds: usize,
    ) -> io::Result<Vec<reported_figure::ReportedFigure>> {
        let mut reported = Vec::new();
        for process in iter::repeat_with(|| (plan.processes)(setting)).take(rounds).flatten() {
            let (mut command, what) = match &process {
                Process::Own(job) => {
                    let mut command = Command::new(env::current_exe()?);
                    command.arg(EXPORT).args(job);
                    (command, job.join(" "))
                }
                Process::Script(script, arguments) => {
                    (script_of(&self.python.executable, script, arguments), (*script).to_owned())
                }
                Process::TorchScript(script, arguments) => {
                    (script_of(Path::new(&torch::python()), script, arguments), (*script).to_owned())
                }
            };
            match lines_of(&mut command, &what) {
                Ok(lines) => reported.extend(lines),
                Err(error) => writeln!(io::stderr(), "export: {what}: {error}")?,
            }
        }
        Ok(reported)
    }
}

fn graphviz() -> String {
    // graphviz prints its version to standard error.
    let output = Command::new("dot").arg("-V").output();
    output.map_or_else(|_| "no graphviz".to_owned(), |output| String::from_utf8_lossy(&output.stderr).trim().to_owned())
}

fn script_of(python: &Path, name: &str, arguments: &[String]) -> Command {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("python");
    let mut command = Command::new(python);
    command.arg("-B").arg(scripts.join("exports").join(name)).args(arguments);
    if let Ok(path) = env::join_paths([scripts.join("captures"), scripts.join("recordings")]) {
        command.env("PYTHONPATH", path);
    }
    command
}

/// Does one job in this process, and prints its cost: `JOB FOLDER ARGUMENTS`.
pub(crate) fn here(job: &[String]) -> io::Result<()> {
    let words = job.iter().map(String::as_str).collect::<Vec<_>>();
    let unknown = || io::Error::other(format!("no such job: {job:?}"));
    let [what, folder, arguments @ ..] = words.as_slice() else { return Err(unknown()) };
    let folder = Path::new(folder);
    match (*what, arguments) {
        ("record", [calls]) => {
            calls::write(calls.parse().map_err(|_| unknown())?, &folder.join(ours::RECORDING)).map(drop)
        }
        ("record-graph", []) => graph_program::write(&folder.join(ours::RECORDING)),
        ("export", [area, format, case]) => ours::measure(area, folder, format, case),
        ("inferno", [program, case]) => programs::inferno(folder, program, case),
        ("gprof2dot", [area, python, case]) => programs::gprof2dot(area, folder, python, case),
        ("dot-of-ours", [case]) => programs::dot_of_ours(folder, case),
        _ => Err(unknown()),
    }
}

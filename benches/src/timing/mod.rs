//! Phases: the cost of a push and a pop, from Rust and from Python; of ten million of them; and of their statistics and
//! their call graph.
//!
//! Each figure comes from a separate process: this program with a hidden command, or a script of `python/timing/`. They
//! print what they measured; this module only collects the figures.

mod many;
mod naive;
mod pairs;
mod plan;

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, iter};

use crate::options::{Options, TIMING};
use crate::peers::torch;
use crate::python::reported_figure::{self, ReportedFigure};
use crate::python::{interpreters, lines_of, package};
use crate::recording::peers::{self, Python};
use crate::report::Case;
use plan::{By, PLANS, Plan, Process};

/// The Pythons, the packages and the folder that the processes use.
#[derive(Debug)]
pub(crate) struct Stage {
    /// The Python that has gprof2dot.
    python: Python,
    package: Result<PathBuf, String>,
    /// The file of torch's profiler of Dynamo, if torch is installed. It needs no other file of torch.
    profiler: Option<PathBuf>,
    folder: PathBuf,
}

impl Stage {
    pub(crate) fn set(options: &Options) -> io::Result<Self> {
        let folder = peers::target_folder().map_err(io::Error::other)?.join("bench-timings");
        fs::create_dir_all(&folder)?;
        let package = package::folder(options.package.as_deref());
        Ok(Self { python: Python::set_up(), package, profiler: profiler_of_torch(), folder })
    }

    pub(crate) fn describe(&self) -> String {
        let mut text = String::from("Recorders of phases\n");
        let _ = match &self.profiler {
            Some(path) => writeln!(text, "  torch's: {}", path.display()),
            None => writeln!(text, "  no torch, or one without a profiler of Dynamo"),
        };
        if let Some(why) = &self.python.without_peers {
            let _ = writeln!(text, "  gprof2dot can't be installed: {why}");
        }
        if let Err(why) = &self.package {
            let _ = writeln!(text, "  no package, so our recorder is not called from Python: {why}");
        }
        text
    }

    pub(crate) fn run(&self, options: &Options, done: &mut dyn FnMut(Case) -> io::Result<()>) -> io::Result<()> {
        for plan in PLANS.iter().filter(|plan| plan.benches.iter().any(|bench| bench.contains(&options.only))) {
            writeln!(io::stderr(), "timing: {}", plan.what)?;
            let reported = self.reported(plan, options)?;
            for bench in plan.benches.iter().filter(|bench| bench.contains(&options.only)) {
                reported_figure::cases(bench, &reported).into_iter().try_for_each(&mut *done)?;
            }
        }
        fs::remove_dir_all(&self.folder)
    }

    /// Runs the processes of all rounds, and returns the figures that they print.
    fn reported(&self, plan: &Plan, options: &Options) -> io::Result<Vec<ReportedFigure>> {
        let rounds = iter::repeat_with(|| plan.processes(options.effort)).take(plan.rounds(options.effort));
        let mut reported = Vec::new();
        for Process { by, name, arguments } in rounds.flatten() {
            let mut commands = match by {
                By::Rust => vec![self.own(name)?],
                By::Python => vec![self.script(&self.python.executable, name)],
                By::EachPython => interpreters().iter().map(|python| self.script(&python.executable, name)).collect(),
            };
            for command in &mut commands {
                reported.extend(lines_of(command.args(&arguments), &format!("{name} {}", arguments.join(" ")))?);
            }
        }
        Ok(reported)
    }

    fn own(&self, job: &str) -> io::Result<Command> {
        let mut command = Command::new(env::current_exe()?);
        command.args([TIMING, job]).arg(&self.folder);
        Ok(command)
    }

    fn script(&self, python: &Path, name: &str) -> Command {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("python");
        let mut command = Command::new(python);
        let profiler = self.profiler.as_deref().unwrap_or_else(|| Path::new("none"));
        command.arg("-B").arg(scripts.join("timing").join(name)).arg(&self.folder).arg(profiler);
        let folders = ["timing", "captures", "recordings"].map(|folder| scripts.join(folder));
        command.env("PYTHONPATH", env::join_paths(folders.iter().chain(&self.package)).unwrap_or_default());
        // torch looks for the program gprof2dot on the path.
        let found = env::var_os("PATH").unwrap_or_default();
        let programs = self.python.executable.parent().map(Path::to_owned).into_iter().chain(env::split_paths(&found));
        if let Ok(path) = env::join_paths(programs) {
            command.env("PATH", path);
        }
        command
    }
}

fn profiler_of_torch() -> Option<PathBuf> {
    let package = Path::new(torch::library()?).parent()?.parent()?;
    Some(package.join("_dynamo/dynamo_profiler.py")).filter(|path| path.exists())
}

/// Does one job in this process, and prints its cost: `JOB FOLDER NUMBERS`.
pub(crate) fn here(job: &[String]) -> io::Result<()> {
    let unknown = || io::Error::other(format!("no such job: {job:?}"));
    let [what, folder, numbers @ ..] = job else { return Err(unknown()) };
    let folder = Path::new(folder);
    let numbers = numbers.iter().map(|number| number.parse().map_err(|_| unknown())).collect::<io::Result<Vec<_>>>()?;
    match (what.as_str(), numbers.as_slice()) {
        ("pairs", [rounds]) => pairs::measure(folder, *rounds),
        ("many", [pairs]) => many::record(folder, *pairs),
        ("many-listed", [pairs]) => many::list(*pairs),
        ("statistics", [pairs]) => many::statistics(folder, *pairs),
        _ => Err(unknown()),
    }
}

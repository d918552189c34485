//! Recordings: the cost of writing events, the size of the file, and the time to read and aggregate it.
//!
//! Each figure comes from a separate process: this program with a hidden command, or a script of `python/recordings/`,
//! run by a Python that has the peers. Both print what they measured; this module only collects the figures.

mod allocations;
pub(crate) mod calls;
mod limits;
pub(crate) mod outcome;
pub(crate) mod peers;
mod plan;
mod program;
mod read;
mod this_process;
pub(crate) mod words;

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, iter};

use crate::options::{Options, RECORDING};
use crate::own_library;
use crate::plan::Plan;
use crate::python::{lines_of, package, reported_figure};
use crate::report::Case;
use peers::Python;
use plan::{PLANS, Process, Setting};

/// The Python, the package and the folder that the processes use.
#[derive(Debug)]
pub(crate) struct Stage {
    python: Python,
    package: Result<PathBuf, String>,
    folder: PathBuf,
}

impl Stage {
    pub(crate) fn set(options: &Options) -> io::Result<Self> {
        let folder = peers::target_folder().map_err(io::Error::other)?.join("bench-recordings");
        fs::create_dir_all(&folder)?;
        Ok(Self { python: Python::set_up(), package: package::folder(options.package.as_deref()), folder })
    }

    pub(crate) fn describe(&self) -> String {
        let mut text = String::from("Recorders\n");
        let _ = match &self.python.without_peers {
            None => writeln!(text, "  {}", peers::versions()),
            Some(why) => writeln!(text, "  peers can't be installed: {why}"),
        };
        if let Err(why) = &self.package {
            let _ = writeln!(text, "  no package, so our recorder is not called from Python: {why}");
        }
        text
    }

    pub(crate) fn run(&self, options: &Options, done: &mut dyn FnMut(Case) -> io::Result<()>) -> io::Result<()> {
        let Some(library) = own_library::find() else {
            return writeln!(
                io::stderr(),
                "recording: this program's library is missing; run the benchmark through cargo"
            );
        };
        let setting = Setting { effort: options.effort, folder: self.folder.clone(), library };
        for plan in PLANS.iter().filter(|plan| plan.benches.iter().any(|bench| bench.contains(&options.only))) {
            writeln!(io::stderr(), "recording: {}", plan.what)?;
            let reported = self.reported(plan, &setting)?;
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
    ) -> io::Result<Vec<reported_figure::ReportedFigure>> {
        let rounds = iter::repeat_with(|| (plan.processes)(setting)).take(plan.rounds(setting.effort));
        let mut reported = Vec::new();
        for process in rounds.flatten() {
            match &process {
                Process::Own(job) => {
                    let mut command = Command::new(env::current_exe()?);
                    reported.extend(lines_of(command.arg(RECORDING).args(job), &job.join(" "))?);
                }
                Process::Script(script, arguments) => {
                    let mut command = self.script(script);
                    match lines_of(command.args(arguments), &format!("{script} {}", arguments.join(" "))) {
                        Ok(lines) => reported.extend(lines),
                        Err(error) => {
                            let python = self.python.executable.display();
                            writeln!(io::stderr(), "recording: {script}: {python}: {error}")?;
                        }
                    }
                }
            }
        }
        Ok(reported)
    }

    fn script(&self, name: &str) -> Command {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("python");
        let mut command = Command::new(&self.python.executable);
        let folders = iter::once(scripts.join("captures")).chain(self.package.iter().cloned());
        command.arg("-B").arg(scripts.join("recordings").join(name));
        if let Ok(path) = env::join_paths(folders) {
            command.env("PYTHONPATH", path);
        }
        command
    }
}

/// Does one job in this process, and prints its cost: `JOB FOLDER NUMBERS`.
pub(crate) fn here(job: &[String]) -> io::Result<()> {
    let unknown = || io::Error::other(format!("no such job: {job:?}"));
    let [what, folder, numbers @ ..] = job else { return Err(unknown()) };
    let folder = Path::new(folder);
    let numbers = numbers.iter().map(|number| number.parse().map_err(|_| unknown())).collect::<io::Result<Vec<_>>>()?;
    match (what.as_str(), numbers.as_slice()) {
        ("limits", []) => limits::measure(folder),
        ("compressed", [calls]) => limits::print_compressed(*calls),
        ("calls", [threads, calls]) => calls::record(*threads, *calls, folder),
        ("read-calls", [calls]) => read::calls(*calls, folder),
        ("wild-calls", [calls]) => calls::write_wild(*calls, folder),
        ("read-wild-calls", [calls]) => read::wild_calls(*calls, folder),
        ("read-allocated", [events]) => read::allocated(*events, folder),
        ("read-live", [events]) => read::live(*events, folder),
        _ => Err(unknown()),
    }
}

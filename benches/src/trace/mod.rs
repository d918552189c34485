//! Traces: the cost of recording every call of a program, beside other tracers, in each Python; and the cost of writing
//! the file at the end.
//!
//! The scripts of `python/tracing/` run programs without and with one tracer in turn, with a process for each tracer,
//! and print what they measured; this module only collects the figures.

mod empty_hook;
mod limits;
mod plan;
mod table;

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use stackweave_testkit::pythons::Python;

use crate::options::Options;
use crate::own_library;
use crate::peers::torch;
use crate::python::environment::{Environment, Wanted};
use crate::python::reported_figure::{self, ReportedFigure};
use crate::python::{interpreters, lines_of, package};
use crate::recording::peers;
use crate::report::Case;
use plan::TORCH;

const PROGRAMS: [&str; 4] = ["trace/cpu", "trace/event", "trace/wall", "trace/total"];
const TRACERS: Wanted = Wanted { name: "tracers", packages: include_str!("../../python/tracers.txt") };
const STOPS: [&str; 3] = ["trace/stop", "trace/stop-bytes", "trace/stop-memory"];

/// The Pythons, the package and the folder that the processes use.
#[derive(Debug)]
pub(crate) struct Stage {
    pythons: Vec<(Python, Environment)>,
    package: Result<PathBuf, String>,
    folder: PathBuf,
}

impl Stage {
    pub(crate) fn set(options: &Options) -> io::Result<Self> {
        let folder = peers::target_folder().map_err(io::Error::other)?.join("bench-traces");
        fs::create_dir_all(&folder)?;
        let with_environment = |python| {
            let environment = Environment::set_up(&python, TRACERS);
            (python, environment)
        };
        let pythons = one_of_each_version(interpreters()).into_iter().map(with_environment).collect();
        Ok(Self { pythons, package: package::folder(options.package.as_deref()), folder })
    }

    pub(crate) fn describe(&self) -> String {
        let mut text = format!("Tracers\n  {}\n", TRACERS.versions());
        for (python, environment) in &self.pythons {
            let torch = if has_torch(python) { ", with torch" } else { "" };
            let _ = writeln!(text, "  {:<16} {}{torch}", python.version, python.executable.display());
            for missing in &environment.missing {
                let _ = writeln!(text, "  {:<16} {missing}", "");
            }
        }
        if let Err(why) = &self.package {
            let _ = writeln!(text, "  no package, so our tracer is not measured: {why}");
        }
        text
    }

    /// Measures, and returns a table for each Python.
    pub(crate) fn run(&self, options: &Options, done: &mut dyn FnMut(Case) -> io::Result<()>) -> io::Result<String> {
        let Some(library) = own_library::find() else {
            writeln!(io::stderr(), "trace: this program's library is missing; run the benchmark through cargo")?;
            return Ok(String::new());
        };
        let wanted = |benches: &[&'static str]| {
            benches.iter().copied().filter(|bench| bench.contains(&options.only)).collect::<Vec<_>>()
        };
        let mut tables = String::new();
        for pair in &self.pythons {
            let (python, _) = pair;
            if !wanted(&PROGRAMS).is_empty() {
                writeln!(io::stderr(), "trace: {}: programs", python.version)?;
                let reported = self.programs(options, pair, &library)?;
                tables.push_str(&table::of_programs(&python.version, &reported));
                for bench in wanted(&PROGRAMS) {
                    reported_figure::cases(bench, &reported).into_iter().try_for_each(&mut *done)?;
                }
            }
            if !wanted(&STOPS).is_empty() {
                writeln!(io::stderr(), "trace: {}: from the last event to a file", python.version)?;
                let reported = self.stops(options, pair)?;
                for bench in wanted(&STOPS) {
                    reported_figure::cases(bench, &reported).into_iter().try_for_each(&mut *done)?;
                }
            }
        }
        fs::remove_dir_all(&self.folder)?;
        Ok(tables)
    }

    fn programs(
        &self,
        options: &Options,
        pair: &(Python, Environment),
        library: &Path,
    ) -> io::Result<Vec<ReportedFigure>> {
        let counts = self.folder.join("counts.json");
        lines_of(self.script(pair, "count.py", "").arg(&counts), "count.py")?;
        let mut reported = Vec::new();
        for measured in plan::measured(options.effort, has_torch(&pair.0)) {
            let mut command = self.script(pair, "measure.py", measured.tool);
            command.arg(measured.tool).arg(&counts).arg(&self.folder).arg(library).arg(measured.pairs.to_string());
            reported.extend(lines_of(&mut command, &format!("measure.py {}", measured.tool))?);
        }
        Ok(reported)
    }

    fn stops(&self, options: &Options, pair: &(Python, Environment)) -> io::Result<Vec<ReportedFigure>> {
        let mut reported = Vec::new();
        for stopped in plan::stopped(options.effort, has_torch(&pair.0)) {
            let mut command = self.script(pair, "stop.py", stopped.tool);
            command.arg(stopped.tool).arg(&self.folder).args([stopped.events, stopped.times].map(|n| n.to_string()));
            reported.extend(lines_of(&mut command, &format!("stop.py {}", stopped.tool))?);
        }
        Ok(reported)
    }

    /// Returns the command for a script. torch is in a separate environment, so its Python gets the programs by their
    /// path.
    fn script(&self, (python, environment): &(Python, Environment), name: &str, tool: &str) -> Command {
        let of_torch = (tool == TORCH).then_some(&python.executable);
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("python");
        let mut command = Command::new(of_torch.unwrap_or(&environment.executable));
        command.arg("-B").arg(scripts.join("tracing").join(name));
        let packages = environment.packages.iter().filter(|_| of_torch.is_some());
        let folders = [scripts.join("captures"), scripts.join("recordings")];
        let path = env::join_paths(folders.iter().chain(&self.package).chain(packages));
        command.env("PYTHONPATH", path.unwrap_or_default());
        command
    }
}

/// Returns whether this is the Python whose torch is measured.
pub(crate) fn has_torch(python: &Python) -> bool {
    torch::library().is_some() && python.executable == Path::new(&torch::python())
}

/// Returns, of each minor version, the Python with torch, or else the newest.
fn one_of_each_version(pythons: Vec<Python>) -> Vec<Python> {
    let mut chosen = Vec::<Python>::new();
    for python in pythons {
        match chosen.last_mut().filter(|last| last.minor == python.minor) {
            Some(last) if has_torch(last) => {}
            Some(last) => *last = python,
            None => chosen.push(python),
        }
    }
    chosen
}

#[cfg(test)]
mod tests;

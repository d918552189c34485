//! Memory: the cost of recording every allocation, beside other recorders; the size of the recording, and the time to
//! read it.
//!
//! The scripts of `python/memory/` run each program in a separate process, without and with a recorder in turn, and
//! print what they measured; this module only collects the figures.

mod malloc_churn;
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
use crate::python::environment::{Environment, Wanted};
use crate::python::reported_figure::{self, ReportedFigure};
use crate::python::{interpreters, lines_of, package};
use crate::recording::peers;
use crate::report::Case;
use crate::trace::has_torch;
use plan::{Measured, PROGRAMS, TORCH};

const BENCHES: [&str; 8] = [
    "memory/cpu",
    "memory/wall",
    "memory/total",
    "memory/event",
    "memory/rss",
    "memory/rss-added",
    "memory/file",
    "memory/report",
];
const RECORDERS: Wanted = Wanted { name: "memory", packages: include_str!("../../python/memory.txt") };

/// The Python, the package and the folder that the processes use.
#[derive(Debug)]
pub(crate) struct Stage {
    python: Option<(Python, Environment)>,
    package: Result<PathBuf, String>,
    folder: PathBuf,
}

impl Stage {
    pub(crate) fn set(options: &Options) -> io::Result<Self> {
        let folder = peers::target_folder().map_err(io::Error::other)?.join("bench-memory-files");
        fs::create_dir_all(&folder)?;
        let python = chosen(interpreters()).map(|python| {
            let environment = Environment::set_up(&python, RECORDERS);
            (python, environment)
        });
        Ok(Self { python, package: package::folder(options.package.as_deref()), folder })
    }

    pub(crate) fn describe(&self) -> String {
        let mut text = format!("Recorders of memory\n  {}\n", RECORDERS.versions());
        if let Some((python, environment)) = &self.python {
            let torch = if has_torch(python) { ", with torch" } else { "" };
            let _ = writeln!(text, "  {:<16} {}{torch}", python.version, python.executable.display());
            for missing in &environment.missing {
                let _ = writeln!(text, "  {:<16} {missing}", "");
            }
        }
        if let Err(why) = &self.package {
            let _ = writeln!(text, "  no package, so our recorder is not measured: {why}");
        }
        text
    }

    /// Measures, and returns one table for each figure.
    pub(crate) fn run(&self, options: &Options, done: &mut dyn FnMut(Case) -> io::Result<()>) -> io::Result<String> {
        let (Some(library), Some(pair)) = (own_library::find(), &self.python) else {
            writeln!(
                io::stderr(),
                "memory: no Python, or this program's library is missing; run the benchmark through cargo"
            )?;
            return Ok(String::new());
        };
        let wanted = || BENCHES.into_iter().filter(|bench| bench.contains(&options.only));
        if wanted().next().is_none() {
            return Ok(String::new());
        }
        let mut reported = Vec::new();
        for measured in plan::measured(options.effort) {
            writeln!(io::stderr(), "memory: {}: {}", pair.0.version, measured.tool)?;
            let plain = PROGRAMS.into_iter().filter(|program| *program != TORCH).collect::<Vec<_>>();
            reported.extend(self.measure(pair, measured, &library, &plain)?);
            if has_torch(&pair.0) {
                reported.extend(self.measure(pair, measured, &library, &[TORCH])?);
            }
        }
        for bench in wanted() {
            reported_figure::cases(bench, &reported).into_iter().try_for_each(&mut *done)?;
        }
        fs::remove_dir_all(&self.folder)?;
        Ok(table::of_programs(&pair.0.version, &reported))
    }

    fn measure(
        &self,
        pair: &(Python, Environment),
        Measured { tool, pairs, part }: Measured,
        library: &Path,
        programs: &[&str],
    ) -> io::Result<Vec<ReportedFigure>> {
        let mut command = self.script(pair, programs == [TORCH]);
        command.arg(tool).arg(&self.folder).arg(library).args([pairs, part].map(|number| number.to_string()));
        lines_of(command.args(programs), &format!("measure.py {tool}"))
    }

    /// Returns the command for a script. torch is in a separate environment, so its Python gets the recorders by their
    /// path.
    fn script(&self, (python, environment): &(Python, Environment), is_torch: bool) -> Command {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("python");
        let mut command = Command::new(if is_torch { &python.executable } else { &environment.executable });
        command.arg("-B").arg(scripts.join("memory/measure.py"));
        let folders = [scripts.join("memory"), scripts.join("captures")];
        let packages = environment.packages.iter().filter(|_| is_torch);
        let path = env::join_paths(folders.iter().chain(&self.package).chain(packages));
        command.env("PYTHONPATH", path.unwrap_or_default());
        command
    }
}

/// Chooses the Python that has torch, or else the newest Python that the recorders support.
fn chosen(mut pythons: Vec<Python>) -> Option<Python> {
    const NEWEST: u32 = 13;
    if let Some(place) = pythons.iter().position(has_torch) {
        return Some(pythons.swap_remove(place));
    }
    pythons.retain(|python| u32::from(python.minor) <= NEWEST);
    pythons.pop()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_has_the_programs_and_tools_of_the_scripts() {
        let names = |file: &str, list: &str| -> Vec<String> {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/memory").join(file);
            let text = fs::read_to_string(path).unwrap();
            let list = text.split_once(&format!("\n{list} = {{\n")).unwrap().1.split_once("\n}").unwrap().0.to_owned();
            list.lines().filter_map(|line| Some(line.trim().strip_prefix('"')?.split('"').next()?.to_owned())).collect()
        };
        assert_eq!(names("programs.py", "PROGRAMS"), PROGRAMS);
        assert_eq!(names("tools.py", "TOOLS"), plan::TOOLS);
        assert_eq!(names("measure.py", "BENCHES"), BENCHES);
    }

    /// Runs one program under one recorder, and checks the figures that the process reports.
    #[test]
    fn a_script_reports_the_cost_of_a_recorder() {
        let Some(python) = interpreters().into_iter().next() else { return };
        let folder = env::temp_dir().join(format!("stackweave-bench-memory-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let case = format!("{}, calls", python.version);
        let environment = Environment { executable: python.executable.clone(), packages: None, missing: Vec::new() };
        let stage = Stage { python: None, package: Err("none".to_owned()), folder: folder.clone() };
        let measured = Measured { tool: "tracemalloc 1", pairs: 1, part: 60 };
        let reported = stage.measure(&(python, environment), measured, Path::new("none"), &["calls"]).unwrap();
        for bench in ["memory/cpu", "memory/wall", "memory/total", "memory/rss"] {
            let costs = reported.iter().filter_map(|reported| reported.cost_in(bench, &case, "tracemalloc 1"));
            assert_eq!(costs.filter(|cost| *cost > 0.0).count(), 1, "{bench}: {reported:?}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}

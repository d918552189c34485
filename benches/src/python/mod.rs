//! Captures in real interpreters: the cost of a woven traceback in a Python program.
//!
//! Each interpreter runs the scripts of `python/captures/`, with this library loaded, and prints what they measured;
//! this module only collects the figures.

pub(crate) mod environment;
mod exports;
mod ours;
pub(crate) mod package;
mod plan;
pub(crate) mod reported_figure;

use std::fmt::Write as _;
use std::io::{self, Write};
use std::iter;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use stackweave_testkit::pythons::{MINORS, MORE, Python, readable_pythons};

use crate::options::{Effort, Options};
use crate::own_library;
use crate::peers::torch;
use crate::report::Case;
use plan::PLANS;
use reported_figure::ReportedFigure;

/// The interpreters and the package that the scripts use.
#[derive(Debug)]
pub(crate) struct Stage {
    interpreters: Vec<Python>,
    package: Result<PathBuf, String>,
}

impl Stage {
    pub(crate) fn set(options: &Options) -> Self {
        Self { interpreters: interpreters(), package: package::folder(options.package.as_deref()) }
    }

    pub(crate) fn describe(&self) -> String {
        let mut text = String::from("Pythons\n");
        for python in &self.interpreters {
            let _ = writeln!(text, "  {:<16} {}", python.version, python.executable.display());
        }
        for minor in MINORS.filter(|minor| !self.interpreters.iter().any(|python| python.minor == *minor)) {
            let _ = writeln!(text, "  3.{minor:<14} skipped: not on the path, not in pyenv, not in {MORE}");
        }
        if let Err(why) = &self.package {
            let _ = writeln!(text, "  no package, so our capture is called from C only: {why}");
        }
        text
    }

    pub(crate) fn run(&self, options: &Options, done: &mut dyn FnMut(Case) -> io::Result<()>) -> io::Result<()> {
        let Some(library) = own_library::find() else {
            return writeln!(
                io::stderr(),
                "python: this program's library is missing; run the benchmark through cargo"
            );
        };
        for plan in PLANS.iter().filter(|plan| plan.benches.iter().any(|bench| bench.contains(&options.only))) {
            for python in &self.interpreters {
                writeln!(io::stderr(), "python: {}: {}", python.version, plan.what)?;
                let mut reported = Vec::new();
                let rounds = iter::repeat_with(plan.processes).take(plan.rounds(options.effort));
                for arguments in rounds.flatten() {
                    let mut command = self.script(python, plan.script);
                    command.arg(&library).arg(effort_name(options.effort)).args(&arguments);
                    reported.extend(lines_of(&mut command, plan.script)?);
                }
                for bench in plan.benches.iter().filter(|bench| bench.contains(&options.only)) {
                    reported_figure::cases(bench, &reported).into_iter().try_for_each(&mut *done)?;
                }
            }
        }
        Ok(())
    }

    fn script(&self, python: &Python, name: &str) -> Command {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/captures");
        let mut command = Command::new(&python.executable);
        command.arg("-B").arg(folder.join(name)).env_remove("PYTHONPATH");
        if let Ok(package) = &self.package {
            command.env("PYTHONPATH", package);
        }
        command
    }
}

/// Returns the interpreters of the tests. The Python that has torch replaces an equal one without.
pub(crate) fn interpreters() -> Vec<Python> {
    let mut found = readable_pythons().into_iter().collect::<Vec<_>>();
    if let Some(with_torch) = torch::library().and_then(|_| Python::query(Path::new(&torch::python()))) {
        found.retain(|python| (&python.version, &python.home) != (&with_torch.version, &with_torch.home));
        found.push(with_torch);
        found.sort();
    }
    found
}

pub(crate) fn effort_name(effort: Effort) -> &'static str {
    match effort {
        Effort::Quick => "quick",
        Effort::Full => "full",
    }
}

/// Runs a script, and returns the figures that it printed. Prints to standard error if it failed, and how.
pub(crate) fn lines_of(command: &mut Command, script: &str) -> io::Result<Vec<ReportedFigure>> {
    let output = command.stdin(Stdio::null()).output()?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        writeln!(io::stderr(), "python: {script}: {}: {}", output.status, stderr.lines().last().unwrap_or_default())?;
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(ReportedFigure::parse).collect())
}

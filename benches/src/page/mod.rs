//! The report page: the cost of building one of ten million events, and the time until a browser shows it, compared
//! with the pages of speedscope and memray for the same data.
//!
//! Each figure comes from a separate process: this program with a hidden command, a peer's program, or
//! `browser/open.mjs`, which drives a browser.

mod build;
mod plan;
mod speedscope;

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use crate::machine::first_line_of;
use crate::options::{Options, PAGE};
use crate::python::{lines_of, package, reported_figure};
use crate::recording::peers::{self, Python, must_run};
use crate::report::Case;
use plan::{Process, Setting};

const BENCHES: [&str; 6] =
    ["report/build", "report/build-wall", "report/build-memory", "report/build-file", "report/open", "report/zoom"];

/// The programs and the folders that the processes use.
#[derive(Debug)]
pub(crate) struct Stage {
    python: Python,
    package: Result<PathBuf, String>,
    speedscope: Result<PathBuf, String>,
    driver: Result<(), String>,
    folder: PathBuf,
}

impl Stage {
    pub(crate) fn set(options: &Options) -> io::Result<Self> {
        let folder = peers::target_folder().map_err(io::Error::other)?.join("bench-pages");
        fs::create_dir_all(&folder)?;
        let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/report-tools");
        Ok(Self {
            python: Python::set_up(),
            package: package::folder(options.package.as_deref()),
            speedscope: speedscope::install(),
            driver: must_run(&mut Command::new(tools)),
            folder,
        })
    }

    pub(crate) fn describe(&self) -> String {
        let mut text = String::from("Pages and browsers\n");
        let _ = match &self.python.without_peers {
            None => writeln!(text, "  {}", peers::versions()),
            Some(why) => writeln!(text, "  peers can't be installed: {why}"),
        };
        let _ = match &self.speedscope {
            Ok(_) => writeln!(text, "  {}", speedscope::version()),
            Err(why) => writeln!(text, "  speedscope can't be installed: {why}"),
        };
        if let Err(why) = &self.driver {
            let _ = writeln!(text, "  browsers can't be driven: {why}");
        }
        for program in ["chromium", "firefox-esr"] {
            let _ = writeln!(text, "  {program}: {}", first_line_of(program, &["--version"]));
        }
        text
    }

    pub(crate) fn run(&self, options: &Options, done: &mut dyn FnMut(Case) -> io::Result<()>) -> io::Result<()> {
        let setting = Setting {
            folder: self.folder.clone(),
            python: self.python.executable.clone(),
            package: self.package.as_ref().ok().cloned(),
            speedscope: self.speedscope.as_ref().ok().cloned(),
        };
        let mut reported = Vec::new();
        for process in plan::processes(&setting, options.effort) {
            let (mut command, what) = command_of(&process, &setting)?;
            writeln!(io::stderr(), "report: {what}")?;
            match lines_of(&mut command, &what) {
                Ok(lines) => reported.extend(lines),
                Err(error) => writeln!(io::stderr(), "report: {what}: {error}")?,
            }
        }
        for bench in BENCHES.into_iter().filter(|bench| bench.contains(&options.only)) {
            reported_figure::cases(bench, &reported).into_iter().try_for_each(&mut *done)?;
        }
        fs::remove_dir_all(&self.folder)
    }
}

fn command_of(process: &Process, setting: &Setting) -> io::Result<(Command, String)> {
    let benches = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut command, words) = match process {
        Process::Own(job) => {
            let mut command = Command::new(env::current_exe()?);
            command.arg(PAGE);
            (command, job)
        }
        Process::Browser(arguments) => {
            let mut command = Command::new("node");
            command.arg(benches.join("browser/open.mjs"));
            (command, arguments)
        }
        Process::Python(arguments) => {
            let mut command = Command::new(&setting.python);
            command.current_dir(benches.join("python"));
            if let Some(package) = &setting.package {
                command.env("PYTHONPATH", package);
            }
            (command, arguments)
        }
    };
    command.args(words);
    Ok((command, words.join(" ")))
}

/// Does one job in this process, and prints its cost: `JOB FOLDER ARGUMENTS`.
pub(crate) fn here(job: &[String]) -> io::Result<()> {
    let words = job.iter().map(String::as_str).collect::<Vec<_>>();
    let unknown = || io::Error::other(format!("no such job: {job:?}"));
    let [what, folder, arguments @ ..] = words.as_slice() else { return Err(unknown()) };
    let folder = Path::new(folder);
    match (*what, arguments) {
        ("record", [events]) => build::record(folder, events.parse().map_err(|_| unknown())?),
        ("build", [recording, format, peer, case]) => build::ours(folder, recording, format, peer, case),
        ("memray", [python, peer, case]) => build::memray(folder, python, peer, case),
        _ => Err(unknown()),
    }
}

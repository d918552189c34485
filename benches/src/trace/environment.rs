//! An environment of the benchmark's own for each Python, with the tracers and the programs, set up once under the
//! target folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use stackweave_testkit::pythons::Python;

use crate::recording::peers::{must_run, target_folder};

/// What is installed, with versions.
const WANTED: &str = include_str!("../../python/tracers.txt");

/// Where a Python finds the tracers, and what could not be installed there.
#[derive(Debug)]
pub(super) struct Environment {
    pub(super) executable: PathBuf,
    pub(super) packages: Option<PathBuf>,
    pub(super) missing: Vec<String>,
}

impl Environment {
    /// The environment of this Python; the Python itself if it can have none, so that the scripts say what is missing.
    pub(super) fn set_up(python: &Python) -> Self {
        set_up(python).unwrap_or_else(|why| Self {
            executable: python.executable.clone(),
            packages: None,
            missing: vec![format!("no environment: {why}")],
        })
    }
}

fn set_up(python: &Python) -> Result<Environment, String> {
    let folder = target_folder()?.join(format!("bench-tracers-{}", python.version));
    let (executable, installed) = (folder.join("bin/python"), folder.join("installed.txt"));
    let mark = format!("{}\n{WANTED}", python.home.display());
    let kept = fs::read_to_string(&installed).unwrap_or_default();
    let missing = if let Some(missing) = kept.strip_prefix(&mark) {
        missing.lines().map(str::to_owned).collect()
    } else {
        let missing = install(python, &folder, &executable)?;
        fs::write(&installed, format!("{mark}{}", missing.join("\n"))).map_err(|error| error.to_string())?;
        missing
    };
    let packages = folder.join(format!("lib/python3.{}/site-packages", python.minor));
    Ok(Environment { executable, packages: Some(packages), missing })
}

/// Installs each by itself, since one may not be there for this Python; returns what is missing.
fn install(python: &Python, folder: &Path, executable: &Path) -> Result<Vec<String>, String> {
    let _ = fs::remove_dir_all(folder);
    must_run(Command::new(&python.executable).args(["-m", "venv"]).arg(folder))?;
    let quietly = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    let failure = |wanted: &str| {
        let failed = must_run(Command::new(executable).args(quietly).arg(wanted)).err();
        failed.map(|why| format!("{wanted}: {why}"))
    };
    Ok(WANTED.lines().filter_map(failure).collect())
}

/// What is installed, for the head of the report.
pub(super) fn versions() -> String {
    WANTED.lines().map(|line| line.replace("==", " ")).collect::<Vec<_>>().join(", ")
}

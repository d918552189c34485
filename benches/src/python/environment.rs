//! Environments of the benchmark's own for each Python, with the tools of an area and what its programs need, set up once
//! under the target folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use stackweave_testkit::pythons::Python;

use crate::recording::peers::{must_run, target_folder};

/// What is installed for an area.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// What the environment is called.
    pub(crate) name: &'static str,
    /// A package each line, with its version.
    pub(crate) packages: &'static str,
}

/// Where a Python finds the tools, and what could not be installed there.
#[derive(Debug)]
pub(crate) struct Environment {
    pub(crate) executable: PathBuf,
    pub(crate) packages: Option<PathBuf>,
    pub(crate) missing: Vec<String>,
}

impl Environment {
    /// The environment of this Python; the Python itself if it can have none, so that the scripts say what is missing.
    pub(crate) fn set_up(python: &Python, wanted: Wanted) -> Self {
        set_up(python, wanted).unwrap_or_else(|why| Self {
            executable: python.executable.clone(),
            packages: None,
            missing: vec![format!("no environment: {why}")],
        })
    }
}

fn set_up(python: &Python, wanted: Wanted) -> Result<Environment, String> {
    let folder = target_folder()?.join(format!("bench-{}-{}", wanted.name, python.version));
    let (executable, installed) = (folder.join("bin/python"), folder.join("installed.txt"));
    let mark = format!("{}\n{}", python.home.display(), wanted.packages);
    let kept = fs::read_to_string(&installed).unwrap_or_default();
    let missing = if let Some(missing) = kept.strip_prefix(&mark) {
        missing.lines().map(str::to_owned).collect()
    } else {
        let missing = install(python, wanted, &folder, &executable)?;
        fs::write(&installed, format!("{mark}{}", missing.join("\n"))).map_err(|error| error.to_string())?;
        missing
    };
    let packages = folder.join(format!("lib/python3.{}/site-packages", python.minor));
    Ok(Environment { executable, packages: Some(packages), missing })
}

/// Installs each by itself, since one may not be there for this Python; returns what is missing.
fn install(python: &Python, wanted: Wanted, folder: &Path, executable: &Path) -> Result<Vec<String>, String> {
    let _ = fs::remove_dir_all(folder);
    must_run(Command::new(&python.executable).args(["-m", "venv"]).arg(folder))?;
    let quietly = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    let failure = |wanted: &str| {
        let failed = must_run(Command::new(executable).args(quietly).arg(wanted)).err();
        failed.map(|why| format!("{wanted}: {why}"))
    };
    Ok(wanted.packages.lines().filter_map(failure).collect())
}

impl Wanted {
    /// What is installed, for the head of the report.
    pub(crate) fn versions(self) -> String {
        self.packages.lines().map(|line| line.replace("==", " ")).collect::<Vec<_>>().join(", ")
    }
}

//! Virtual environments for each Python, with the tools of an area and the packages that its programs need, set up once
//! under the target folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use stackweave_testkit::pythons::Python;

use crate::recording::peers::{must_run, target_folder};

/// The packages to install for an area.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// The name of the environment.
    pub(crate) name: &'static str,
    /// The packages, one in each line, with their versions.
    pub(crate) packages: &'static str,
}

/// The Python and the packages of an environment, and the list of what could not be installed.
#[derive(Debug)]
pub(crate) struct Environment {
    pub(crate) executable: PathBuf,
    pub(crate) packages: Option<PathBuf>,
    pub(crate) missing: Vec<String>,
}

impl Environment {
    /// Sets up the environment of this Python. If that fails, returns the Python itself, so that the scripts report
    /// what is missing.
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

/// Installs each package separately, because one may not support this Python. Returns what is missing.
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
    /// Returns the packages and their versions, for the head of the report.
    pub(crate) fn versions(self) -> String {
        self.packages.lines().map(|line| line.replace("==", " ")).collect::<Vec<_>>().join(", ")
    }
}

//! The Python that has the peers, in a separate environment that is set up once under the target folder.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use crate::peers::torch;

/// The packages to install, with versions.
const WANTED: &str = include_str!("../../python/peers.txt");

/// The Python that runs the scripts, and the reason if it has no peers.
#[derive(Debug)]
pub(crate) struct Python {
    pub(crate) executable: PathBuf,
    pub(crate) without_peers: Option<String>,
}

impl Python {
    /// Returns the Python of the environment, or else the Python it is based on: the scripts then report what is not
    /// installed.
    pub(crate) fn set_up() -> Self {
        let base = torch::python();
        match environment(&base) {
            Ok(executable) => Self { executable, without_peers: None },
            Err(why) => Self { executable: base.into(), without_peers: Some(why) },
        }
    }
}

fn environment(base: &str) -> Result<PathBuf, String> {
    let folder = target_folder()?.join("bench-peers");
    let (python, installed) = (folder.join("bin/python"), folder.join("installed.txt"));
    let mark = format!("{base}\n{WANTED}");
    if fs::read_to_string(&installed).is_ok_and(|text| text == mark) {
        return Ok(python);
    }
    let _ = fs::remove_dir_all(&folder);
    must_run(Command::new(base).args(["-m", "venv"]).arg(&folder))?;
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/peers.txt");
    let quietly = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"];
    must_run(Command::new(&python).args(quietly).arg(list))?;
    fs::write(&installed, mark).map_err(|error| error.to_string())?;
    Ok(python)
}

/// Returns the target folder of the build.
pub(crate) fn target_folder() -> Result<PathBuf, String> {
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let target = program.parent().and_then(Path::parent).ok_or("no folder for builds")?;
    Ok(target.to_owned())
}

/// Returns the packages and their versions, for the head of the report.
pub(crate) fn versions() -> String {
    WANTED.lines().map(|line| line.replace("==", " ")).collect::<Vec<_>>().join(", ")
}

pub(crate) fn must_run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(stderr.lines().last().unwrap_or("failed without a message").to_owned())
}

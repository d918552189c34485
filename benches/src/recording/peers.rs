//! The Python that has the peers: an environment of the benchmark's own, set up once under the target folder.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use crate::peers::torch;

/// What is installed, with versions.
const WANTED: &str = include_str!("../../python/peers.txt");

/// The Python that runs the scripts, and why it has no peers if it has none.
#[derive(Debug)]
pub(crate) struct Python {
    pub(crate) executable: PathBuf,
    pub(crate) without_peers: Option<String>,
}

impl Python {
    /// That of the environment, or the one that it would be made from: the scripts then say what is not installed.
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

/// The folder that holds the build.
pub(crate) fn target_folder() -> Result<PathBuf, String> {
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let target = program.parent().and_then(Path::parent).ok_or("no folder for builds")?;
    Ok(target.to_owned())
}

/// What is installed, for the head of the report.
pub(crate) fn versions() -> String {
    WANTED.lines().map(|line| line.replace("==", " ")).collect::<Vec<_>>().join(", ")
}

pub(crate) fn must_run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(said.lines().last().unwrap_or("failed without a word").to_owned())
}

//! `trace`, `memory`, `record`, `dynamo` and `doctor`: replace this process by the Python package, which runs the program
//! in its own process.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::arguments::RunPythonArguments;
use crate::failure::Failure;
use crate::python_commands::PythonCommand;
use crate::screen::show;

const VARIABLE: &str = "STACKWEAVE_PYTHON";
/// Exits with 1 if the package can't be found.
const PACKAGE_CHECK: &str = "import importlib.util, sys; sys.exit(importlib.util.find_spec('stackweave') is None)";

/// Replaces this process by the Python that records, with this command of the package; returns only on failure.
pub(crate) fn run(command: &str, given: RunPythonArguments) -> Result<(), Failure> {
    let help = PythonCommand::of(command).filter(|known| known.is_help(&given.arguments));
    match (hand_over(command, given), help) {
        (Err(why), Some(known)) => show(&[format!("{why}.")], |out| write!(out, "{}", known.help())),
        (done, _) => done,
    }
}

fn hand_over(command: &str, given: RunPythonArguments) -> Result<(), Failure> {
    let python = given.python.map(OsString::from).or_else(|| std::env::var_os(VARIABLE)).unwrap_or("python3".into());
    let shown = python.to_string_lossy().into_owned();
    let other = format!("name a Python with --python, or in {VARIABLE}");
    let can_not_run = |error: std::io::Error| Failure::new(format!("can't run {shown}: {error}; {other}"));
    let mut check = Command::new(&python);
    check.args(["-c", PACKAGE_CHECK]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if !check.status().map_err(can_not_run)?.success() {
        return Err(Failure::new(format!(
            "the package stackweave is not installed for {shown}: install it there, or {other}"
        )));
    }
    let error = Command::new(&python).args(["-m", "stackweave", command]).args(given.arguments).exec();
    Err(can_not_run(error))
}

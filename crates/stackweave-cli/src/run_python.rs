//! `trace`, `memory`, `run`, `dynamo` and `doctor`: hand over to the Python package, which runs the program in its own
//! process.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::arguments::RunPython;
use crate::failure::Failure;
use crate::python_commands::PythonCommand;
use crate::screen::show;

const VARIABLE: &str = "STACKWEAVE_PYTHON";
/// Ends with 1 where the package can't be found.
const QUESTION: &str = "import importlib.util, sys; sys.exit(importlib.util.find_spec('stackweave') is None)";

/// Becomes the Python that records, by this command of the package; comes back only if it can't.
pub(crate) fn run(command: &str, asked: RunPython) -> Result<(), Failure> {
    let help = PythonCommand::of(command).filter(|known| known.is_help(&asked.arguments));
    match (hand_over(command, asked), help) {
        (Err(why), Some(known)) => show(&[format!("{why}.")], |out| out.write_all(known.help().as_bytes())),
        (done, _) => done,
    }
}

fn hand_over(command: &str, asked: RunPython) -> Result<(), Failure> {
    let python = asked.python.map(OsString::from).or_else(|| std::env::var_os(VARIABLE)).unwrap_or("python3".into());
    let shown = python.to_string_lossy().into_owned();
    let other = format!("name a Python with --python, or in {VARIABLE}");
    let can_not_run = |error: std::io::Error| Failure::new(format!("can't run {shown}: {error}; {other}"));
    let mut question = Command::new(&python);
    question.args(["-c", QUESTION]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if !question.status().map_err(can_not_run)?.success() {
        return Err(Failure::new(format!("{shown} has no package stackweave: install it there, or {other}")));
    }
    let error = Command::new(&python).args(["-m", "stackweave", command]).args(asked.arguments).exec();
    Err(can_not_run(error))
}

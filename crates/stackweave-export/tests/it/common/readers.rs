//! The programs that read exports: a Python with readers from `PyPI`, and programs of the system.

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;
use stackweave_export::{ExportOptions, Format};
use stackweave_recording::Recording;
use stackweave_testkit::folder::Folder;

use super::exported;

/// Returns the folder with the programs of `scripts/export-readers.txt`: that of `STACKWEAVE_READERS`, or one that is
/// set up now. Prints a line and returns `None` if that is not possible; on CI it must be.
fn readers() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os("STACKWEAVE_READERS") {
        return Some(folder.into());
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/export-readers");
    let why = match Command::new(script).output() {
        Ok(output) if output.status.success() => {
            return Some(String::from_utf8(output.stdout).unwrap().trim_end().into());
        }
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    assert!(std::env::var("CI").as_deref() != Ok("true"), "no readers: {why}");
    println!("skipped: no readers: {}", why.lines().last().unwrap_or_default());
    None
}

/// Returns a program of the readers, such as `python`.
pub fn reader(program: &str) -> Option<Command> {
    readers().map(|folder| Command::new(folder.join(program)))
}

/// Returns the command for a script of `tests/python`, run by the readers' Python.
pub fn reader_script(name: &str) -> Option<Command> {
    let mut command = reader("python")?;
    command.arg("-I").arg(script(name));
    Some(command)
}

/// Returns the path of a script of `tests/python`.
pub fn script(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests/python", name].iter().collect()
}

/// Returns a program of the system, if it can be run with `--version`, or with `probe`.
pub fn system_program(program: &str, probe: &str) -> Option<Command> {
    let is_there = Command::new(program).arg(probe).output().is_ok_and(|output| output.status.success());
    if !is_there {
        println!("skipped: {program} is not installed");
    }
    is_there.then(|| Command::new(program))
}

/// Runs a command that must succeed, and returns its output.
pub fn run(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let (output, errors) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?}: {status}\n{output}\n{errors}");
    output.into_owned()
}

/// Returns a snapshot for `PyTorch`'s memory viewer, as Python reads it.
pub fn read_snapshot(recording: &Recording, options: &ExportOptions<'_>) -> Option<Value> {
    let folder = Folder::new();
    let path = folder.write("out.pickle", &exported(recording, Format::Pytorch, options));
    Some(serde_json::from_str(&run(reader_script("read_snapshot.py")?.arg(path))).unwrap())
}

/// Returns a Python with torch: that of `STACKWEAVE_BENCH_PYTHON`, or the system's.
pub fn torch_python() -> Option<Command> {
    let python = std::env::var("STACKWEAVE_BENCH_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    system_program(&python, "--version")?;
    let has_torch = Command::new(&python).args(["-c", "import torch.cuda._memory_viz"]).output();
    if has_torch.is_ok_and(|output| output.status.success()) {
        return Some(Command::new(python));
    }
    println!("skipped: {python} has no torch");
    None
}

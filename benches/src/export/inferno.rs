//! inferno's program, built once under the target folder. Its licence does not allow it among our dependencies.

use std::path::PathBuf;
use std::process::Command;

use crate::recording::peers::{must_run, target_folder};

const VERSION: &str = "0.12.8";

/// Builds the program that draws flame graphs, if it is not there yet, and returns its path.
pub(super) fn install() -> Result<PathBuf, String> {
    let root = target_folder()?.join(format!("bench-inferno-{VERSION}"));
    let program = root.join("bin/inferno-flamegraph");
    if !program.exists() {
        let what = ["install", "inferno", "--version", VERSION, "--locked", "--quiet", "--force", "--root"];
        must_run(Command::new("cargo").args(what).arg(&root).arg("--target-dir").arg(root.join("build")))?;
    }
    Ok(program)
}

pub(super) fn version() -> String {
    format!("inferno {VERSION}")
}

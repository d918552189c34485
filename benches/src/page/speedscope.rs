//! speedscope's page, installed once under the target folder.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::recording::peers::{must_run, target_folder};

const VERSION: &str = "1.25.0";

/// Installs the package if it is not there yet, and returns its folder.
pub(super) fn install() -> Result<PathBuf, String> {
    let root = target_folder()?.join(format!("bench-speedscope-{VERSION}"));
    let package = root.join("node_modules/speedscope");
    if !package.join("dist/release/index.html").exists() {
        fs::create_dir_all(&root).map_err(|error| error.to_string())?;
        let what = format!("speedscope@{VERSION}");
        let quietly = ["install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix"];
        must_run(Command::new("npm").args(quietly).arg(&root).arg(what))?;
    }
    Ok(package)
}

pub(super) fn version() -> String {
    format!("speedscope {VERSION}")
}

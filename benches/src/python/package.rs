//! The folder of our Python package.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the folder of the package: the requested one, or else a folder into which the package is
/// built now, so that this source tree is measured.
pub(crate) fn folder(requested: Option<&Path>) -> Result<PathBuf, String> {
    match requested {
        Some(folder) if folder.join("stackweave").is_dir() => Ok(folder.to_owned()),
        Some(folder) => Err(format!("{} has no folder `stackweave`", folder.display())),
        None => build(),
    }
}

/// Runs the script that builds the package and prints its folder.
fn build() -> Result<PathBuf, String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/build-package");
    let output = Command::new(&script).output().map_err(|error| format!("scripts/build-package: {error}"))?;
    if output.status.success() {
        return Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(format!("scripts/build-package: {}", stderr.lines().last().unwrap_or("failed without a message")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_the_package_is_an_error() {
        let folder_of_scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("python");
        assert!(folder(Some(&folder_of_scripts)).is_err_and(|why| why.ends_with("no folder `stackweave`")));
    }
}

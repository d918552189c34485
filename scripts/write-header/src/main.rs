//! Writes the C header of a crate: `write-header CRATE_FOLDER OUTPUT`, by the crate's `cbindgen.toml`.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, output] = arguments.as_slice() else {
        eprintln!("usage: write-header CRATE_FOLDER OUTPUT");
        return ExitCode::FAILURE;
    };
    match write(Path::new(folder), Path::new(output)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write(folder: &Path, output: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml"))?;
    let bindings = cbindgen::Builder::new().with_config(config).with_src(folder.join("src/lib.rs"));
    let mut text = Vec::new();
    bindings.generate()?.write(&mut text);
    std::fs::write(output, without_safety(&String::from_utf8(text)?))?;
    Ok(())
}

/// Removes the sections about safety, which concern only callers in Rust.
fn without_safety(text: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut is_safety = false;
    for line in text.lines() {
        is_safety = line.starts_with("//") && (is_safety || line == "// # Safety");
        if !is_safety {
            if !line.starts_with("//") && kept.last().is_some_and(|last| *last == "//") {
                kept.pop();
            }
            kept.push(line);
        }
    }
    kept.join("\n") + "\n"
}

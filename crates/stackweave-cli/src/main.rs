//! The command without Python: reads recordings.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    stackweave_cli::run(std::env::args_os()).into()
}

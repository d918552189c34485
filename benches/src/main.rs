//! The benchmark program: Stackweave against its peers.

use std::process::ExitCode;

fn main() -> ExitCode {
    stackweave_bench::main()
}

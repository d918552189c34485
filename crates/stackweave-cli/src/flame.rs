//! `stackweave flame`: a flame graph in the terminal.

use std::path::PathBuf;

use clap::Args;

use crate::failure::Failure;

#[derive(Debug, Args)]
pub(crate) struct Flame {
    /// Recordings to look at, together
    #[arg(value_name = "RECORDING", required = true)]
    pub(crate) recordings: Vec<PathBuf>,
}

pub(crate) fn run(arguments: &Flame) -> Result<(), Failure> {
    Err(Failure::new(format!("{arguments:?} is not there yet")))
}

//! `stackweave completions`: completions for shells.

use clap::Args;

use crate::failure::Failure;

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: String,
}

pub(crate) fn run(arguments: &Completions) -> Result<(), Failure> {
    Err(Failure::new(format!("{arguments:?} is not there yet")))
}

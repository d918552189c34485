//! `stackweave stacks`: where the threads of a running process are.

use clap::Args;

use crate::failure::Failure;

#[derive(Debug, Args)]
pub(crate) struct Stacks {
    /// The number of the process
    pub(crate) process: u32,
}

pub(crate) fn run(arguments: &Stacks) -> Result<(), Failure> {
    Err(Failure::new(format!("{arguments:?} is not there yet")))
}

//! `stackweave live`: a recording while it is made.

use std::path::PathBuf;

use clap::Args;

use crate::failure::Failure;

#[derive(Debug, Args)]
pub(crate) struct Live {
    /// The recording
    pub(crate) recording: PathBuf,
}

pub(crate) fn run(arguments: &Live) -> Result<(), Failure> {
    Err(Failure::new(format!("{arguments:?} is not there yet")))
}

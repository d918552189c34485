//! Failures of a command.

use std::fmt::{self, Display};
use std::io;

use stackweave_core::printable;

/// A failure with one sentence for the user.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command failed, for the reason that the sentence gives.
    Sentence(String),
    /// The arguments are wrong, whatever the recording contains.
    Arguments(String),
    /// The command succeeded, and a gate did not pass.
    Gate(String),
    /// The reader of the output closed it: no failure, and no message.
    Closed,
}

impl Failure {
    pub(crate) fn new(sentence: impl Display) -> Self {
        Self::Sentence(printable(&sentence.to_string()))
    }

    /// Returns the failure for wrong arguments.
    pub(crate) fn arguments(sentence: impl Display) -> Self {
        Self::Arguments(sentence.to_string())
    }

    /// Returns the failure for an error in writing to standard output.
    pub(crate) fn output(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Sentence(format!("can't write to standard output: {error}")),
        }
    }

    /// Returns the exit status.
    pub(crate) const fn status(&self) -> u8 {
        match self {
            Self::Sentence(_) => 1,
            Self::Arguments(_) => 2,
            Self::Gate(_) => 3,
            Self::Closed => 0,
        }
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sentence(sentence) | Self::Arguments(sentence) | Self::Gate(sentence) => f.write_str(sentence),
            Self::Closed => Ok(()),
        }
    }
}

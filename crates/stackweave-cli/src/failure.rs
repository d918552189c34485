//! Why a command could not do what it was asked for.

use std::fmt::{self, Display};
use std::io;

use stackweave_core::printable;

/// One sentence for the user.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Something is wrong, and the sentence says what.
    Sentence(String),
    /// What was asked for can't be: the arguments are wrong, whatever is in the recording.
    Arguments(String),
    /// All was done, and what was found is not what is allowed.
    Gate(String),
    /// Nobody reads the output any more: that is no failure, and needs no word.
    Closed,
}

impl Failure {
    pub(crate) fn new(sentence: impl Display) -> Self {
        Self::Sentence(printable(&sentence.to_string()))
    }

    /// The arguments are wrong.
    pub(crate) fn arguments(sentence: impl Display) -> Self {
        Self::Arguments(sentence.to_string())
    }

    /// An error in writing to standard output.
    pub(crate) fn output(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Sentence(format!("can't write to standard output: {error}")),
        }
    }

    /// The exit status.
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

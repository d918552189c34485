//! Why a command could not do what it was asked for.

use std::fmt::{self, Display};
use std::io;

/// One sentence for the user. Its exit status is 1; that of wrong arguments is 2.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Something is wrong, and the sentence says what.
    Sentence(String),
    /// Nobody reads the output any more: that is no failure, and needs no word.
    Closed,
}

impl Failure {
    pub(crate) fn new(sentence: impl Display) -> Self {
        Self::Sentence(sentence.to_string())
    }

    /// An error in writing to standard output.
    pub(crate) fn output(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Sentence(format!("can't write to standard output: {error}")),
        }
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sentence(sentence) => f.write_str(sentence),
            Self::Closed => Ok(()),
        }
    }
}

//! Why frames are missing.

use core::fmt;

/// Why frames of a thread are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// The memory is not there, or there is too much of it.
    Unreadable,
    /// What the chain leads to is no frame.
    NotAFrame,
    Circle,
    TooMany,
    /// The innermost eval loop is not whole yet, or no longer.
    BetweenLoops,
    /// The lists of interpreters and threads don't fit together.
    Lists,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unreadable => "memory that a Python frame should be in can't be read",
            Self::NotAFrame => "what should be the next Python frame is none",
            Self::Circle => "the Python frames lead in a circle",
            Self::TooMany => "there are more Python frames than can be read",
            Self::BetweenLoops => "the thread is just entering or leaving the interpreter",
            Self::Lists => "the interpreter's list of threads can't be followed",
        })
    }
}

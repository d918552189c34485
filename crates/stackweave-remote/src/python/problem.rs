//! The reason why frames are missing.

use core::fmt;

/// The reason why frames of a thread are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// The memory is not mapped, or there is too much of it.
    Unreadable,
    /// The chain leads to something that is not a frame.
    NotAFrame,
    Circle,
    TooMany,
    /// The innermost eval loop is not complete yet, or no longer.
    BetweenLoops,
    /// The lists of interpreters and threads are inconsistent.
    Lists,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unreadable => "the memory of a Python frame can't be read",
            Self::NotAFrame => "a pointer to a Python frame is invalid",
            Self::Circle => "the Python frames form a cycle",
            Self::TooMany => "there are more Python frames than can be read",
            Self::BetweenLoops => "the thread is just entering or leaving the interpreter",
            Self::Lists => "the interpreter's list of threads can't be followed",
        })
    }
}

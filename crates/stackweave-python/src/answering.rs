//! Answers to `stackweave stacks`, of a process that has this package loaded, where ptrace is not allowed.

use core::fmt;
use std::sync::OnceLock;

use stackweave_capture::{CantDump, dump_signal, prepare_answers};

/// With the value `0` the import takes no signal, and nobody is answered.
const SWITCH: &str = "STACKWEAVE_ANSWERS";

/// Why this process does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unanswered {
    SwitchedOff,
    Unprepared,
    Cant(CantDump),
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SwitchedOff => write!(f, "{SWITCH}=0 is set"),
            Self::Unprepared => f.write_str("the import has not ended"),
            Self::Cant(reason) => reason.fmt(f),
        }
    }
}

static PREPARED: OnceLock<Result<(), Unanswered>> = OnceLock::new();

/// Begins to answer, if that can be; an import that takes no signal is none that fails.
pub(crate) fn begin() {
    PREPARED.get_or_init(|| {
        if std::env::var_os(SWITCH).is_some_and(|value| value == "0") {
            return Err(Unanswered::SwitchedOff);
        }
        prepare_answers().map_err(Unanswered::Cant)
    });
}

/// The signal that it answers, or why it does not.
pub(crate) fn state() -> Result<i32, Unanswered> {
    PREPARED.get().copied().unwrap_or(Err(Unanswered::Unprepared))?;
    dump_signal().map_err(Unanswered::Cant)
}

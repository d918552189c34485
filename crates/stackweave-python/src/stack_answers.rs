//! Lets a process that has this package loaded answer `stackweave stacks` where ptrace is not allowed.

use core::fmt;
use std::sync::OnceLock;

use stackweave_capture::{DumpError, dump_signal, prepare_answers};

/// If this environment variable is `0`, the import reserves no signal, and requests are not answered.
const VARIABLE: &str = "STACKWEAVE_ANSWERS";

/// The reason why this process does not answer requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoAnswerReason {
    SwitchedOff,
    ImportNotFinished,
    DumpUnavailable(DumpError),
}

impl fmt::Display for NoAnswerReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SwitchedOff => write!(f, "{VARIABLE}=0 is set"),
            Self::ImportNotFinished => f.write_str("the import has not finished"),
            Self::DumpUnavailable(reason) => reason.fmt(f),
        }
    }
}

static SIGNAL_STATE: OnceLock<Result<(), NoAnswerReason>> = OnceLock::new();

/// Starts to answer requests, if possible. An import that can't reserve a signal does not fail.
pub(crate) fn begin() {
    SIGNAL_STATE.get_or_init(|| {
        if std::env::var_os(VARIABLE).is_some_and(|value| value == "0") {
            return Err(NoAnswerReason::SwitchedOff);
        }
        prepare_answers().map_err(NoAnswerReason::DumpUnavailable)
    });
}

/// Returns the signal by which this process answers, or why it does not.
pub(crate) fn state() -> Result<i32, NoAnswerReason> {
    SIGNAL_STATE.get().copied().unwrap_or(Err(NoAnswerReason::ImportNotFinished))?;
    dump_signal().map_err(NoAnswerReason::DumpUnavailable)
}

//! Why calls can't be traced.

use std::fmt;

use stackweave_cpython::calls::HookError;

/// Why calls can't be traced.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TraceError {
    /// There is a trace already.
    AlreadyTracing,
    /// The recording has no kinds of events left.
    NoKinds,
    /// This thread is being asked about a call.
    Asked,
    /// The interpreter can't be made to tell.
    Hooks(HookError),
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AlreadyTracing => f.write_str("calls are traced already, and only one trace can run at a time"),
            Self::NoKinds => f.write_str("the recording has too many kinds of events already"),
            Self::Asked => f.write_str("a trace can't be changed by what describes its calls"),
            Self::Hooks(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TraceError {}

impl From<HookError> for TraceError {
    fn from(error: HookError) -> Self {
        match error {
            HookError::AlreadyInstalled => Self::AlreadyTracing,
            error => Self::Hooks(error),
        }
    }
}

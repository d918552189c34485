//! Why calls can't be traced.

use stackweave_cpython::calls::HookError;

/// Why calls can't be traced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// There is a trace already.
    #[error("calls are traced already, and only one trace can run at a time")]
    AlreadyTracing,
    /// The recording has no kinds of events left.
    #[error("the recording has too many kinds of events already")]
    NoKinds,
    /// This thread is being asked about a call.
    #[error("a trace can't be changed by what describes its calls")]
    Asked,
    /// The interpreter can't be made to tell.
    #[error("{0}")]
    Hooks(#[source] HookError),
}

impl From<HookError> for TraceError {
    fn from(error: HookError) -> Self {
        match error {
            HookError::AlreadyInstalled => Self::AlreadyTracing,
            error => Self::Hooks(error),
        }
    }
}

//! The reasons why calls can't be traced.

use stackweave_cpython::calls::HookError;

/// The reason why calls can't be traced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// A trace is running already.
    #[error("calls are traced already, and only one trace can run at a time")]
    AlreadyTracing,
    /// The recording has no number left for another kind of event.
    #[error("the recording has too many kinds of events already")]
    NoKinds,
    /// The describer is running on this thread.
    #[error("a trace can't be changed by what describes its calls")]
    InDescriber,
    /// The hooks can't be installed.
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

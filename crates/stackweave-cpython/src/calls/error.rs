//! The reasons why calls can't be traced.

use super::Mechanism;
use crate::unavailable::Unavailable;

/// The reason why no hook was installed. Nothing was changed then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HookError {
    /// The frames of this interpreter can't be read directly.
    #[error("calls can't be traced in this interpreter: {0}")]
    Frames(#[from] Unavailable),
    /// Hooks are installed already: a process has one observer at a time.
    #[error("calls are traced already, and only one trace can run at a time")]
    AlreadyInstalled,
    /// The interpreter is shutting down, or this thread does not hold the GIL.
    #[error("calls can't be traced now: the interpreter is not running Python here")]
    NoGil,
    /// This version has no such mechanism.
    #[error("Python 3.{1} can't trace calls by {0}")]
    NotInThisVersion(Mechanism, u8),
    /// This mechanism does not report native functions.
    #[error("native functions can't be traced by {0}")]
    NoNativeCalls(Mechanism),
    /// These tools use every tool id of `sys.monitoring`.
    #[error("every tool id of sys.monitoring is taken: {0}")]
    NoToolId(String),
    /// This thread has another profile function.
    #[error("another profile function is set on this thread: {0}; stop it first")]
    ProfileFunctionSet(String),
    /// Another frame evaluation function was installed over an earlier one of ours and still calls it.
    #[error("another frame evaluation function still calls one that an earlier trace left")]
    EvalHookBuried,
    /// This release does not call a frame evaluation function for every frame.
    #[error("this release of Python runs some __getitem__ methods past the frame evaluation hook")]
    EvalHookMisses,
    /// The interpreter raised this exception.
    #[error("the interpreter refused to trace calls: {0}")]
    Raised(String),
}

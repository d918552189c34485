//! Why calls can't be told.

use core::fmt;

use super::Mechanism;
use crate::unavailable::Unavailable;

/// Why no hook was installed. Nothing has changed then.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HookError {
    /// The frames of this interpreter can't be read directly.
    Frames(Unavailable),
    /// Hooks are installed already: there is one observer in a process.
    AlreadyInstalled,
    /// The interpreter shuts down, or this thread does not hold the GIL.
    NoGil,
    /// This version has no such mechanism.
    NotInThisVersion(Mechanism, u8),
    /// This mechanism does not see native functions.
    NoNativeCalls(Mechanism),
    /// Every tool id of `sys.monitoring` is taken, by these.
    NoToolId(String),
    /// This thread has another profile function.
    ProfileFunctionSet(String),
    /// Another frame evaluation function was put over an earlier one of ours and still calls it.
    EvalHookBuried,
    /// This release does not tell a frame evaluation function of every frame.
    EvalHookMisses,
    /// The interpreter raised this.
    Raised(String),
}

impl From<Unavailable> for HookError {
    fn from(reason: Unavailable) -> Self {
        Self::Frames(reason)
    }
}

impl fmt::Display for HookError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Frames(reason) => write!(f, "calls can't be traced in this interpreter: {reason}"),
            Self::AlreadyInstalled => f.write_str("calls are traced already, and only one trace can run at a time"),
            Self::NoGil => f.write_str("calls can't be traced now: the interpreter is not running Python here"),
            Self::NotInThisVersion(mechanism, minor) => write!(f, "Python 3.{minor} can't trace calls by {mechanism}"),
            Self::NoNativeCalls(mechanism) => write!(f, "native functions can't be traced by {mechanism}"),
            Self::NoToolId(names) => write!(f, "every tool id of sys.monitoring is taken: {names}"),
            Self::ProfileFunctionSet(name) => {
                write!(f, "another profile function is set on this thread: {name}; stop it first")
            }
            Self::EvalHookBuried => {
                f.write_str("another frame evaluation function still calls one that an earlier trace left")
            }
            Self::EvalHookMisses => {
                f.write_str("this release of Python runs some __getitem__ methods past the frame evaluation hook")
            }
            Self::Raised(what) => write!(f, "the interpreter refused to trace calls: {what}"),
        }
    }
}

impl std::error::Error for HookError {}

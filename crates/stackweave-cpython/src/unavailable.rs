//! The reasons why frames can't be read directly.

use crate::debug_offsets::Contradiction;
use crate::version::VersionLayout;

/// The reason why there is no [`Interpreter`](crate::Interpreter), or why it can't be trusted. The public API can still
/// be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unavailable {
    /// No Python is loaded in this process.
    #[error("no CPython is loaded in this process")]
    NoInterpreter,
    /// A version without a table.
    #[error("Python {major}.{minor} is not known; 3.{oldest} to 3.{newest} are", oldest = VersionLayout::OLDEST, newest = VersionLayout::NEWEST)]
    UnsupportedVersion {
        /// The first number of the version.
        major: u8,
        /// The second number of the version.
        minor: u8,
    },
    /// A build without the GIL, in which code objects and frames have other layouts.
    #[error("free-threaded builds of CPython are not supported yet")]
    FreeThreaded,
    /// A debug build, in which structures have more fields.
    #[error("debug builds of CPython are not supported")]
    DebugBuild,
    /// The interpreter does not export this function.
    #[error("the interpreter does not offer {0}")]
    MissingFunction(&'static str),
    /// The interpreter reports another offset of this field than the table has.
    #[error("the interpreter keeps {0} elsewhere than its version should")]
    FieldMoved(&'static str),
    /// The interpreter's description of its own layout can't be read.
    #[error("the interpreter's _Py_DebugOffsets can't be read")]
    NoDebugOffsets,
    /// The direct walk and the public API disagreed about a known stack.
    #[error("the self-test found other frames than the interpreter reports")]
    SelfTestDiffers,
    /// The self-test could not be run to its end.
    #[error("the self-test could not be run")]
    SelfTestNotRun,
}

impl From<Contradiction> for Unavailable {
    fn from(contradiction: Contradiction) -> Self {
        match contradiction {
            Contradiction::Unreadable => Self::NoDebugOffsets,
            Contradiction::FreeThreaded => Self::FreeThreaded,
            Contradiction::Moved(field) => Self::FieldMoved(field),
        }
    }
}

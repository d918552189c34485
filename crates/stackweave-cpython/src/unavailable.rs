//! Why frames can't be read directly.

use core::fmt;

use crate::debug_offsets::Contradiction;
use crate::version::Layout;

/// Why there is no [`Interpreter`](crate::Interpreter), or why it is not to be trusted. The public API remains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unavailable {
    /// No Python is loaded in this process.
    NoInterpreter,
    /// A version that there is no table for.
    UnsupportedVersion {
        /// 3, so far.
        major: u8,
        /// The second number of the version.
        minor: u8,
    },
    /// A build without the GIL: code objects and frames have other layouts there.
    FreeThreaded,
    /// A debug build: structures carry more fields there.
    DebugBuild,
    /// The interpreter does not offer this function.
    MissingFunction(&'static str),
    /// The interpreter says that this field is not where the table has it.
    FieldMoved(&'static str),
    /// The interpreter's account of its own layout can't be read.
    NoDebugOffsets,
    /// The direct walk and the public API disagreed about a known stack.
    SelfTestDiffers,
    /// The self-test could not be run to its end.
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

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoInterpreter => f.write_str("no CPython is loaded in this process"),
            Self::UnsupportedVersion { major, minor } => {
                let (oldest, newest) = (Layout::OLDEST, Layout::NEWEST);
                write!(f, "Python {major}.{minor} is not known; 3.{oldest} to 3.{newest} are")
            }
            Self::FreeThreaded => f.write_str("free-threaded builds of CPython are not supported yet"),
            Self::DebugBuild => f.write_str("debug builds of CPython are not supported"),
            Self::MissingFunction(name) => write!(f, "the interpreter does not offer {name}"),
            Self::FieldMoved(name) => write!(f, "the interpreter keeps {name} elsewhere than its version should"),
            Self::NoDebugOffsets => f.write_str("the interpreter's _Py_DebugOffsets can't be read"),
            Self::SelfTestDiffers => f.write_str("the self-test found other frames than the interpreter reports"),
            Self::SelfTestNotRun => f.write_str("the self-test could not be run"),
        }
    }
}

impl std::error::Error for Unavailable {}

//! The layout tables of threads, frames and code objects, for readers of other processes.
//!
//! In this process, [`Interpreter`](crate::Interpreter) and [`PythonSource`](crate::PythonSource) use the same tables.

pub use crate::memory::is_plausible;
pub use crate::text::{Characters, StrText};
pub use crate::version::{
    AttributesLayout, Chain, CodeLayout, DebugOffsetsLayout, FrameLayout, GilLayout, InstanceLayout, KeysLayout,
    ListsLayout, ProfileLayout, TextLayout, ThreadLayout, VersionLayout,
};
pub use crate::walk::code_position::CodePosition;
pub use crate::walk::{SHIM, TAG, UNIT};

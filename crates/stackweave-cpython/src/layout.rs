//! Where each version of Python keeps its threads, frames and code objects: for who reads another process.
//!
//! In the own process [`Interpreter`](crate::Interpreter) and [`PythonSource`](crate::PythonSource) know all this. The
//! tables are theirs.

pub use crate::memory::is_plausible;
pub use crate::text::{Characters, Text};
pub use crate::version::{
    AttributesLayout, Chain, CodeLayout, DebugOffsetsLayout, FrameLayout, GilLayout, InstanceLayout, KeysLayout,
    Layout, ListsLayout, ProfileLayout, TextLayout, ThreadLayout,
};
pub use crate::walk::place::Place;
pub use crate::walk::{SHIM, TAG, UNIT};

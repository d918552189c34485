//! What the modelled sources take for the atomics of the standard library.

pub(crate) use loom::sync::atomic::*;
// Between a thread and its signal handlers only.
pub(crate) use std::sync::atomic::compiler_fence;

//! Replaces the atomics of the standard library in the modelled sources.

pub(crate) use loom::sync::atomic::*;
// Only needed between a thread and its signal handlers.
pub(crate) use std::sync::atomic::compiler_fence;

//! Hooks on Linux. The platform's contract (see `unsupported.rs` for its twin): `install`, `remove`, `refresh_if_needed`, `stats`,
//! and what `system.rs` asks the system for.

mod blocks_functions;
mod dump_signal;
mod exports;
mod functions;
mod hook_wrappers;
mod interpose;
mod loaded_module;
mod mapping_functions;
mod new_functions;
mod originals;
mod system;

pub use dump_signal::DumpSignal;
pub(crate) use dump_signal::take_request as take_dump_request;
pub(crate) use exports::for_each_export;
pub use interpose::{InterposeError, KeptHooks};
pub(crate) use interpose::{Others, foreign_module, forget_others, look_for_others, others, refresh_if_needed, stats};
pub(crate) use system::{
    empty_in_children, errno_place, is_gone, is_on_signal_stack, map_zeros, order_all_threads, thread_number,
};

/// Puts hooks in the places of the functions that take and give back memory; of those that map it if that is wanted.
pub(crate) fn install(mappings: bool) -> Result<(), InterposeError> {
    interpose::install(functions::functions(mappings))
}

/// Takes the hooks out again, unless they are kept for the next recorder.
pub(crate) fn remove(mappings: bool) {
    interpose::remove(functions::functions(mappings));
}

/// For a thread of ours, now and then: leads what was loaded while no event looked, as where few are told of; and looks again at
/// what the loader may have undone.
pub(crate) fn recheck() {
    refresh_if_needed();
    interpose::recheck();
}

/// The hooks, for tests that call them as modules do.
#[cfg(test)]
pub(crate) mod hooks {
    pub(crate) use super::blocks_functions::*;
    pub(crate) use super::mapping_functions::*;
    pub(crate) use super::new_functions::*;
    pub(crate) use super::originals::ORIGINALS;
}

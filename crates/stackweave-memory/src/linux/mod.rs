//! Hooks on Linux. The interface of a platform (`unsupported.rs` is the twin): `install`, `remove`,
//! `refresh_if_needed`, `stats`, and the system calls of `system.rs`.

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
pub(crate) use interpose::{
    ForeignSlots, foreign_module, foreign_slots, refresh_if_needed, reset_foreign_slots, stats, update_foreign_slots,
};
pub use interpose::{InterposeError, KeptHooks};
pub(crate) use system::{
    clear_in_children, errno_pointer, is_gone, is_on_signal_stack, kernel_thread_id, map_zeros, order_all_threads,
};

/// Installs hooks for the functions that allocate and free memory; and for those that map memory, if requested.
pub(crate) fn install(mappings: bool) -> Result<(), InterposeError> {
    interpose::install(functions::functions(mappings))
}

/// Removes the hooks, unless they are kept for the next recorder.
pub(crate) fn remove(mappings: bool) {
    interpose::remove(functions::functions(mappings));
}

/// Hooks modules that were loaded while no event checked for them, as in a sampled recording; and checks slots that the
/// loader may have overwritten. A thread of ours calls this periodically.
pub(crate) fn recheck_slots() {
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

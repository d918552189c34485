//! Exports the C interface from the package's module, so that a host in the process needs no `libstackweave.so`. While the
//! package records memory, it also receives the events of hosts that use a `libstackweave.so`.

use stackweave_memory::sink::{MemorySink, sink_if_recording};

// Exports all functions of the C interface.
use stackweave as _;

/// Returns the sink of this module while it records memory, else null. A `libstackweave.so` queries it when it is loaded.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn stackweave_memory_sink() -> *const MemorySink {
    sink_if_recording()
}

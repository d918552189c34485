//! The C interface in the package's module: a host in the process needs no `libstackweave.so`, and one that has that tells this
//! module what its allocator does, while the package records memory.

use stackweave_memory::sink::{MemorySink, sink_if_recording};

// All of its functions are exported from here.
use stackweave as _;

/// The sink of this module while it records memory, else null: what a `libstackweave.so` asks for that is loaded meanwhile.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn stackweave_memory_sink() -> *const MemorySink {
    sink_if_recording()
}

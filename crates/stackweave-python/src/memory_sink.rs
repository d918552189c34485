//! Where hosts in C have told what their allocators do, while the package records memory.

use stackweave_memory::sink::{MemorySink, sink_if_recording};

/// The sink of this module while it records memory, else null: what a `libstackweave.so` asks for that is loaded meanwhile.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn stackweave_memory_sink() -> *const MemorySink {
    sink_if_recording()
}

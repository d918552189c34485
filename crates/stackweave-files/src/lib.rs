//! Files: inputs that are mapped into memory or opened without blocking, and the module that creates, replaces and
//! discards all outputs ([`output`]).

mod mapped_file;
pub mod output;
mod regular_file;

pub use mapped_file::{FileIdentity, MappedFile};
pub use regular_file::{open_regular, open_regular_unlinked};

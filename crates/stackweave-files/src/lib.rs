//! Files: inputs that are mapped into memory or opened without waiting, and the one place where outputs are created, replaced and
//! discarded ([`output`]).

mod mapped_file;
pub mod output;
mod regular_file;

pub use mapped_file::{FileIdentity, MappedFile};
pub use regular_file::{open_regular, open_regular_unlinked};

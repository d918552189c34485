//! What Stackweave keeps: stacks and byte strings as integers, the numbers of live objects, files mapped into memory,
//! and values that borrow from them; and the one place where outputs are created, replaced and discarded ([`output`]).

mod address_map;
mod blob_bytes;
mod blob_hash;
mod blob_index;
mod blob_table;
mod caller_hashes;
mod cascade;
mod frame_numbers;
mod held;
mod labels;
mod lazy_block;
pub mod ledger;
mod mapped_file;
mod numbered;
pub mod output;
mod per_process;
mod regular_file;
mod stack_hash;
mod stack_index;
mod stack_nodes;
mod stack_table;
pub mod thread_words;

pub use address_map::{AddressMap, AddressMapStats};
pub use blob_table::{BlobTable, BlobTableStats};
pub use caller_hashes::CallerHashes;
pub use held::{Family, Held};
pub use labels::{MOST_LABELS, OTHER_NAMES, label, locate_label};
pub use mapped_file::{FileIdentity, MappedFile};
pub use per_process::PerProcess;
pub use regular_file::{open_regular, open_regular_unlinked};
pub use stack_hash::StackHasher;
pub use stack_table::{StackTable, StackTableStats};

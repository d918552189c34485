//! Data that threads share without locks: stacks, byte strings and labels as integers, and the numbers of live
//! objects. Also thread-local words that signal handlers may use.

mod address_map;
mod blob_bytes;
mod blob_hash;
mod blob_index;
mod blob_table;
mod caller_hashes;
mod frame_numbers;
mod growing_table;
mod id_table;
mod labels;
mod lazy_block;
mod per_process;
mod stack_hash;
mod stack_index;
mod stack_nodes;
mod stack_table;
pub mod thread_words;

pub use address_map::{AddressMap, AddressMapStats};
pub use blob_table::{BlobTable, BlobTableStats};
pub use caller_hashes::CallerHashes;
pub use labels::{MOST_LABELS, OTHER_NAMES, label, locate_label};
pub use per_process::PerProcess;
pub use stack_hash::StackHasher;
pub use stack_table::{StackTable, StackTableStats};

//! What Stackweave keeps: stacks as integers, files mapped into memory, and values that borrow from them.

mod caller_hashes;
mod held;
mod lazy_block;
mod mapped_file;
mod stack_hash;
mod stack_index;
mod stack_nodes;
mod stack_table;

pub use caller_hashes::CallerHashes;
pub use held::{Family, Held};
pub use mapped_file::{FileIdentity, MappedFile};
pub use stack_hash::StackHasher;
pub use stack_table::{StackTable, StackTableStats};

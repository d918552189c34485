//! What Stackweave keeps. For now: files mapped into memory, and values that borrow from them.

mod held;
mod mapped_file;

pub use held::{Family, Held};
pub use mapped_file::{FileIdentity, MappedFile};

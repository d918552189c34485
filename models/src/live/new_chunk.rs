//! New chunks. Loom's atomics and cells cannot be created from zeros, so their heads contain values from the start.

use loom::cell::Cell;

use super::chunk::Chunk;
use crate::atomic::AtomicPtr;

/// Initialises the head of a chunk that was just mapped.
pub(super) fn fill(chunk: *mut Chunk) {
    let head = Chunk {
        next: AtomicPtr::default(),
        older: Cell::new(std::ptr::null_mut()),
        lane: Cell::new(std::ptr::null()),
        sequence: Cell::new(0),
        words: Cell::new(0),
        taken: Cell::new(0),
        observed: Cell::new(0),
    };
    // SAFETY: new memory that no other thread can access, and large enough.
    unsafe { chunk.write(head) };
}

//! A frame that was never called: registers that point into memory of which every word is known.

use std::cell::Cell;

const WORDS: usize = 32 * 1024;
/// Words below the stack pointer, for what a function has just popped.
const BELOW: usize = 512;
/// Words between stack pointer and frame pointer.
const FRAME: usize = 8 * 1024;

/// An address in no module. It marks the word at index 0; the next marks follow it.
const FIRST_MARK: u64 = 0x10_0000;

/// Memory on this thread's stack, because unwinders distrust any other memory.
#[derive(Debug)]
pub(super) struct MadeUpStack<'a>(&'a [Cell<u64>]);

/// Calls `then` with a made-up stack, in a separate frame.
#[inline(never)]
pub(super) fn with<R>(then: impl FnOnce(&MadeUpStack<'_>) -> R) -> R {
    #[expect(
        clippy::large_stack_arrays,
        reason = "the memory must be on the stack, and the thread's stack is big enough"
    )]
    let mut words = [0u64; WORDS];
    then(&MadeUpStack(Cell::from_mut(&mut words[..]).as_slice_of_cells()))
}

impl MadeUpStack<'_> {
    pub(super) fn stack_pointer(&self) -> u64 {
        self.address(BELOW)
    }

    pub(super) fn frame_pointer(&self) -> u64 {
        self.address(BELOW + FRAME)
    }

    /// Returns the word at `address`, if there is one.
    pub(super) fn read(&self, address: u64) -> Option<u64> {
        self.index(address).map(|index| self.0[index].get())
    }

    /// Returns the mark of the word at `address`.
    pub(super) fn mark_of(&self, address: u64) -> Option<u64> {
        self.index(address).map(mark)
    }

    /// Sets every word to null, so that the stack ends after any step.
    pub(super) fn clear(&self) {
        self.0.iter().for_each(|word| word.set(0));
    }

    /// Sets every word to its mark, so that a return address identifies the word it was read from.
    pub(super) fn mark(&self) {
        self.0.iter().enumerate().for_each(|(index, word)| word.set(mark(index)));
    }

    fn address(&self, index: usize) -> u64 {
        (&raw const self.0[index]).expose_provenance() as u64
    }

    fn index(&self, address: u64) -> Option<usize> {
        let offset = address.checked_sub(self.address(0)).filter(|offset| offset.is_multiple_of(8))?;
        usize::try_from(offset / 8).ok().filter(|index| *index < self.0.len())
    }
}

fn mark(index: usize) -> u64 {
    FIRST_MARK + 16 * index as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_known() {
        with(|stack| {
            let sp = stack.stack_pointer();
            assert_eq!(stack.read(sp), Some(0));
            stack.mark();
            assert_eq!(stack.read(sp), stack.mark_of(sp));
            assert_ne!(stack.mark_of(sp), stack.mark_of(sp + 8));
            assert_eq!(stack.frame_pointer() - sp, 8 * FRAME as u64);
            assert_eq!(stack.read(sp + 4), None);
            assert_eq!(stack.read(sp - 8 * BELOW as u64 - 8), None);
            assert_eq!(stack.read(sp + 8 * (WORDS - BELOW) as u64), None);
            stack.clear();
            assert_eq!(stack.read(stack.frame_pointer()), Some(0));
        });
    }
}

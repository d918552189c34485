//! Bytes with stable addresses, to which more can be added.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use stackweave_files::MappedFile;

/// Bytes of a file: mapped, or extracted from it.
#[derive(Clone, Debug)]
pub(crate) enum FileBytes {
    /// A file's bytes.
    Mapped(Arc<MappedFile>),
    /// Decompressed, or read from memory.
    Owned(Arc<[u8]>),
}

impl FileBytes {
    /// Releases the memory of mapped bytes until they are read again.
    pub(crate) fn release(&self) {
        if let Self::Mapped(file) = self {
            file.release();
        }
    }
}

impl Deref for FileBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(file) => file,
            Self::Owned(bytes) => bytes,
        }
    }
}

/// A list that only grows, so that its elements can be borrowed while more are added.
#[derive(Debug)]
pub(crate) struct Arena<T> {
    first: Link<T>,
}

type Link<T> = OnceLock<Box<ArenaNode<T>>>;

#[derive(Debug)]
struct ArenaNode<T> {
    value: T,
    next: Link<T>,
}

impl<T> Arena<T> {
    pub(crate) const fn new() -> Self {
        Self { first: OnceLock::new() }
    }

    /// Appends `value`, which remains at its address.
    pub(crate) fn push(&self, value: T) -> &T {
        let mut link = &self.first;
        let mut node = Box::new(ArenaNode { value, next: OnceLock::new() });
        loop {
            match link.set(node) {
                Ok(()) => break,
                Err(back) => node = back,
            }
            // The link was set already, so there is a node to follow.
            let Some(taken) = link.get() else { unreachable!("a link that can't be set is set") };
            link = &taken.next;
        }
        let Some(placed) = link.get() else { unreachable!("just set") };
        &placed.value
    }
}

impl<T> Drop for Arena<T> {
    /// Drops the elements iteratively: a long list must not be dropped by recursion.
    fn drop(&mut self) {
        let mut next = self.first.take();
        while let Some(mut node) = next {
            next = node.next.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_remain_valid_while_more_are_added() {
        let arena = Arena::new();
        let first = arena.push(String::from("first"));
        let others: Vec<&String> = (0..10_000).map(|index| arena.push(index.to_string())).take(100).collect();
        assert_eq!(first, "first");
        assert_eq!(others[99], "99");
    }

    #[test]
    fn a_long_arena_is_dropped_without_recursion() {
        let arena = Arena::new();
        let mut link = &arena.first;
        for index in 0..200_000 {
            link = &link.get_or_init(|| Box::new(ArenaNode { value: index, next: OnceLock::new() })).next;
        }
        drop(arena);
    }
}

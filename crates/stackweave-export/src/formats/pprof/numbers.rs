//! Numbers for things.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// Things by number, from 1 on, in the order in which they were first met.
#[derive(Debug)]
pub(super) struct Numbers<T> {
    numbers: HashMap<T, u64>,
    things: Vec<T>,
}

impl<T> Default for Numbers<T> {
    fn default() -> Self {
        Self { numbers: HashMap::new(), things: Vec::new() }
    }
}

impl<T: Clone + Eq + Hash> Numbers<T> {
    /// The number of a thing, which is new or has one already.
    pub(super) fn number(&mut self, thing: T) -> u64 {
        let next = self.things.len() as u64 + 1;
        let number = *self.numbers.entry(thing.clone()).or_insert(next);
        if number == next {
            self.things.push(thing);
        }
        number
    }

    /// The number of a thing if it has one.
    pub(super) fn known<Q: Eq + Hash + ?Sized>(&self, thing: &Q) -> Option<u64>
    where
        T: Borrow<Q>,
    {
        self.numbers.get(thing).copied()
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.things.len()
    }

    /// All of them, in the order of their numbers, which they keep.
    pub(super) fn take(&mut self) -> Vec<T> {
        core::mem::take(&mut self.things)
    }
}

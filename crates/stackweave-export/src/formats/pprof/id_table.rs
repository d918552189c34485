//! Numbers values in the order of their first use.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// Values with ids from 1.
#[derive(Debug)]
pub(super) struct UniqueValues<T> {
    ids: HashMap<T, u64>,
    values: Vec<T>,
}

impl<T> Default for UniqueValues<T> {
    fn default() -> Self {
        Self { ids: HashMap::new(), values: Vec::new() }
    }
}

impl<T: Clone + Eq + Hash> UniqueValues<T> {
    /// Returns the id of a value; a new value gets one.
    pub(super) fn id(&mut self, value: T) -> u64 {
        let next = self.values.len() as u64 + 1;
        let number = *self.ids.entry(value.clone()).or_insert(next);
        if number == next {
            self.values.push(value);
        }
        number
    }

    /// Returns the id of a value if it has one.
    pub(super) fn known<Q: Eq + Hash + ?Sized>(&self, value: &Q) -> Option<u64>
    where
        T: Borrow<Q>,
    {
        self.ids.get(value).copied()
    }

    /// Returns the number of values.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns all values in the order of their ids, and keeps the ids.
    pub(super) fn take(&mut self) -> Vec<T> {
        core::mem::take(&mut self.values)
    }
}

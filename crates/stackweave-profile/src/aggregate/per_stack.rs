//! Numbers of stacks: of their nodes in a tree.

/// The number of stacks in a page.
const PAGE: usize = 1024;
const NONE: u32 = u32::MAX;

/// A number for each stack of a recording, by [its index](stackweave_recording::file::Dictionary::stack_index), or for
/// each node of a tree of spans. Only pages with numbers are allocated: a thread or a measure has few of all stacks, and
/// those are neighbours.
#[derive(Debug, Default)]
pub(crate) struct PerStack {
    pages: Vec<Option<Box<[u32; PAGE]>>>,
}

impl PerStack {
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<u32> {
        let page = self.pages.get(index / PAGE)?.as_ref()?;
        Some(page[index % PAGE]).filter(|number| *number != NONE)
    }

    /// Sets a number, which is less than 2^32 - 1.
    #[inline]
    pub(crate) fn set(&mut self, index: usize, number: u32) {
        debug_assert_ne!(number, NONE);
        if self.pages.len() <= index / PAGE {
            self.pages.resize_with(index / PAGE + 1, || None);
        }
        let page = self.pages[index / PAGE].get_or_insert_with(|| Box::new([NONE; PAGE]));
        page[index % PAGE] = number;
    }
}

/// A set of stacks by the same indexes.
#[derive(Debug, Default)]
pub(crate) struct StackSet {
    words: Vec<u64>,
}

impl StackSet {
    /// Adds a stack. Returns whether it was not in the set.
    #[inline]
    pub(crate) fn insert(&mut self, index: usize) -> bool {
        let (word, bit) = (index / 64, 1 << (index % 64));
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        let is_new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_with_numbers_are_allocated() {
        let mut numbers = PerStack::default();
        assert_eq!(numbers.get(7), None);
        for index in [5_000_000, 7, 7] {
            numbers.set(index, 3);
        }
        assert_eq!([7, 8, 5_000_000, 5_000_001].map(|index| numbers.get(index)), [Some(3), None, Some(3), None]);
        assert_eq!(numbers.pages.iter().flatten().count(), 2);
    }

    #[test]
    fn a_stack_is_added_once() {
        let mut stacks = StackSet::default();
        assert_eq!([64, 0, 64, 63, 0].map(|index| stacks.insert(index)), [true, true, false, true, false]);
    }
}

//! Records of threads, by the number of the thread.
//!
//! Hot file: allocates only for a new thread.

/// The same number of items for each thread.
#[derive(Debug)]
pub(crate) struct ByThread<T> {
    items: Vec<T>,
    width: usize,
}

/// Threads with greater numbers share one record.
const MAX_THREADS: usize = 1 << 20;
/// The maximum number of items that are added at once, unless there are a third as many already. A recorder numbers
/// threads one by one; a file may contain only the last of a million.
const MAX_GROWTH: usize = 1 << 18;

impl<T: Default> ByThread<T> {
    /// Creates records of `width` items.
    pub(crate) fn new(width: usize) -> Self {
        let mut items = Vec::new();
        items.resize_with(width, T::default);
        Self { items, width }
    }

    /// Returns the items of a thread; threads for which no memory could be allocated share the first record.
    #[inline]
    pub(crate) fn of_mut(&mut self, thread: u32) -> &mut [T] {
        let mut first = (thread as usize).min(MAX_THREADS) * self.width;
        if first >= self.items.len() {
            first = self.add(first);
        }
        &mut self.items[first..first + self.width]
    }

    /// Returns the items of a thread without adding it.
    #[inline]
    pub(crate) fn of(&self, thread: u32) -> &[T] {
        let first = (thread as usize).min(MAX_THREADS) * self.width;
        let first = if first < self.items.len() { first } else { 0 };
        &self.items[first..first + self.width]
    }

    #[cold]
    fn add(&mut self, first: usize) -> usize {
        let (items, known) = (first + self.width, self.items.len());
        let is_too_many = items > MAX_GROWTH.max(known.saturating_mul(4));
        if is_too_many || self.items.try_reserve(items - known).is_err() {
            return 0;
        }
        self.items.resize_with(items, T::default);
        first
    }

    /// Returns all items.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.items.iter_mut()
    }

    pub(crate) fn bytes_used(&self) -> usize {
        self.items.capacity() * size_of::<T>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_has_items_and_those_with_large_numbers_share_some() {
        let mut records = ByThread::new(2);
        for thread in [0, 3, 900] {
            records.of_mut(thread)[1] = thread;
        }
        assert_eq!([0, 1, 3, 900].map(|thread| records.of(thread)[1]), [0, 0, 3, 900]);
        records.of_mut(u32::MAX)[0] = 7;
        assert_eq!((records.of(u32::MAX - 1)[0], records.of(1)[0]), (7, 0));
        assert!(records.bytes_used() < 1 << 14);
    }
}

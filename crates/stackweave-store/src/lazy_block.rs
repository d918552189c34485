//! Memory directly from the kernel, mapped when it is first needed and never moved.
//!
//! It does not come from the allocator, because a capture may happen inside one. Untouched pages cost nothing.
//!
//! Hot file: no allocation, no lock, async-signal-safe.

use std::cell::UnsafeCell;
use std::fmt;
use std::ptr;
use std::slice;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use memmap2::{MmapMut, MmapOptions};

/// A type for which [`LazyBlock`] can provide memory.
///
/// # Safety
/// - All bytes zero are a valid value.
/// - It needs no more than a page's alignment, and has no `Drop`.
pub(crate) unsafe trait ZeroIsValid: Sync {}

// SAFETY: any bits are a valid number.
unsafe impl ZeroIsValid for AtomicU64 {}

// SAFETY: an array of such values, with the same alignment.
unsafe impl<T: ZeroIsValid, const N: usize> ZeroIsValid for [T; N] {}

/// A slice of zeros, mapped when it is first needed.
pub(crate) struct LazyBlock<T> {
    /// Null until mapped; then the first of `length` values, for as long as `self` lives.
    first: AtomicPtr<T>,
    length: usize,
    /// Written once, by the thread that set `first`; read only when `self` is dropped.
    map: UnsafeCell<Option<MmapMut>>,
}

// SAFETY: `T` is shared like a slice, and is `Sync`. Only one thread accesses `map`: the one whose exchange of
// `first` succeeded.
unsafe impl<T: ZeroIsValid> Sync for LazyBlock<T> {}

// SAFETY: the mapping belongs to the process, not to a thread.
unsafe impl<T: ZeroIsValid> Send for LazyBlock<T> {}

impl<T: ZeroIsValid> LazyBlock<T> {
    pub(crate) const fn new(length: usize) -> Self {
        Self { first: AtomicPtr::new(ptr::null_mut()), length, map: UnsafeCell::new(None) }
    }

    /// Returns blocks that are each as long as all before it together, beginning with `first`, so that each
    /// doubles the total length.
    pub(crate) const fn doubling<const N: usize>(first: usize) -> [Self; N] {
        let mut blocks = Self::doubling_after(first);
        let mut block = N;
        while block > 1 {
            block -= 1;
            blocks[block].length = blocks[block - 1].length;
        }
        blocks
    }

    /// Returns blocks that double the total length, after a block of `length`.
    pub(crate) const fn doubling_after<const N: usize>(length: usize) -> [Self; N] {
        let mut blocks = [const { Self::new(0) }; N];
        let mut block = 0;
        while block < N {
            blocks[block].length = length << block;
            block += 1;
        }
        blocks
    }

    /// Returns the values, if they are mapped.
    #[inline]
    pub(crate) fn get(&self) -> Option<&[T]> {
        let first = self.first.load(Ordering::Acquire);
        // SAFETY: set by `map` below to a mapping of this length, which exists until `self` is dropped.
        (!first.is_null()).then(|| unsafe { slice::from_raw_parts(first, self.length) })
    }

    /// Returns the first value, if it is mapped. Faster than `get` for a single value: does not read the length.
    #[inline]
    pub(crate) fn only(&self) -> Option<&T> {
        // SAFETY: null, or set by `map` below to a mapping of at least one value, which exists until `self` is
        // dropped.
        unsafe { self.first.load(Ordering::Acquire).as_ref() }
    }

    /// Returns the values, and maps them if necessary; `None` if the kernel has no memory.
    pub(crate) fn get_or_map(&self) -> Option<&[T]> {
        if self.get().is_none() {
            self.map()?;
        }
        self.get()
    }

    #[cold]
    #[inline(never)]
    fn map(&self) -> Option<()> {
        let bytes = self.length.checked_mul(size_of::<T>()).filter(|bytes| *bytes > 0)?;
        let mut map = MmapOptions::new().len(bytes).no_reserve_swap().map_anon().ok()?;
        let first = map.as_mut_ptr().cast();
        // Another thread, or a handler that interrupted this one, may have been first: then its block is used.
        if self.first.compare_exchange(ptr::null_mut(), first, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            // SAFETY: the exchange succeeds once, so no other thread writes; and no thread reads.
            unsafe { *self.map.get() = Some(map) };
        }
        Some(())
    }

    /// Returns the number of values, mapped or not.
    #[cfg(test)]
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Returns how many bytes are mapped.
    pub(crate) fn mapped_bytes(&self) -> usize {
        self.get().map_or(0, size_of_val)
    }
}

impl<T> fmt::Debug for LazyBlock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LazyBlock").field("length", &self.length).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn nothing_is_mapped_before_it_is_needed() {
        let block = LazyBlock::<AtomicU64>::new(1000);
        assert!(block.get().is_none());
        assert_eq!(block.mapped_bytes(), 0);
        let values = block.get_or_map().unwrap();
        assert_eq!(values.len(), 1000);
        assert!(values.iter().all(|value| value.load(Ordering::Relaxed) == 0));
        assert_eq!(block.mapped_bytes(), 8000);
    }

    #[test]
    fn mapping_fails_if_the_kernel_refuses() {
        assert!(LazyBlock::<AtomicU64>::new(usize::MAX / 2).get_or_map().is_none());
        assert!(LazyBlock::<AtomicU64>::new(1 << 59).get_or_map().is_none());
    }

    #[test]
    fn an_empty_block_is_never_mapped() {
        let block = LazyBlock::<AtomicU64>::new(0);
        assert!(block.get_or_map().is_none() && block.only().is_none());
    }

    #[test]
    fn each_block_doubles_the_total_length() {
        let lengths = |blocks: [LazyBlock<AtomicU64>; 4]| blocks.map(|block| block.length());
        assert_eq!(lengths(LazyBlock::doubling(8)), [8, 8, 16, 32]);
        assert_eq!(lengths(LazyBlock::doubling_after(8)), [8, 16, 32, 64]);
    }

    #[test]
    fn all_threads_get_the_same_block() {
        for _ in 0..50 {
            let block = LazyBlock::<AtomicU64>::new(8);
            thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| block.get_or_map().unwrap()[5].fetch_add(1, Ordering::Relaxed));
                }
            });
            assert_eq!(block.get().unwrap()[5].load(Ordering::Relaxed), 4);
        }
    }
}

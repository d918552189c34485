//! Structures that begin with their own size, so that they can grow: a host that was built against an older header passes a
//! shorter one, and one built against a newer header a longer one, whose new fields are zero if it does not use them.

use std::mem::MaybeUninit;
use std::ptr;

/// A structure whose first field is its size in bytes.
///
/// # Safety
/// `repr(C)`, the first field is a `usize`, and zeros are a valid value of each other field, as are all bits that a C host
/// writes to fields of their types.
pub(crate) unsafe trait Growing: Copy {
    /// The size of the first version.
    const FIRST: usize;
}

/// Reads what `given` points to. `None` if it is null, too short, or uses fields that are not known here.
///
/// # Safety
/// `given` is null, or points to a structure of this kind with a true size.
#[inline]
pub(crate) unsafe fn read<T: Growing>(given: *const T) -> Option<T> {
    if given.is_null() || !given.is_aligned() {
        return None;
    }
    // SAFETY: the size comes first.
    let size = unsafe { given.cast::<usize>().read() };
    if size == size_of::<T>() {
        // SAFETY: as long as this one.
        return Some(unsafe { given.read() });
    }
    // SAFETY: passed on to the caller.
    unsafe { read_other(given, size) }
}

#[cold]
unsafe fn read_other<T: Growing>(given: *const T, size: usize) -> Option<T> {
    if size < T::FIRST {
        return None;
    }
    let known = size.min(size_of::<T>());
    // SAFETY: the caller says that so many bytes are there.
    let unknown = unsafe { std::slice::from_raw_parts(given.cast::<u8>().add(known), size - known) };
    if unknown.iter().any(|byte| *byte != 0) {
        return None;
    }
    let mut read = MaybeUninit::<T>::zeroed();
    // SAFETY: both have that many bytes, and what is left is zeros, which `Growing` allows.
    unsafe {
        ptr::copy_nonoverlapping(given.cast::<u8>(), read.as_mut_ptr().cast::<u8>(), known);
        Some(read.assume_init())
    }
}

/// Writes as much of `value` as there is room for, but for the size. Whether `out` is such a structure.
///
/// # Safety
/// As for [`read`].
pub(crate) unsafe fn write<T: Growing>(out: *mut T, value: &T) -> bool {
    if out.is_null() || !out.is_aligned() {
        return false;
    }
    // SAFETY: the size comes first.
    let size = unsafe { out.cast::<usize>().read() };
    if size < T::FIRST {
        return false;
    }
    let (start, known) = (size_of::<usize>(), size.min(size_of::<T>()));
    // SAFETY: both have that many bytes; fields beyond are the caller's to clear.
    unsafe {
        let from = ptr::from_ref(value).cast::<u8>().add(start);
        ptr::copy_nonoverlapping(from, out.cast::<u8>().add(start), known - start);
        ptr::write_bytes(out.cast::<u8>().add(known), 0, size - known);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Grown {
        size: usize,
        first: u64,
        second: u64,
    }

    // SAFETY: numbers, the size first.
    unsafe impl Growing for Grown {
        const FIRST: usize = 16;
    }

    #[repr(C)]
    struct Newer {
        grown: Grown,
        third: u64,
    }

    fn newer(size: usize, third: u64) -> Newer {
        Newer { grown: Grown { size, first: 1, second: 2 }, third }
    }

    #[test]
    fn shorter_ones_lack_fields_and_longer_ones_may_not_use_theirs() {
        let read = |size, third| {
            let given = newer(size, third);
            // SAFETY: each size is at most that of the structure.
            unsafe { read(&raw const given.grown) }.map(|read| (read.first, read.second))
        };
        assert_eq!(read(24, 9), Some((1, 2)));
        assert_eq!(read(16, 9), Some((1, 0)));
        assert_eq!(read(32, 0), Some((1, 2)));
        for (size, third) in [(32, 9), (15, 0), (0, 0)] {
            assert_eq!(read(size, third), None, "{size} {third}");
        }
        // SAFETY: null is allowed.
        assert_eq!(unsafe { super::read(ptr::null::<Grown>()) }, None);
    }

    #[test]
    fn no_more_is_written_than_there_is_room_for() {
        let value = Grown { size: 0, first: 5, second: 6 };
        for (size, expected) in [(16, (5, 2, 9)), (24, (5, 6, 9)), (32, (5, 6, 0)), (8, (1, 2, 9))] {
            let mut out = newer(size, 9);
            // SAFETY: a structure of at least that size.
            assert_eq!(unsafe { write(&raw mut out.grown, &value) }, size >= 16);
            assert_eq!((out.grown.first, out.grown.second, out.third), expected);
            assert_eq!(out.grown.size, size);
        }
    }
}

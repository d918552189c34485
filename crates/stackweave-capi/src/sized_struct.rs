//! Structs that begin with their own size, so that later versions can add fields. A host that was built with an older header
//! passes a shorter struct. One that was built with a newer header passes a longer struct, whose new fields must be zero.

use std::mem::MaybeUninit;
use std::ptr;

/// A struct whose first field is its size in bytes.
///
/// # Safety
/// The struct is `repr(C)`, and its first field is a `usize`. Zeros, and all bits that a C host writes to a field of that type,
/// are valid for each other field.
pub(crate) unsafe trait SizedStruct: Copy {
    /// The size of the first version.
    const MIN_SIZE: usize;
}

/// Reads a struct of the host. Returns `None` if it is null, too short, or uses fields that this version does not know.
///
/// # Safety
/// `pointer` is null, or points to a struct of this type whose size is correct.
#[inline]
pub(crate) unsafe fn read<T: SizedStruct>(pointer: *const T) -> Option<T> {
    if pointer.is_null() || !pointer.is_aligned() {
        return None;
    }
    // SAFETY: the size comes first.
    let size = unsafe { pointer.cast::<usize>().read() };
    if size == size_of::<T>() {
        // SAFETY: it has the size of this version.
        return Some(unsafe { pointer.read() });
    }
    // SAFETY: guaranteed by the caller.
    unsafe { read_other(pointer, size) }
}

#[cold]
unsafe fn read_other<T: SizedStruct>(pointer: *const T, size: usize) -> Option<T> {
    if size < T::MIN_SIZE {
        return None;
    }
    let known = size.min(size_of::<T>());
    // SAFETY: the caller guarantees that the struct has `size` bytes.
    let unknown = unsafe { std::slice::from_raw_parts(pointer.cast::<u8>().add(known), size - known) };
    if unknown.iter().any(|byte| *byte != 0) {
        return None;
    }
    let mut read = MaybeUninit::<T>::zeroed();
    // SAFETY: both have `known` bytes; the other fields stay zero, which `SizedStruct` allows.
    unsafe {
        ptr::copy_nonoverlapping(pointer.cast::<u8>(), read.as_mut_ptr().cast::<u8>(), known);
        Some(read.assume_init())
    }
}

/// Writes the fields of `value` that the host's struct has, except the size. Returns whether `out` is valid.
///
/// # Safety
/// As for [`read`].
pub(crate) unsafe fn write<T: SizedStruct>(out: *mut T, value: &T) -> bool {
    if out.is_null() || !out.is_aligned() {
        return false;
    }
    // SAFETY: the size comes first.
    let size = unsafe { out.cast::<usize>().read() };
    if size < T::MIN_SIZE {
        return false;
    }
    let (start, known) = (size_of::<usize>(), size.min(size_of::<T>()));
    // SAFETY: both have `known` bytes, and `out` has `size` bytes.
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
    struct Current {
        size: usize,
        first: u64,
        second: u64,
    }

    // SAFETY: the struct has only numbers, and the size comes first.
    unsafe impl SizedStruct for Current {
        const MIN_SIZE: usize = 16;
    }

    #[repr(C)]
    struct Newer {
        current: Current,
        third: u64,
    }

    fn newer(size: usize, third: u64) -> Newer {
        Newer { current: Current { size, first: 1, second: 2 }, third }
    }

    #[test]
    fn missing_fields_are_zero_and_unknown_fields_are_rejected() {
        let read = |size, third| {
            let pointer = newer(size, third);
            // SAFETY: each size is at most the true size.
            unsafe { read(&raw const pointer.current) }.map(|read| (read.first, read.second))
        };
        assert_eq!(read(24, 9), Some((1, 2)));
        assert_eq!(read(16, 9), Some((1, 0)));
        assert_eq!(read(32, 0), Some((1, 2)));
        for (size, third) in [(32, 9), (15, 0), (0, 0)] {
            assert_eq!(read(size, third), None, "{size} {third}");
        }
        // SAFETY: null is allowed.
        assert_eq!(unsafe { super::read(ptr::null::<Current>()) }, None);
    }

    #[test]
    fn writes_stay_within_the_size_of_the_host() {
        let value = Current { size: 0, first: 5, second: 6 };
        for (size, expected) in [(16, (5, 2, 9)), (24, (5, 6, 9)), (32, (5, 6, 0)), (8, (1, 2, 9))] {
            let mut out = newer(size, 9);
            // SAFETY: the struct has at least that size.
            assert_eq!(unsafe { write(&raw mut out.current, &value) }, size >= 16);
            assert_eq!((out.current.first, out.current.second, out.third), expected);
            assert_eq!(out.current.size, size);
        }
    }
}

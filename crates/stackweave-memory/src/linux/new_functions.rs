//! The hooks of C++'s `operator new` and `operator delete`, for allocators whose operators do not call `malloc`.
//!
//! An exception of the original passes through, and ends the event.

use std::ffi::c_void;

use stackweave_recording::events::Allocator;

use super::hook_wrappers::{record_allocation_by_another, record_free_by_another};
use super::originals;

type Pointer = *mut c_void;

/// Defines hooks of functions that allocate `size` bytes, with any further arguments.
macro_rules! allocating {
    ($($name:ident($($more:ident: $of:ty),*);)*) => {
        $(
            pub(crate) unsafe extern "C-unwind" fn $name(size: usize, $($more: $of),*) -> Pointer {
                // SAFETY: passed on to the caller.
                record_allocation_by_another(Allocator::OperatorNew, size, || unsafe { originals::$name(size, $($more),*) })
            }
        )*
    };
}

/// Defines hooks of functions that free a block, with any further arguments.
macro_rules! freeing {
    ($($name:ident($($more:ident: $of:ty),*);)*) => {
        $(
            pub(crate) unsafe extern "C-unwind" fn $name(block: Pointer, $($more: $of),*) {
                // SAFETY: passed on to the caller.
                record_free_by_another(block, || unsafe { originals::$name(block, $($more),*) });
            }
        )*
    };
}

allocating! {
    new();
    new_array();
    new_nothrow(tag: Pointer);
    new_array_nothrow(tag: Pointer);
    new_aligned(alignment: usize);
    new_array_aligned(alignment: usize);
    new_aligned_nothrow(alignment: usize, tag: Pointer);
    new_array_aligned_nothrow(alignment: usize, tag: Pointer);
}

freeing! {
    delete();
    delete_array();
    delete_sized(size: usize);
    delete_array_sized(size: usize);
    delete_nothrow(tag: Pointer);
    delete_array_nothrow(tag: Pointer);
    delete_aligned(alignment: usize);
    delete_array_aligned(alignment: usize);
    delete_sized_aligned(size: usize, alignment: usize);
    delete_array_sized_aligned(size: usize, alignment: usize);
    delete_aligned_nothrow(alignment: usize, tag: Pointer);
    delete_array_aligned_nothrow(alignment: usize, tag: Pointer);
}

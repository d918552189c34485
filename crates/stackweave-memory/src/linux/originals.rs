//! The original functions of the hooks.
//!
//! Hot file: one load for each call.

use std::ffi::{c_int, c_void};
use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};

type Pointer = *mut c_void;

/// Defines a static of addresses, and for each address a function that calls it.
macro_rules! originals {
    ($($abi:literal fn $name:ident($($argument:ident: $of:ty),*) $(-> $result:ty)?;)*) => {
        /// The address of each original function, once its hook is installed.
        #[derive(Debug)]
        #[repr(C, align(64))]
        pub(crate) struct Originals {
            $(pub(crate) $name: AtomicUsize,)*
        }

        pub(crate) static ORIGINALS: Originals = Originals { $($name: AtomicUsize::new(0),)* };

        $(
            /// # Safety
            /// As for the function itself; its address must be known, which is so in its hook.
            #[inline(always)]
            pub(crate) unsafe extern $abi fn $name($($argument: $of),*) $(-> $result)? {
                let address = ORIGINALS.$name.load(Ordering::Relaxed);
                // SAFETY: the address of the function of this name, which has this type; the caller vouches for the
                // rest.
                unsafe {
                    mem::transmute::<usize, unsafe extern $abi fn($($of),*) $(-> $result)?>(address)($($argument),*)
                }
            }
        )*
    };
}

originals! {
    "C" fn malloc(size: usize) -> Pointer;
    "C" fn free(block: Pointer);
    "C" fn calloc(count: usize, size: usize) -> Pointer;
    "C" fn realloc(block: Pointer, size: usize) -> Pointer;
    "C" fn reallocarray(block: Pointer, count: usize, size: usize) -> Pointer;
    "C" fn posix_memalign(block: *mut Pointer, alignment: usize, size: usize) -> c_int;
    "C" fn aligned_alloc(alignment: usize, size: usize) -> Pointer;
    "C" fn memalign(alignment: usize, size: usize) -> Pointer;
    "C" fn valloc(size: usize) -> Pointer;
    "C" fn pvalloc(size: usize) -> Pointer;
    "C" fn cfree(block: Pointer);
    "C" fn mmap(at: Pointer, size: usize, protection: c_int, flags: c_int, file: c_int, offset: i64) -> Pointer;
    "C" fn mmap64(at: Pointer, size: usize, protection: c_int, flags: c_int, file: c_int, offset: i64) -> Pointer;
    "C" fn munmap(at: Pointer, size: usize) -> c_int;
    "C" fn mremap(at: Pointer, size: usize, new_size: usize, flags: c_int, new_at: Pointer) -> Pointer;
    "C-unwind" fn new(size: usize) -> Pointer;
    "C-unwind" fn new_array(size: usize) -> Pointer;
    "C-unwind" fn new_nothrow(size: usize, tag: Pointer) -> Pointer;
    "C-unwind" fn new_array_nothrow(size: usize, tag: Pointer) -> Pointer;
    "C-unwind" fn new_aligned(size: usize, alignment: usize) -> Pointer;
    "C-unwind" fn new_array_aligned(size: usize, alignment: usize) -> Pointer;
    "C-unwind" fn new_aligned_nothrow(size: usize, alignment: usize, tag: Pointer) -> Pointer;
    "C-unwind" fn new_array_aligned_nothrow(size: usize, alignment: usize, tag: Pointer) -> Pointer;
    "C-unwind" fn delete(block: Pointer);
    "C-unwind" fn delete_array(block: Pointer);
    "C-unwind" fn delete_sized(block: Pointer, size: usize);
    "C-unwind" fn delete_array_sized(block: Pointer, size: usize);
    "C-unwind" fn delete_nothrow(block: Pointer, tag: Pointer);
    "C-unwind" fn delete_array_nothrow(block: Pointer, tag: Pointer);
    "C-unwind" fn delete_aligned(block: Pointer, alignment: usize);
    "C-unwind" fn delete_array_aligned(block: Pointer, alignment: usize);
    "C-unwind" fn delete_sized_aligned(block: Pointer, size: usize, alignment: usize);
    "C-unwind" fn delete_array_sized_aligned(block: Pointer, size: usize, alignment: usize);
    "C-unwind" fn delete_aligned_nothrow(block: Pointer, alignment: usize, tag: Pointer);
    "C-unwind" fn delete_array_aligned_nothrow(block: Pointer, alignment: usize, tag: Pointer);
}

//! C++ operators of an allocator library: one that throws, and one that calls `malloc`.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::ptr;
use std::sync::atomic::Ordering;

use super::recorded::{about, plain, record, sized};
use crate::MemoryOptions;
use crate::platform::hooks;

unsafe extern "C-unwind" fn throwing_new(_: usize) -> *mut c_void {
    panic_any("no memory")
}

/// Calls a hook, as a library does whose own calls are hooked.
unsafe extern "C-unwind" fn new_by_malloc(size: usize, alignment: usize) -> *mut c_void {
    // SAFETY: as the function is meant to be called.
    unsafe { hooks::memalign(alignment, size) }
}

unsafe extern "C-unwind" fn delete_by_free(block: *mut c_void, _: usize, _: usize) {
    // SAFETY: passed on to the caller.
    unsafe { hooks::free(block) };
}

#[test]
fn a_block_is_recorded_once_and_an_exception_ends_the_event() {
    let mut blocks = [0; 2];
    hooks::ORIGINALS.new.store(throwing_new as *const () as usize, Ordering::SeqCst);
    let options = MemoryOptions { depth: 0, ..MemoryOptions::default() };
    // SAFETY: as these functions are meant to be called.
    let seen = record(options, |_| unsafe {
        hooks::ORIGINALS.new.store(throwing_new as *const () as usize, Ordering::SeqCst);
        hooks::ORIGINALS.new_aligned.store(new_by_malloc as *const () as usize, Ordering::SeqCst);
        hooks::ORIGINALS.delete_sized_aligned.store(delete_by_free as *const () as usize, Ordering::SeqCst);
        let thrown = catch_unwind(AssertUnwindSafe(|| hooks::new(1 << 20))).unwrap_err();
        assert_eq!(thrown.downcast_ref(), Some(&"no memory"));
        let block = hooks::new_aligned(900, 64);
        hooks::delete_sized_aligned(block, 900, 64);
        hooks::delete_sized_aligned(ptr::null_mut(), 0, 64);
        let last = hooks::malloc(901);
        hooks::free(last);
        blocks = [block.addr(), last.addr()];
    });
    let [block, last] = blocks;
    let expected =
        [sized("operator new", block, 900), plain("free", block), sized("malloc", last, 901), plain("free", last)];
    assert_eq!(about(&seen, &blocks), expected);
}

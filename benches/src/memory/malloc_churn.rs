//! Blocks that C allocates and frees, for the script `programs.py`, which loads this library into Python.

use std::ffi::c_uint;

unsafe extern "C" {
    fn stackweave_bench_c_malloc_churn(pairs: u64, threads: c_uint);
}

/// So many pairs of `malloc` and `free` on each of so many threads.
#[unsafe(no_mangle)]
extern "C" fn stackweave_bench_malloc_churn(pairs: u64, threads: c_uint) {
    // SAFETY: it takes any numbers, and uses nothing but memory of its own.
    unsafe { stackweave_bench_c_malloc_churn(pairs, threads) };
}

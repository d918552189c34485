//! A C loop that allocates and frees blocks, for the script `programs.py`, which loads this library into Python.

use std::ffi::c_uint;

unsafe extern "C" {
    fn stackweave_bench_c_malloc_churn(pairs: u64, threads: c_uint);
}

/// Makes `pairs` pairs of `malloc` and `free` on each of `threads` threads.
#[unsafe(no_mangle)]
extern "C" fn stackweave_bench_malloc_churn(pairs: u64, threads: c_uint) {
    // SAFETY: the function accepts any numbers, and uses only memory that it allocates.
    unsafe { stackweave_bench_c_malloc_churn(pairs, threads) };
}

//! The way down: Rust calls C, C calls `qsort`, `qsort` calls C, C calls Rust.

use core::ffi::{c_int, c_void};

unsafe extern "C" {
    fn sort_in_c(values: *mut c_int, count: usize, visitor: extern "C" fn(*mut c_void), context: *mut c_void);
}

type Visit<'a> = &'a mut dyn FnMut();

/// Sorts `values` with C's `qsort` and calls `visit` at each comparison, from deep inside.
///
/// A panic of `visit` ends the process: it can't pass through C.
#[inline(never)]
pub fn sort_through_c(values: &mut [c_int], mut visit: Visit<'_>) {
    let context = (&raw mut visit).cast();
    // SAFETY: pointer and count are those of one slice of ints, and `context` points to the live `Visit` that
    // `back_in_rust` takes it for; C keeps neither after it returns.
    unsafe { sort_in_c(values.as_mut_ptr(), values.len(), back_in_rust, context) };
}

extern "C" fn back_in_rust(context: *mut c_void) {
    // SAFETY: `context` is what `sort_through_c` passed down: a pointer to a `Visit` that outlives the sort and that
    // nothing else uses meanwhile.
    let visit = unsafe { &mut *context.cast::<Visit<'_>>() };
    visit();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorts_and_visits_at_each_comparison() {
        let mut values = [3, 1, 2];
        let mut visits = 0;
        sort_through_c(&mut values, &mut || visits += 1);
        assert_eq!(values, [1, 2, 3]);
        assert!(visits >= 2);
    }
}

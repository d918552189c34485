//! A value per process: a forked child creates its own.
//!
//! Another thread may have held a lock of the parent's value at the fork, which no thread in the child would ever
//! release. So nothing here blocks: concurrent threads may each create a value, and all use the one that was
//! first.

use std::fmt;
use std::process;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A value per process, for a `static`. A value is never dropped once it was used: a child keeps its parent's
/// value untouched.
pub struct PerProcess<T> {
    current: AtomicPtr<ProcessValue<T>>,
}

struct ProcessValue<T> {
    process: u32,
    value: T,
}

impl<T: Send + Sync> PerProcess<T> {
    /// Creates an empty cell.
    pub const fn new() -> Self {
        Self { current: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Returns the value of this process, and creates it if there is none. `make` gets the process id.
    pub fn get_or_try_make<E>(&'static self, make: impl FnOnce(u32) -> Result<T, E>) -> Result<&'static T, E> {
        let process = process::id();
        let known = self.current.load(Ordering::Acquire);
        // SAFETY: null, or leaked below and never changed.
        if let Some(known) = unsafe { known.as_ref() }
            && known.process == process
        {
            return Ok(&known.value);
        }
        let own = Box::into_raw(Box::new(ProcessValue { process, value: make(process)? }));
        Ok(match self.current.compare_exchange(known, own, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: leaked just now.
            Ok(_) => unsafe { &(*own).value },
            Err(first) => {
                // SAFETY: this value was never shared.
                drop(unsafe { Box::from_raw(own) });
                // SAFETY: leaked by another thread of this process, because only those run here.
                unsafe { &(*first).value }
            }
        })
    }
}

impl<T: Send + Sync> Default for PerProcess<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for PerProcess<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PerProcess").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::thread;

    #[test]
    fn all_threads_of_a_process_get_one_value() {
        static VALUE: PerProcess<u32> = PerProcess::new();
        let get = || VALUE.get_or_try_make(Ok::<u32, ()>).unwrap();
        let threads: Vec<_> = (0..8).map(|_| thread::spawn(move || ptr::from_ref(get()).addr())).collect();
        let places: HashSet<usize> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert_eq!(places.len(), 1);
        assert_eq!(*get(), process::id());
    }

    #[test]
    fn a_failure_stores_no_value() {
        static VALUE: PerProcess<u32> = PerProcess::new();
        assert_eq!(VALUE.get_or_try_make(|_| Err("not yet")), Err("not yet"));
        assert_eq!(VALUE.get_or_try_make(|_| Ok::<u32, &str>(7)), Ok(&7));
    }
}

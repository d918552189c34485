//! A value for each process: a forked child makes its own.
//!
//! Of what a parent had, another thread may have held a lock at the fork, which nobody in the child will ever give back.
//! So nothing here waits: threads that come at once may each make a value, and all use the one that was first.

use std::fmt;
use std::process;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Made to be a `static`. A value that was used is never dropped: a child keeps its parent's, untouched.
pub struct PerProcess<T> {
    current: AtomicPtr<Made<T>>,
}

struct Made<T> {
    process: u32,
    value: T,
}

impl<T: Send + Sync> PerProcess<T> {
    /// Without a value.
    pub const fn new() -> Self {
        Self { current: AtomicPtr::new(ptr::null_mut()) }
    }

    /// The value of this process, made now if it has none. `make` gets the number of the process.
    pub fn get_or_try_make<E>(&'static self, make: impl FnOnce(u32) -> Result<T, E>) -> Result<&'static T, E> {
        let process = process::id();
        let known = self.current.load(Ordering::Acquire);
        // SAFETY: null, or leaked below and never changed.
        if let Some(known) = unsafe { known.as_ref() }
            && known.process == process
        {
            return Ok(&known.value);
        }
        let own = Box::into_raw(Box::new(Made { process, value: make(process)? }));
        Ok(match self.current.compare_exchange(known, own, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: leaked just now.
            Ok(_) => unsafe { &(*own).value },
            Err(first) => {
                // SAFETY: never shared.
                drop(unsafe { Box::from_raw(own) });
                // SAFETY: leaked by another thread of this process, since only those run here.
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
    fn a_failure_makes_nothing() {
        static VALUE: PerProcess<u32> = PerProcess::new();
        assert_eq!(VALUE.get_or_try_make(|_| Err("not yet")), Err("not yet"));
        assert_eq!(VALUE.get_or_try_make(|_| Ok::<u32, &str>(7)), Ok(&7));
    }
}

//! Memory from the kernel. Loom's atomics cannot be created from zeros, so it contains values from the start.

use crate::atomic::AtomicU64;

/// The value that zeros represent in the kernel's memory.
pub(crate) trait Zero {
    fn zero() -> Self;
}

impl<T: Zero, const N: usize> Zero for [T; N] {
    fn zero() -> Self {
        std::array::from_fn(|_| T::zero())
    }
}

/// Implements [`Zero`] for a type whose default is zero.
macro_rules! zero {
    ($name:ty) => {
        impl crate::new_memory::Zero for $name {
            fn zero() -> Self {
                Self::default()
            }
        }
    };
}
pub(crate) use zero;

zero!(AtomicU64);

/// Values that are all zero.
#[derive(Debug)]
pub(crate) struct NewMemory<T>(Box<[T]>);

impl<T: Zero> NewMemory<T> {
    pub(crate) fn new(length: usize) -> Self {
        Self((0..length).map(|_| T::zero()).collect())
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut T {
        self.0.as_mut_ptr()
    }
}

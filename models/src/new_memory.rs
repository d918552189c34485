//! Memory as the kernel gives it. Loom's atomics can't be made of zeros, so it holds values from the start.

use crate::atomic::AtomicU64;

/// What zeros make in the kernel's memory.
pub(crate) trait Zero {
    fn zero() -> Self;
}

impl<T: Zero, const N: usize> Zero for [T; N] {
    fn zero() -> Self {
        std::array::from_fn(|_| T::zero())
    }
}

/// Of a type whose default is zero.
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

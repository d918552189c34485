//! A value together with what it borrows from.

use std::fmt;
use std::mem::ManuallyDrop;

/// A type with a lifetime, as a name for all its lifetimes: `Of<'a>` is the type itself.
pub trait Family {
    /// The type for the lifetime `'a`.
    type Of<'a>;
}

/// An owner in its place, and a value that borrows from it.
///
/// The value is only lent for any lifetime whatever, so that nothing of it can be kept outside.
pub struct Held<O, F: Family> {
    /// Borrows from `*owner`, so it is dropped first. Its lifetime is a stand-in.
    value: ManuallyDrop<F::Of<'static>>,
    /// From `Box::into_raw`: not a `Box`, whose moving would claim that nobody else looks at it.
    owner: *mut O,
}

impl<O: 'static, F: Family> Held<O, F> {
    /// Puts `owner` in its place and makes a value that borrows from it.
    pub fn new<E>(owner: O, build: impl for<'a> FnOnce(&'a O) -> Result<F::Of<'a>, E>) -> Result<Self, E> {
        /// Frees the owner if `build` fails or panics.
        struct Guard<O>(*mut O);
        impl<O> Drop for Guard<O> {
            fn drop(&mut self) {
                // SAFETY: from `Box::into_raw`, and not freed yet.
                drop(unsafe { Box::from_raw(self.0) });
            }
        }
        let guard = Guard(Box::into_raw(Box::new(owner)));
        // SAFETY: the owner is alive and stays in its place until `drop` below, which drops the value
        // first. `build` works for every lifetime, so it can't have kept the reference elsewhere.
        let value = build(unsafe { &*guard.0 })?;
        let owner = ManuallyDrop::new(guard).0;
        Ok(Self { value: ManuallyDrop::new(value), owner })
    }

    /// Lends the value.
    pub fn with<R>(&self, look: impl for<'a> FnOnce(&'a F::Of<'a>) -> R) -> R {
        let value: *const F::Of<'static> = &raw const *self.value;
        // SAFETY: the same type but for its lifetime; the value lives as long as `self`, and `look` works for
        // every lifetime, so it can neither keep anything of it nor put anything shorter-lived into it.
        look(unsafe { &*value.cast() })
    }

    /// The owner.
    pub fn owner(&self) -> &O {
        // SAFETY: alive until `drop`, and only ever shared.
        unsafe { &*self.owner }
    }
}

impl<O, F: Family> Drop for Held<O, F> {
    fn drop(&mut self) {
        // SAFETY: dropped once, and before the owner.
        unsafe { ManuallyDrop::drop(&mut self.value) };
        // SAFETY: from `Box::into_raw` in `new`, and nothing borrows from it any more.
        drop(unsafe { Box::from_raw(self.owner) });
    }
}

// SAFETY: sending it sends the owner and the value together. If the value holds a reference to the owner, it is
// only `Send` if the owner is `Sync`.
unsafe impl<O: Send, F: Family> Send for Held<O, F> where F::Of<'static>: Send {}
// SAFETY: sharing it shares the owner and the value, nothing else.
unsafe impl<O: Sync, F: Family> Sync for Held<O, F> where F::Of<'static>: Sync {}

impl<O: fmt::Debug + 'static, F: Family> fmt::Debug for Held<O, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("owner", self.owner()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Words;
    impl Family for Words {
        type Of<'a> = Vec<&'a str>;
    }

    #[test]
    fn the_value_borrows_from_its_owner_wherever_it_goes() {
        let held =
            Held::<String, Words>::new("one two three".to_owned(), |text| Ok::<_, ()>(text.split(' ').collect()));
        let moved = Box::new(held.unwrap());
        assert_eq!(moved.with(|words| words.join("+")), "one+two+three");
        assert_eq!(moved.with(|words| words[2].to_owned()), "three");
        assert_eq!(moved.owner(), "one two three");
    }

    #[test]
    fn a_failed_build_gives_the_error_and_frees_the_owner() {
        let owner = std::rc::Rc::new("text".to_owned());
        let failed = Held::<_, Words>::new(std::rc::Rc::clone(&owner), |_| Err::<Vec<&str>, _>("no"));
        assert_eq!(failed.err(), Some("no"));
        assert_eq!(std::rc::Rc::strong_count(&owner), 1);
    }
}

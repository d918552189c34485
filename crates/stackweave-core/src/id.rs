//! Ids: small numbers for things that are stored once.
//!
//! No id is zero, so that an `Option` of one needs no extra memory. An id is valid only in the table that returned
//! it.

use core::num::NonZeroU32;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(NonZeroU32);

        impl $name {
            /// Returns the id with this number; `None` for 0.
            pub const fn new(number: u32) -> Option<Self> {
                match NonZeroU32::new(number) {
                    Some(number) => Some(Self(number)),
                    None => None,
                }
            }

            /// Returns its number.
            pub const fn get(self) -> u32 {
                self.0.get()
            }
        }
    };
}

id! {
    /// A stack: equal stacks have equal ids, independent of their threads.
    StackId
}

id! {
    /// A frame: a location in code, independent of its caller.
    FrameId
}

id! {
    /// A code object of an interpreter.
    CodeId
}

id! {
    /// A byte string: equal ones have equal ids.
    BlobId
}

impl StackId {
    /// The stack without frames, in every table.
    pub const EMPTY: Self = Self(NonZeroU32::MIN);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_optional_id_is_as_large_as_an_id() {
        assert_eq!([size_of::<StackId>(), size_of::<FrameId>(), size_of::<CodeId>(), size_of::<BlobId>()], [4; 4]);
        assert_eq!([size_of::<Option<StackId>>(), size_of::<Option<FrameId>>()], [4; 2]);
        assert_eq!([size_of::<Option<CodeId>>(), size_of::<Option<BlobId>>()], [4; 2]);
    }

    #[test]
    fn an_id_returns_its_number_and_zero_is_no_id() {
        assert_eq!(StackId::new(7).map(StackId::get), Some(7));
        assert_eq!(FrameId::new(u32::MAX).map(FrameId::get), Some(u32::MAX));
        assert_eq!(CodeId::new(0), None);
        assert_eq!(StackId::EMPTY.get(), 1);
    }
}

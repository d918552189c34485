//! Ids: small numbers that stand for what is kept once.
//!
//! None is zero, so that an `Option` of one costs nothing. An id means something only to the table that gave it.

use core::num::NonZeroU32;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(NonZeroU32);

        impl $name {
            /// The id with this number; `None` for 0.
            pub const fn new(number: u32) -> Option<Self> {
                match NonZeroU32::new(number) {
                    Some(number) => Some(Self(number)),
                    None => None,
                }
            }

            /// Its number.
            pub const fn get(self) -> u32 {
                self.0.get()
            }
        }
    };
}

id! {
    /// A stack: equal stacks have equal ids, whichever thread they were captured on.
    StackId
}

id! {
    /// A frame: a place in code, whoever called it.
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
    fn an_optional_id_costs_no_more_than_an_id() {
        assert_eq!([size_of::<StackId>(), size_of::<FrameId>(), size_of::<CodeId>(), size_of::<BlobId>()], [4; 4]);
        assert_eq!([size_of::<Option<StackId>>(), size_of::<Option<FrameId>>()], [4; 2]);
        assert_eq!([size_of::<Option<CodeId>>(), size_of::<Option<BlobId>>()], [4; 2]);
    }

    #[test]
    fn a_number_comes_back_and_zero_is_none() {
        assert_eq!(StackId::new(7).map(StackId::get), Some(7));
        assert_eq!(FrameId::new(u32::MAX).map(FrameId::get), Some(u32::MAX));
        assert_eq!(CodeId::new(0), None);
        assert_eq!(StackId::EMPTY.get(), 1);
    }
}

//! What differs between processors: the numbers of relocations, and how a hook makes way for the original. One file per
//! architecture, with the same items in each.

mod x86_64;

pub(super) use x86_64::*;

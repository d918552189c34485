//! Differences between processors: the numbers of relocations, and how a hook passes control to its original. One file
//! for each architecture, with the same items.

mod x86_64;

pub(super) use x86_64::*;

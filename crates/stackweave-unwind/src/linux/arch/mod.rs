//! What differs between processors: how a capture begins, which registers it starts from, and their
//! DWARF numbers. One file per architecture, with the same items in each.

mod x86_64;

pub(crate) use x86_64::*;

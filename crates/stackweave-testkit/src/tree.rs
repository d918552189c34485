//! The call tree fixture: a stack for any path, and its true return addresses.

use std::ffi::c_ulong;

use stackweave_unwind::CodeAddress;

use crate::fixtures::{RawTree, call_through, sw_tree_keep, sw_tree_omit};

/// The build of the fixture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FramePointers {
    /// `-fomit-frame-pointer`.
    Omitted,
    /// `-fno-omit-frame-pointer`.
    Kept,
}

/// Number of functions that a path can choose from; the first [`EQUAL_FUNCTIONS`] have equal frames.
pub const FUNCTIONS: u8 = 16;
/// Number of functions with frames of one size and shape.
pub const EQUAL_FUNCTIONS: u8 = 4;
/// Flag in a step of a path: call back on the way down, too.
pub const CALL_ON_WAY_DOWN: u8 = 0x40;
/// Flag in a step of a path: call back on the way up, too.
pub const CALL_ON_WAY_UP: u8 = 0x80;

/// Walks the path and calls `check` at its end, and where its steps request it, with the true return addresses on
/// the stack at that moment, outermost first.
///
/// `check` runs one frame of the fixture and one of Rust below the last of them.
pub fn walk(build: FramePointers, path: &[u8], check: &mut dyn FnMut(&[u64])) {
    let mut return_addresses = vec![0_u64; path.len()];
    let mut tree = RawTree {
        path: path.as_ptr(),
        length: path.len() as c_ulong,
        depth: 0,
        return_addresses: return_addresses.as_mut_ptr(),
        callback: ignore,
        data: std::ptr::null_mut(),
    };
    let tree: *mut RawTree = &raw mut tree;
    let mut action = || {
        // SAFETY: the fixture has written the first `depth` words, and waits for this call to return.
        let known = unsafe { std::slice::from_raw_parts((*tree).return_addresses, (*tree).depth as usize) };
        check(known);
    };
    call_through(&mut action, |callback, data| {
        // SAFETY: `tree` describes a path and enough words for its addresses; the callback gets its own data.
        unsafe {
            (*tree).callback = callback;
            (*tree).data = data;
            match build {
                FramePointers::Omitted => sw_tree_omit(tree),
                FramePointers::Kept => sw_tree_keep(tree),
            }
        }
    });
}

extern "C" fn ignore(_: *mut std::ffi::c_void) {}

/// Returns where in `frames` the known return addresses are, innermost first and without a gap. Async-signal-safe.
pub fn find_known(frames: &[CodeAddress], known: &[u64]) -> Option<usize> {
    let innermost = *known.last()?;
    let at = frames.iter().position(|frame| frame.address() == innermost)?;
    let found = frames.get(at..at + known.len())?;
    found.iter().zip(known.iter().rev()).all(|(frame, known)| frame.address() == *known).then_some(at)
}

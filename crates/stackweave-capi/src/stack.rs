//! Stacks as C knows them: numbers.
//!
//! Hot file: no allocation, no lock, no GIL, async-signal-safe.

use stackweave_core::{RawFrameKind, StackId};

use crate::border::call_quietly;
use crate::frame::stackweave_kind;
use crate::status::stackweave_status::{
    self, STACKWEAVE_BAD_ARGUMENT, STACKWEAVE_BUFFER_TOO_SMALL, STACKWEAVE_OK, STACKWEAVE_UNKNOWN_STACK,
};
use crate::tag;

/// A captured stack: a number. Equal stacks have equal numbers, whichever thread they were captured on. It means
/// something in this process, and its forked children, and to this copy of the library.
///
/// All captured stacks share their frames in one table, which only grows: a stack that was captured a million
/// times is kept once. So a number may be copied, compared and forgotten as one likes.
pub type stackweave_stack = u64;

/// No stack.
pub const STACKWEAVE_NO_STACK: u64 = 0;

#[inline]
pub(crate) fn number(id: StackId) -> stackweave_stack {
    tag::put(id.get())
}

/// The id with this number, if it is one of a stack.
#[inline]
pub(crate) fn id(stack: stackweave_stack) -> Option<StackId> {
    let id = StackId::new(tag::take(stack)?)?;
    (id == StackId::EMPTY || stackweave_capture::stacks().parent(id).is_some()).then_some(id)
}

#[inline]
fn check(stack: stackweave_stack) -> stackweave_status {
    call_quietly(|| if id(stack).is_some() { STACKWEAVE_OK } else { STACKWEAVE_UNKNOWN_STACK })
}

/// For hosts that count references: says whether `stack` is one, and does nothing else.
///
/// There is nothing to count. No stack holds a reference to an object of an interpreter, and none is ever freed, so
/// none can be freed too early, twice, or with the wrong lock held. A few nanoseconds; may be called anywhere.
#[unsafe(no_mangle)]
pub extern "C" fn stackweave_retain(stack: stackweave_stack) -> stackweave_status {
    check(stack)
}

/// The counterpart of stackweave_retain; it does as little. Takes no lock and no GIL; may be called anywhere.
#[unsafe(no_mangle)]
pub extern "C" fn stackweave_release(stack: stackweave_stack) -> stackweave_status {
    check(stack)
}

/// How many frames a stack has, before calls that were inlined are told apart. May be called anywhere.
///
/// # Safety
/// `count` is null or can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stackweave_frame_count(stack: stackweave_stack, count: *mut u32) -> stackweave_status {
    call_quietly(|| {
        if count.is_null() {
            return STACKWEAVE_BAD_ARGUMENT;
        }
        let Some(id) = id(stack) else { return STACKWEAVE_UNKNOWN_STACK };
        // SAFETY: not null, and the caller vouches for it.
        unsafe { count.write(stackweave_capture::stacks().len(id)) };
        STACKWEAVE_OK
    })
}

/// A frame as it was captured, without names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct stackweave_raw_frame {
    /// The frame: equal words are the same place in code.
    pub word: u64,
    /// Native: the address the call returns to, or of the instruction that a signal interrupted. A source's: its word.
    /// Python: the offset of the instruction in its bytecode.
    pub place: u64,
    /// What it is a frame of.
    pub kind: stackweave_kind,
    /// Native: whether the address is that of the interrupted instruction.
    pub is_exact: bool,
}

/// Writes the frames of a stack as they were captured, innermost first, and their number to `count`. If there are more
/// than `capacity`, the innermost are written. `frames` may be null if `capacity` is 0. May be called anywhere.
///
/// # Safety
/// `frames` has room for `capacity` frames; `count` is null or can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stackweave_raw_frames(
    stack: stackweave_stack,
    frames: *mut stackweave_raw_frame,
    capacity: usize,
    count: *mut usize,
) -> stackweave_status {
    call_quietly(|| {
        if count.is_null() || (frames.is_null() && capacity != 0) {
            return STACKWEAVE_BAD_ARGUMENT;
        }
        let Some(id) = id(stack) else { return STACKWEAVE_UNKNOWN_STACK };
        let table = stackweave_capture::stacks();
        for (index, frame) in table.frames(id).take(capacity).enumerate() {
            let (kind, place, is_exact) = match frame.kind() {
                RawFrameKind::Native(address) => {
                    (stackweave_kind::STACKWEAVE_KIND_NATIVE, address.address(), address.is_exact())
                }
                RawFrameKind::Python { instruction, .. } => {
                    (stackweave_kind::STACKWEAVE_KIND_PYTHON, u64::from(instruction), false)
                }
                RawFrameKind::Script { word, .. } => (stackweave_kind::STACKWEAVE_KIND_SCRIPT, word, false),
                RawFrameKind::Label(label) => (stackweave_kind::STACKWEAVE_KIND_LABEL, label.get().into(), false),
            };
            let raw = stackweave_raw_frame { word: frame.to_bits(), place, kind, is_exact };
            // SAFETY: index < capacity, for which the caller vouches.
            unsafe { frames.add(index).write(raw) };
        }
        let len = table.len(id) as usize;
        // SAFETY: not null, and the caller vouches for it.
        unsafe { count.write(len) };
        if len > capacity { STACKWEAVE_BUFFER_TOO_SMALL } else { STACKWEAVE_OK }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_and_others_are_refused() {
        let captured = stackweave_capture::capture(&stackweave_capture::Request::default()).stack.unwrap();
        let stack = number(captured);
        assert_eq!(id(stack), Some(captured));
        assert_eq!(id(number(StackId::EMPTY)), Some(StackId::EMPTY));
        for foreign in [STACKWEAVE_NO_STACK, 1, u64::MAX, stack ^ 1 << 33, tag::put(0), tag::put(u32::MAX)] {
            assert_eq!(id(foreign), None, "{foreign:#x}");
            assert_eq!(stackweave_retain(foreign), STACKWEAVE_UNKNOWN_STACK);
            assert_eq!(stackweave_release(foreign), STACKWEAVE_UNKNOWN_STACK);
        }
    }
}

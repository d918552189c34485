//! Stacks in the C interface, where they are numbers.
//!
//! Hot file: no allocation, no lock, no GIL, async-signal-safe.

use stackweave_core::{RawFrameKind, StackId};

use crate::boundary::call_signal_safe;
use crate::frame::stackweave_frame_kind;
use crate::library_tag;
use crate::status::stackweave_status::{
    self, STACKWEAVE_BAD_ARGUMENT, STACKWEAVE_BUFFER_TOO_SMALL, STACKWEAVE_OK, STACKWEAVE_UNKNOWN_STACK,
};

/// The number of a captured stack. Equal stacks have equal numbers, on all threads. A number is valid in this process and
/// its forked children, for this copy of the library.
///
/// All captured stacks share their frames in one table, which only grows: a stack that was captured a million times is
/// stored once. So a number can be copied, compared and discarded freely.
pub type stackweave_stack = u64;

/// No stack.
pub const STACKWEAVE_NO_STACK: u64 = 0;

/// Returns the number of a stack.
#[inline]
pub(crate) fn number_of(id: StackId) -> stackweave_stack {
    library_tag::add(id.get())
}

/// Returns the id of the stack with this number.
#[inline]
pub(crate) fn id_of(stack: stackweave_stack) -> Option<StackId> {
    let id = StackId::new(library_tag::strip(stack)?)?;
    (id == StackId::EMPTY || stackweave_capture::stacks().parent(id).is_some()).then_some(id)
}

#[inline]
fn check(stack: stackweave_stack) -> stackweave_status {
    call_signal_safe(|| if id_of(stack).is_some() { STACKWEAVE_OK } else { STACKWEAVE_UNKNOWN_STACK })
}

/// Checks whether `stack` is a stack, and has no other effect. For hosts that count references.
///
/// Stacks need no reference counts: a stack holds no reference to an interpreter's object, and is never freed. So it can't be
/// freed too early, twice, or with the wrong lock held. Costs a few nanoseconds; may be called anywhere.
#[unsafe(no_mangle)]
pub extern "C" fn stackweave_retain(stack: stackweave_stack) -> stackweave_status {
    check(stack)
}

/// Checks the number, and has no other effect: the counterpart of stackweave_retain. Takes neither a lock nor the GIL;
/// may be called anywhere.
#[unsafe(no_mangle)]
pub extern "C" fn stackweave_release(stack: stackweave_stack) -> stackweave_status {
    check(stack)
}

/// Writes the number of frames of a stack, not counting inlined calls. May be called anywhere.
///
/// # Safety
/// `count` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stackweave_get_frame_count(stack: stackweave_stack, count: *mut u32) -> stackweave_status {
    call_signal_safe(|| {
        if count.is_null() {
            return STACKWEAVE_BAD_ARGUMENT;
        }
        let Some(id) = id_of(stack) else { return STACKWEAVE_UNKNOWN_STACK };
        // SAFETY: not null; the caller guarantees the rest.
        unsafe { count.write(stackweave_capture::stacks().len(id)) };
        STACKWEAVE_OK
    })
}

/// A captured frame, without names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct stackweave_raw_frame {
    /// Identifies the frame: equal words are the same position in code.
    pub word: u64,
    /// Native: the return address of the call, or the address of the instruction that a signal interrupted. Frame source: its
    /// word. Python: the offset of the instruction in the bytecode.
    pub position: u64,
    /// The kind of code.
    pub kind: stackweave_frame_kind,
    /// Native: whether the address is that of an interrupted instruction.
    pub is_exact: bool,
}

/// Writes the captured frames of a stack, innermost first, and their number to `count`. If the stack has more than `capacity`
/// frames, the innermost are written. `frames` may be null if `capacity` is 0. May be called anywhere.
///
/// # Safety
/// `frames` has room for `capacity` frames; `count` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stackweave_get_raw_frames(
    stack: stackweave_stack,
    frames: *mut stackweave_raw_frame,
    capacity: usize,
    count: *mut usize,
) -> stackweave_status {
    call_signal_safe(|| {
        if count.is_null() || (frames.is_null() && capacity != 0) {
            return STACKWEAVE_BAD_ARGUMENT;
        }
        let Some(id) = id_of(stack) else { return STACKWEAVE_UNKNOWN_STACK };
        let table = stackweave_capture::stacks();
        for (index, frame) in table.frames(id).take(capacity).enumerate() {
            let (kind, position, is_exact) = match frame.kind() {
                RawFrameKind::Native(address) => {
                    (stackweave_frame_kind::STACKWEAVE_FRAME_NATIVE, address.address(), address.is_exact())
                }
                RawFrameKind::Python { instruction, .. } => {
                    (stackweave_frame_kind::STACKWEAVE_FRAME_PYTHON, u64::from(instruction), false)
                }
                RawFrameKind::Script { word, .. } => (stackweave_frame_kind::STACKWEAVE_FRAME_SCRIPT, word, false),
                RawFrameKind::Label(label) => (stackweave_frame_kind::STACKWEAVE_FRAME_SPAN, label.get().into(), false),
            };
            let raw = stackweave_raw_frame { word: frame.to_bits(), position, kind, is_exact };
            // SAFETY: index < capacity, and the caller guarantees the capacity.
            unsafe { frames.add(index).write(raw) };
        }
        let len = table.len(id) as usize;
        // SAFETY: not null; the caller guarantees the rest.
        unsafe { count.write(len) };
        if len > capacity { STACKWEAVE_BUFFER_TOO_SMALL } else { STACKWEAVE_OK }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_convert_to_ids_and_foreign_numbers_are_rejected() {
        let captured = stackweave_capture::capture(&stackweave_capture::CaptureRequest::default()).stack.unwrap();
        let stack = number_of(captured);
        assert_eq!(id_of(stack), Some(captured));
        assert_eq!(id_of(number_of(StackId::EMPTY)), Some(StackId::EMPTY));
        for foreign in
            [STACKWEAVE_NO_STACK, 1, u64::MAX, stack ^ 1 << 33, library_tag::add(0), library_tag::add(u32::MAX)]
        {
            assert_eq!(id_of(foreign), None, "{foreign:#x}");
            assert_eq!(stackweave_retain(foreign), STACKWEAVE_UNKNOWN_STACK);
            assert_eq!(stackweave_release(foreign), STACKWEAVE_UNKNOWN_STACK);
        }
    }
}

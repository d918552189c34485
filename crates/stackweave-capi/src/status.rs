//! The status that each call returns.

use std::ffi::{CStr, c_char};

/// The result of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum stackweave_status {
    /// The call succeeded.
    STACKWEAVE_OK = 0,
    /// A null pointer, an unknown flag, or a structure whose size is wrong.
    STACKWEAVE_BAD_ARGUMENT = 1,
    /// This copy of the library has not captured this stack.
    STACKWEAVE_UNKNOWN_STACK = 2,
    /// The handle is not registered, or was removed.
    STACKWEAVE_UNKNOWN_HANDLE = 3,
    /// The system has no memory, or no number is left for a new stack.
    STACKWEAVE_NO_MEMORY = 4,
    /// No Python is initialized in this process, or it is not supported; the last error gives the reason.
    STACKWEAVE_NO_PYTHON = 5,
    /// The result does not fit into the buffer; its length was written.
    STACKWEAVE_BUFFER_TOO_SMALL = 6,
    /// The callback requested to stop.
    STACKWEAVE_STOPPED = 7,
    /// The call is not allowed in a callback, or while another thread makes it.
    STACKWEAVE_BUSY = 8,
    /// No more frame sources or code generators can be registered.
    STACKWEAVE_TOO_MANY = 9,
    /// An internal error of the library. The call may have been executed partially.
    STACKWEAVE_INTERNAL = 10,
    /// Dumps were not prepared, or the text could not be written. If possible, the dump's text gives the reason.
    STACKWEAVE_NO_DUMP = 11,
    /// There is no recording, it can't be started, or it could not be written completely; the last error gives the reason.
    STACKWEAVE_NO_RECORDING = 12,
}

use stackweave_status::{
    STACKWEAVE_BAD_ARGUMENT, STACKWEAVE_BUFFER_TOO_SMALL, STACKWEAVE_BUSY, STACKWEAVE_INTERNAL, STACKWEAVE_NO_DUMP,
    STACKWEAVE_NO_MEMORY, STACKWEAVE_NO_PYTHON, STACKWEAVE_NO_RECORDING, STACKWEAVE_OK, STACKWEAVE_STOPPED,
    STACKWEAVE_TOO_MANY, STACKWEAVE_UNKNOWN_HANDLE, STACKWEAVE_UNKNOWN_STACK,
};

/// Every status, in the order of their numbers.
const ALL: [stackweave_status; 13] = [
    STACKWEAVE_OK,
    STACKWEAVE_BAD_ARGUMENT,
    STACKWEAVE_UNKNOWN_STACK,
    STACKWEAVE_UNKNOWN_HANDLE,
    STACKWEAVE_NO_MEMORY,
    STACKWEAVE_NO_PYTHON,
    STACKWEAVE_BUFFER_TOO_SMALL,
    STACKWEAVE_STOPPED,
    STACKWEAVE_BUSY,
    STACKWEAVE_TOO_MANY,
    STACKWEAVE_INTERNAL,
    STACKWEAVE_NO_DUMP,
    STACKWEAVE_NO_RECORDING,
];

impl stackweave_status {
    pub(crate) const fn text(self) -> &'static CStr {
        match self {
            STACKWEAVE_OK => c"ok",
            STACKWEAVE_BAD_ARGUMENT => c"bad argument",
            STACKWEAVE_UNKNOWN_STACK => c"unknown stack",
            STACKWEAVE_UNKNOWN_HANDLE => c"unknown handle",
            STACKWEAVE_NO_MEMORY => c"no memory",
            STACKWEAVE_NO_PYTHON => c"no Python",
            STACKWEAVE_BUFFER_TOO_SMALL => c"buffer too small",
            STACKWEAVE_STOPPED => c"stopped by the callback",
            STACKWEAVE_BUSY => c"busy",
            STACKWEAVE_TOO_MANY => c"too many registrations",
            STACKWEAVE_INTERNAL => c"internal error",
            STACKWEAVE_NO_DUMP => c"no thread dump",
            STACKWEAVE_NO_RECORDING => c"no recording",
        }
    }
}

/// Returns a short description of a status, which is never freed. Any number is allowed. May be called anywhere.
#[unsafe(no_mangle)]
pub extern "C" fn stackweave_status_text(status: i32) -> *const c_char {
    let known = usize::try_from(status).ok().and_then(|number| ALL.get(number));
    known.map_or(c"unknown status", |status| status.text()).as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_its_text() {
        for (number, status) in (0..).zip(ALL) {
            assert_eq!(status as i32, number);
            // SAFETY: a static C string.
            assert_eq!(unsafe { CStr::from_ptr(stackweave_status_text(number)) }, status.text());
        }
        for number in [-1, 13, i32::MAX, i32::MIN] {
            // SAFETY: as above.
            assert_eq!(unsafe { CStr::from_ptr(stackweave_status_text(number)) }, c"unknown status");
        }
    }
}

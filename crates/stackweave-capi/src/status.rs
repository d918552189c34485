//! How a call went.

use std::ffi::{CStr, c_char};

/// How a call went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum stackweave_status {
    /// It did what it says.
    STACKWEAVE_OK = 0,
    /// A null pointer, an unknown flag, or a structure whose size is wrong.
    STACKWEAVE_BAD_ARGUMENT = 1,
    /// No stack that this copy of the library has captured.
    STACKWEAVE_UNKNOWN_STACK = 2,
    /// No handle of a source or of extra frames, or one that was removed.
    STACKWEAVE_UNKNOWN_HANDLE = 3,
    /// The system has no memory, or there is no number left for a new stack.
    STACKWEAVE_NO_MEMORY = 4,
    /// No Python is initialised in this process, or none that can be read; the last error says why.
    STACKWEAVE_NO_PYTHON = 5,
    /// The answer does not fit; its length was written.
    STACKWEAVE_BUFFER_TOO_SMALL = 6,
    /// The callback asked to stop.
    STACKWEAVE_STOPPED = 7,
    /// Not from inside a callback, or not while another thread does the same.
    STACKWEAVE_BUSY = 8,
    /// No more sources, or extra frames, can be registered.
    STACKWEAVE_TOO_MANY = 9,
    /// A fault of the library. The call has done nothing, or a part of what it says.
    STACKWEAVE_INTERNAL = 10,
    /// Dumps were not prepared, or the text could not be written. It says why itself, where it can.
    STACKWEAVE_NO_DUMP = 11,
    /// There is no recording, or it can't be begun, or not all of it could be written; the last error says why.
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
            STACKWEAVE_TOO_MANY => c"too many are registered",
            STACKWEAVE_INTERNAL => c"internal fault",
            STACKWEAVE_NO_DUMP => c"no dump of the threads",
            STACKWEAVE_NO_RECORDING => c"no recording",
        }
    }
}

/// A status in a few words, for ever. Any number is allowed. May be called anywhere.
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
            // SAFETY: a C string that lives for ever.
            assert_eq!(unsafe { CStr::from_ptr(stackweave_status_text(number)) }, status.text());
        }
        for number in [-1, 13, i32::MAX, i32::MIN] {
            // SAFETY: as above.
            assert_eq!(unsafe { CStr::from_ptr(stackweave_status_text(number)) }, c"unknown status");
        }
    }
}

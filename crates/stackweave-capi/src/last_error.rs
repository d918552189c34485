//! The message of the last call that failed on this thread.

use std::cell::RefCell;
use std::ffi::{CString, c_char};

thread_local! {
    /// Kept small, because the library's thread-local memory comes from the loader's small reserve.
    static TEXT: RefCell<CString> = RefCell::default();
}

/// Returns the message of the last call that failed on this thread, in UTF-8; an empty string if none has failed. It is
/// valid until the next call fails on this thread. Captures, stackweave_retain and stackweave_release don't set it, because
/// they may run in a signal handler.
#[unsafe(no_mangle)]
pub extern "C" fn stackweave_last_error() -> *const c_char {
    // The thread-local text is gone while the thread exits.
    TEXT.try_with(|text| text.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

pub(crate) fn set(text: &str) {
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    let _ = TEXT.try_with(|last| last.replace(text));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    fn last() -> String {
        // SAFETY: the buffer of this thread ends with a null byte.
        unsafe { CStr::from_ptr(stackweave_last_error()) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn a_message_is_kept_for_its_thread() {
        assert_eq!(last(), "");
        set("first");
        std::thread::spawn(|| assert_eq!(last(), "")).join().unwrap();
        set("a\0b");
        assert_eq!(last(), "a b");
    }
}

//! What the last call that failed on this thread had to say.

use std::cell::RefCell;
use std::ffi::{CString, c_char};

thread_local! {
    /// Small: the library's thread-local memory comes out of the loader's reserve.
    static TEXT: RefCell<CString> = RefCell::default();
}

/// What the last call that failed on this thread had to say, in UTF-8; empty if none has. Valid until the next call
/// on this thread that fails. Capturing, retaining and releasing say nothing here: they may run in a signal handler.
#[unsafe(no_mangle)]
pub extern "C" fn stackweave_last_error() -> *const c_char {
    // Gone when the thread is about to end.
    TEXT.try_with(|text| text.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

pub(crate) fn set(text: &str) {
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    let _ = TEXT.try_with(|place| place.replace(text));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    fn last() -> String {
        // SAFETY: this thread's buffer, which ends with a null byte.
        unsafe { CStr::from_ptr(stackweave_last_error()) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn a_text_is_kept_for_its_thread() {
        assert_eq!(last(), "");
        set("first");
        std::thread::spawn(|| assert_eq!(last(), "")).join().unwrap();
        set("a\0b");
        assert_eq!(last(), "a b");
    }
}

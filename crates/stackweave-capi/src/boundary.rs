//! The boundary to C: converts errors and panics to statuses, so that nothing unwinds into the host.

use std::any::Any;
use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::last_error;
use crate::status::stackweave_status;

/// The error of a call: its status, and the message for `stackweave_last_error`.
#[derive(Debug)]
pub(crate) struct CallError {
    pub(crate) status: stackweave_status,
    pub(crate) message: Cow<'static, str>,
}

impl CallError {
    pub(crate) fn new(status: stackweave_status, message: impl Into<Cow<'static, str>>) -> Self {
        Self { status, message: message.into() }
    }

    /// Returns the error for an argument that must not be null.
    pub(crate) fn null(argument: &str) -> Self {
        Self::new(stackweave_status::STACKWEAVE_BAD_ARGUMENT, format!("{argument} is null"))
    }
}

/// Runs the body of a call that may allocate. The message of an error becomes this thread's last error.
pub(crate) fn call(body: impl FnOnce() -> Result<(), CallError>) -> stackweave_status {
    let error = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return stackweave_status::STACKWEAVE_OK,
        Ok(Err(error)) => error,
        Err(panic) => CallError::new(stackweave_status::STACKWEAVE_INTERNAL, panic_message(&*panic)),
    };
    last_error::set(&error.message);
    error.status
}

/// Runs the body of a call that is allowed in signal handlers and inside allocators. Sets no last error.
#[inline]
pub(crate) fn call_signal_safe(body: impl FnOnce() -> stackweave_status) -> stackweave_status {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(stackweave_status::STACKWEAVE_INTERNAL)
}

fn panic_message(panic: &(dyn Any + Send)) -> Cow<'static, str> {
    if let Some(text) = panic.downcast_ref::<&'static str>() {
        (*text).into()
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text.clone().into()
    } else {
        "internal error".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::last_error::stackweave_last_error;
    use std::ffi::CStr;

    fn last() -> String {
        // SAFETY: the buffer of this thread ends with a null byte.
        unsafe { CStr::from_ptr(stackweave_last_error()) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn a_panic_becomes_a_status_and_a_message() {
        assert_eq!(call(|| panic!("number {}", 7)), stackweave_status::STACKWEAVE_INTERNAL);
        assert_eq!(last(), "number 7");
        assert_eq!(call_signal_safe(|| panic!("again")), stackweave_status::STACKWEAVE_INTERNAL);
        assert_eq!(call(|| std::panic::panic_any(3)), stackweave_status::STACKWEAVE_INTERNAL);
        assert_eq!(last(), "internal error");
    }

    #[test]
    fn an_error_is_kept_until_the_next_one() {
        assert_eq!(call(|| Err(CallError::null("out"))), stackweave_status::STACKWEAVE_BAD_ARGUMENT);
        assert_eq!(call(|| Ok(())), stackweave_status::STACKWEAVE_OK);
        assert_eq!(last(), "out is null");
    }
}

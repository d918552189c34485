//! The border to C: what a call returns, and that nothing unwinds across it.

use std::any::Any;
use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::last_error;
use crate::status::stackweave_status;

/// Why a call failed: its status, and what to say beyond that.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) status: stackweave_status,
    pub(crate) text: Cow<'static, str>,
}

impl Fault {
    pub(crate) fn new(status: stackweave_status, text: impl Into<Cow<'static, str>>) -> Self {
        Self { status, text: text.into() }
    }

    pub(crate) fn null(what: &str) -> Self {
        Self::new(stackweave_status::STACKWEAVE_BAD_ARGUMENT, format!("{what} is null"))
    }
}

/// Runs the body of a call that may allocate. What it says when it fails is this thread's last error.
pub(crate) fn call(body: impl FnOnce() -> Result<(), Fault>) -> stackweave_status {
    let ended = catch_unwind(AssertUnwindSafe(body));
    let fault = match ended {
        Ok(Ok(())) => return stackweave_status::STACKWEAVE_OK,
        Ok(Err(fault)) => fault,
        Err(panic) => Fault::new(stackweave_status::STACKWEAVE_INTERNAL, what_was_said(&*panic)),
    };
    last_error::set(&fault.text);
    fault.status
}

/// Runs the body of a call that may be made in a signal handler or inside an allocator: the status says all.
#[inline]
pub(crate) fn call_quietly(body: impl FnOnce() -> stackweave_status) -> stackweave_status {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(stackweave_status::STACKWEAVE_INTERNAL)
}

fn what_was_said(panic: &(dyn Any + Send)) -> Cow<'static, str> {
    if let Some(text) = panic.downcast_ref::<&'static str>() {
        (*text).into()
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text.clone().into()
    } else {
        "a fault of the library".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::last_error::stackweave_last_error;
    use std::ffi::CStr;

    fn last() -> String {
        // SAFETY: this thread's buffer, which ends with a null byte.
        unsafe { CStr::from_ptr(stackweave_last_error()) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn a_panic_is_a_status_and_a_text() {
        assert_eq!(call(|| panic!("number {}", 7)), stackweave_status::STACKWEAVE_INTERNAL);
        assert_eq!(last(), "number 7");
        assert_eq!(call_quietly(|| panic!("again")), stackweave_status::STACKWEAVE_INTERNAL);
        assert_eq!(call(|| std::panic::panic_any(3)), stackweave_status::STACKWEAVE_INTERNAL);
        assert_eq!(last(), "a fault of the library");
    }

    #[test]
    fn a_fault_is_said_until_the_next() {
        assert_eq!(call(|| Err(Fault::null("out"))), stackweave_status::STACKWEAVE_BAD_ARGUMENT);
        assert_eq!(call(|| Ok(())), stackweave_status::STACKWEAVE_OK);
        assert_eq!(last(), "out is null");
    }
}

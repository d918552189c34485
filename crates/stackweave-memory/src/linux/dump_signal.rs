//! A signal at which the recording's writer writes a snapshot, even if the program hangs and holds any lock.
//!
//! The handler only sets a flag, and then calls the handler that was set before, unless that was the default action. It
//! is async-signal-safe: it neither allocates nor locks.

use std::ffi::{c_int, c_void};
use std::io;
use std::mem::{MaybeUninit, transmute};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

static IS_REQUESTED: AtomicBool = AtomicBool::new(false);
/// The action before the newest [`DumpSignal`]. Never freed: a handler may be reading it.
static PREVIOUS: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());

/// Returns whether the signal has come since the last call.
pub(crate) fn take_request() -> bool {
    IS_REQUESTED.load(Ordering::Relaxed) && IS_REQUESTED.swap(false, Ordering::AcqRel)
}

/// While it lives, the signal makes a memory recorder write a snapshot to its file.
#[derive(Debug)]
pub struct DumpSignal {
    number: c_int,
}

impl DumpSignal {
    /// Installs a handler for the signal of this number. It calls the handler that was set before.
    pub fn install(number: i32) -> io::Result<Self> {
        let now = action_of(number)?;
        if now.sa_sigaction != handler() {
            PREVIOUS.store(Box::into_raw(Box::new(now)), Ordering::Release);
        }
        IS_REQUESTED.store(false, Ordering::Release);
        // SAFETY: zeros are a valid action, with an empty set of signals.
        let mut ours: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
        ours.sa_sigaction = handler();
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        // SAFETY: the action is complete, and the handler is never unloaded.
        match unsafe { libc::sigaction(number, &raw const ours, ptr::null_mut()) } {
            0 => Ok(Self { number }),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for DumpSignal {
    /// Restores the action that was set before, unless another handler was set since.
    fn drop(&mut self) {
        let previous = PREVIOUS.load(Ordering::Acquire);
        if action_of(self.number).is_ok_and(|now| now.sa_sigaction == handler()) {
            // SAFETY: null, or an action as `sigaction` returned it.
            unsafe { libc::sigaction(self.number, previous, ptr::null_mut()) };
        }
    }
}

fn handler() -> usize {
    handle as *const () as usize
}

fn action_of(number: c_int) -> io::Result<libc::sigaction> {
    let mut action = MaybeUninit::uninit();
    // SAFETY: there is room for the action, which is written if the call succeeds.
    unsafe {
        match libc::sigaction(number, ptr::null(), action.as_mut_ptr()) {
            0 => Ok(action.assume_init()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

unsafe extern "C" fn handle(number: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    IS_REQUESTED.store(true, Ordering::Release);
    // SAFETY: null, or an action that is never freed.
    let Some(previous) = (unsafe { PREVIOUS.load(Ordering::Acquire).as_ref() }) else { return };
    if matches!(previous.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN) {
        return;
    }
    // SAFETY: a handler with the signature that its flags declare, called as the system would call it.
    unsafe {
        if previous.sa_flags & libc::SA_SIGINFO != 0 {
            let call: unsafe extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = transmute(previous.sa_sigaction);
            call(number, info, context);
        } else {
            let call: unsafe extern "C" fn(c_int) = transmute(previous.sa_sigaction);
            call(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    static CALLS: AtomicU32 = AtomicU32::new(0);

    extern "C" fn count(_: c_int) {
        CALLS.fetch_add(1, Ordering::Relaxed);
    }

    fn raise() {
        // SAFETY: the signal has a handler.
        assert_eq!(unsafe { libc::raise(libc::SIGUSR2) }, 0);
    }

    #[test]
    fn a_request_is_taken_once_and_the_previous_handler_is_called() {
        let before = count as *const () as usize;
        // SAFETY: the handler may be called at any time.
        unsafe { libc::signal(libc::SIGUSR2, before) };
        let signal = DumpSignal::install(libc::SIGUSR2).unwrap();
        assert!(!take_request());
        raise();
        assert_eq!((CALLS.load(Ordering::Relaxed), take_request(), take_request()), (1, true, false));
        drop(signal);
        assert_eq!(action_of(libc::SIGUSR2).unwrap().sa_sigaction, before);
        raise();
        assert_eq!((CALLS.load(Ordering::Relaxed), take_request()), (2, false));

        let signal = DumpSignal::install(libc::SIGUSR2).unwrap();
        // SAFETY: as above.
        unsafe { libc::signal(libc::SIGUSR2, libc::SIG_IGN) };
        drop(signal);
        assert_eq!(action_of(libc::SIGUSR2).unwrap().sa_sigaction, libc::SIG_IGN);
        assert!(DumpSignal::install(libc::SIGKILL).is_err());
    }
}

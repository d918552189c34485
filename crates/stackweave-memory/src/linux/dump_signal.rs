//! A signal at which all that is known is written, by the recording's writer: also when the program hangs, with whatever lock.
//!
//! The handler only leaves a mark, and then does what was done before at that signal, but for ending the program. It is
//! async-signal-safe: it neither allocates nor locks.

use std::ffi::{c_int, c_void};
use std::io;
use std::mem::{MaybeUninit, transmute};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

static IS_ASKED: AtomicBool = AtomicBool::new(false);
/// What was done before at the signal of the newest [`DumpSignal`]. Never freed: a handler may be looking at it.
static PREVIOUS: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());

/// Whether the signal has come since this was asked last.
pub(crate) fn take_request() -> bool {
    IS_ASKED.load(Ordering::Relaxed) && IS_ASKED.swap(false, Ordering::AcqRel)
}

/// As long as it lives, what a memory recorder knows is written to its file when the signal comes.
#[derive(Debug)]
pub struct DumpSignal {
    number: c_int,
}

impl DumpSignal {
    /// Puts a handler in for the signal of this number. What was there is called by it.
    pub fn install(number: i32) -> io::Result<Self> {
        let now = action_of(number)?;
        if now.sa_sigaction != handler() {
            PREVIOUS.store(Box::into_raw(Box::new(now)), Ordering::Release);
        }
        IS_ASKED.store(false, Ordering::Release);
        // SAFETY: an action of zeros is one, with an empty set of signals.
        let mut ours: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
        ours.sa_sigaction = handler();
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        // SAFETY: the record is whole, and the handler may be called for ever.
        match unsafe { libc::sigaction(number, &raw const ours, ptr::null_mut()) } {
            0 => Ok(Self { number }),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for DumpSignal {
    /// What was there before is put back, unless somebody else has come since.
    fn drop(&mut self) {
        let previous = PREVIOUS.load(Ordering::Acquire);
        if action_of(self.number).is_ok_and(|now| now.sa_sigaction == handler()) {
            // SAFETY: null, or a record as `sigaction` gave it.
            unsafe { libc::sigaction(self.number, previous, ptr::null_mut()) };
        }
    }
}

fn handler() -> usize {
    handle as *const () as usize
}

fn action_of(number: c_int) -> io::Result<libc::sigaction> {
    let mut action = MaybeUninit::uninit();
    // SAFETY: there is room for the record, which is written if the call succeeds.
    unsafe {
        match libc::sigaction(number, ptr::null(), action.as_mut_ptr()) {
            0 => Ok(action.assume_init()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

unsafe extern "C" fn handle(number: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    IS_ASKED.store(true, Ordering::Release);
    // SAFETY: null, or a record that is never freed.
    let Some(previous) = (unsafe { PREVIOUS.load(Ordering::Acquire).as_ref() }) else { return };
    if matches!(previous.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN) {
        return;
    }
    // SAFETY: a handler with the signature that its flags say, called as the system would.
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
    fn a_request_is_taken_once_and_the_handler_before_is_called() {
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

//! The signal for dumps: a real-time signal that has no other use.

use core::ffi::{c_int, c_void};
use core::mem::zeroed;
use core::ptr;
use core::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::dump::DumpError;
use crate::platform::advertisement;
use crate::platform::handler_stack::on_mapped_stack;
use crate::platform::raw_files::last_error;
use crate::platform::signalled_threads::reply;
use crate::platform::stack_queries::{answer_query, query_in};

/// The signal; 0: none yet.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// Chooses the signal and installs its handler, once; again if the handler was replaced.
pub(crate) fn prepare_dumps() -> Result<(), DumpError> {
    static CHOICE: Mutex<()> = Mutex::new(());
    let _choice = CHOICE.lock().unwrap_or_else(PoisonError::into_inner);
    stackweave_unwind::prepare();
    if is_ours(SIGNAL.load(Ordering::Acquire)) {
        return Ok(());
    }
    let signal = (libc::SIGRTMIN()..=libc::SIGRTMAX()).rev().find(|signal| install(*signal));
    let signal = signal.ok_or(DumpError::NoSignal)?;
    SIGNAL.store(signal, Ordering::Release);
    advertisement::renew(signal);
    Ok(())
}

/// Allows stack queries of other processes.
pub(crate) fn prepare_answers() -> Result<(), DumpError> {
    prepare_dumps()?;
    advertisement::advertise(signal()?)
}

/// Returns the signal. Without its handler it would end the process, so the handler is checked. Async-signal-safe.
pub(crate) fn signal() -> Result<c_int, DumpError> {
    match SIGNAL.load(Ordering::Acquire) {
        0 => Err(DumpError::NotPrepared),
        signal if is_ours(signal) => Ok(signal),
        _ => Err(DumpError::SignalReplaced),
    }
}

fn action_of(signal: c_int) -> Option<libc::sigaction> {
    // SAFETY: an all-zero `sigaction` is valid.
    let mut action: libc::sigaction = unsafe { zeroed() };
    // SAFETY: nothing is changed.
    let done = unsafe { libc::sigaction(signal, ptr::null(), &raw mut action) };
    (done == 0).then_some(action)
}

fn is_ours(signal: c_int) -> bool {
    signal != 0 && action_of(signal).is_some_and(|action| action.sa_sigaction == on_signal as *const () as usize)
}

/// Installs the handler, if the signal has none.
fn install(signal: c_int) -> bool {
    if action_of(signal).is_none_or(|action| action.sa_sigaction != libc::SIG_DFL) {
        return false;
    }
    // SAFETY: an all-zero `sigaction` is valid.
    let mut action: libc::sigaction = unsafe { zeroed() };
    action.sa_sigaction = on_signal as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
    // SAFETY: the handler has the signature that SA_SIGINFO requires. It blocks all signals: see `handler_stack`.
    unsafe {
        libc::sigfillset(&raw mut action.sa_mask);
        libc::sigaction(signal, &raw const action, ptr::null_mut()) == 0
    }
}

extern "C" fn on_signal(_signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let error = last_error();
    // SAFETY: the arguments of this handler.
    on_mapped_stack(|| unsafe {
        match query_in(info) {
            Some((process, query)) => answer_query(process, query, context),
            None => reply(context),
        }
    });
    // SAFETY: restores this thread's error number.
    unsafe { *libc::__errno_location() = error };
}

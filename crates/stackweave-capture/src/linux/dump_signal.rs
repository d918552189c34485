//! The signal that threads are asked with: a real-time signal that nobody else uses.

use core::ffi::{c_int, c_void};
use core::mem::zeroed;
use core::ptr;
use core::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::dump::CantDump;
use crate::platform::advertisement;
use crate::platform::answers::answer;
use crate::platform::handler_stack::on_own_stack;
use crate::platform::questions::{answer_question, question_in};
use crate::platform::raw_files::last_error;

/// 0: none yet.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// Chooses the signal and installs its handler, once; again if another handler was put in its place.
pub(crate) fn prepare_dumps() -> Result<(), CantDump> {
    static CHOICE: Mutex<()> = Mutex::new(());
    let _choice = CHOICE.lock().unwrap_or_else(PoisonError::into_inner);
    stackweave_unwind::prepare();
    if is_ours(SIGNAL.load(Ordering::Acquire)) {
        return Ok(());
    }
    let signal = (libc::SIGRTMIN()..=libc::SIGRTMAX()).rev().find(|signal| install(*signal));
    let signal = signal.ok_or(CantDump::NoSignal)?;
    SIGNAL.store(signal, Ordering::Release);
    advertisement::renew(signal);
    Ok(())
}

/// From now on other processes can ask.
pub(crate) fn prepare_answers() -> Result<(), CantDump> {
    prepare_dumps()?;
    advertisement::show(signal()?)
}

/// The signal. Without its handler it would end the process, so that is looked at. Async-signal-safe.
pub(crate) fn signal() -> Result<c_int, CantDump> {
    match SIGNAL.load(Ordering::Acquire) {
        0 => Err(CantDump::NotPrepared),
        signal if is_ours(signal) => Ok(signal),
        _ => Err(CantDump::SignalTaken),
    }
}

fn action_of(signal: c_int) -> Option<libc::sigaction> {
    // SAFETY: an all-zero `sigaction` is a place for the answer.
    let mut action: libc::sigaction = unsafe { zeroed() };
    // SAFETY: nothing is changed.
    let done = unsafe { libc::sigaction(signal, ptr::null(), &raw mut action) };
    (done == 0).then_some(action)
}

fn is_ours(signal: c_int) -> bool {
    signal != 0 && action_of(signal).is_some_and(|action| action.sa_sigaction == on_signal as *const () as usize)
}

/// Takes the signal, if nobody has it.
fn install(signal: c_int) -> bool {
    if action_of(signal).is_none_or(|action| action.sa_sigaction != libc::SIG_DFL) {
        return false;
    }
    // SAFETY: an all-zero `sigaction` is a valid one.
    let mut action: libc::sigaction = unsafe { zeroed() };
    action.sa_sigaction = on_signal as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
    // SAFETY: the handler has the signature that SA_SIGINFO asks for. All signals are blocked in it: see `handler_stack`.
    unsafe {
        libc::sigfillset(&raw mut action.sa_mask);
        libc::sigaction(signal, &raw const action, ptr::null_mut()) == 0
    }
}

extern "C" fn on_signal(_signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let error = last_error();
    // SAFETY: what this handler was given.
    on_own_stack(|| unsafe {
        match question_in(info) {
            Some((process, question)) => answer_question(process, question, context),
            None => answer(context),
        }
    });
    // SAFETY: puts this thread's error number back.
    unsafe { *libc::__errno_location() = error };
}

//! SIGTERM and SIGHUP where the program leaves them their default action: recordings are completed and closed, and then the signal
//! ends the process as it would have done.
//!
//! The handler wakes the writers and waits briefly. The writer that ends last triggers the default action. A timer does so if a
//! writer is blocked, as by a pipe without a reader. Handlers of the program are never replaced.
//!
//! The handler is async-signal-safe.

use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use std::{mem, ptr};

use super::doorbells;
use super::futex;
use crate::file::EndReason;

const SIGNALS: [libc::c_int; 2] = [libc::SIGTERM, libc::SIGHUP];
/// The maximum wait of the interrupted thread, which may hold a lock that a writer needs.
const HANDLER_WAIT: Duration = Duration::from_millis(300);
/// The maximum time that writers have.
const WRITERS_WAIT: Duration = Duration::from_secs(5);
/// Signals within this time count as one: `timeout` sends two, systemd SIGTERM and SIGHUP.
const ONE_SIGNAL: Duration = Duration::from_secs(1);
/// The first process of a container, on which signals with their default action have no effect.
const INIT: u32 = 1;

/// The process that received a signal, and the signal: `pid << 8 | signal`; 0 for none.
static RECEIVED: AtomicU64 = AtomicU64::new(0);
/// The time of the signal, in nanoseconds of the monotonic clock.
static RECEIVED_AT: AtomicU64 = AtomicU64::new(0);
/// Changes when the writers have handled a signal.
static DONE: AtomicU32 = AtomicU32::new(0);
/// The process that owns the timer, and the timer.
static TIMER_OF: AtomicI32 = AtomicI32::new(0);
static TIMER: AtomicUsize = AtomicUsize::new(0);

/// Installs the handler where signals have their default action.
pub(super) fn watch() {
    make_timer();
    for signal in SIGNALS {
        install(signal);
    }
}

/// Restores the default action where the handler is still ours, unless a writer handles signals.
pub(super) fn unwatch() {
    if !doorbells::any_handles_signals() {
        for signal in SIGNALS {
            uninstall(signal);
        }
    }
}

/// Returns the signal that this process received and that its writers have not handled yet.
pub(super) fn received() -> Option<libc::c_int> {
    let received = RECEIVED.load(Ordering::SeqCst);
    let signal = i32::try_from(received & 0xff).unwrap_or(0);
    (received >> 8 == u64::from(std::process::id()) && signal != 0).then_some(signal)
}

/// Returns the reason for the end of a recording that this signal ends.
pub(super) const fn reason(signal: libc::c_int) -> EndReason {
    if signal == libc::SIGHUP { EndReason::HungUp } else { EndReason::Terminated }
}

/// Returns whether signals do not end this process.
pub(super) fn has_no_effect() -> bool {
    std::process::id() == INIT
}

/// Notes that a writer has handled the signal, or has ended for another reason. The last one triggers the default action.
pub(super) fn handled() {
    if let Some(signal) = received()
        && (has_no_effect() || !doorbells::any_handles_signals())
    {
        RECEIVED.store(0, Ordering::SeqCst);
        DONE.fetch_add(1, Ordering::SeqCst);
        futex::wake_all(&DONE);
        if !has_no_effect() {
            default_action(signal);
        }
    }
}

extern "C" fn handle(signal: libc::c_int, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the calling thread's own errno.
    let errno = unsafe { *libc::__errno_location() };
    receive(signal);
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

fn receive(signal: libc::c_int) {
    let now = monotonic();
    if let Some(first) = received() {
        if now.saturating_sub(RECEIVED_AT.load(Ordering::SeqCst)) >= duration_ns(ONE_SIGNAL) {
            default_action(first);
        }
        return;
    }
    let done = DONE.load(Ordering::SeqCst);
    RECEIVED_AT.store(now, Ordering::SeqCst);
    RECEIVED.store(u64::from(std::process::id()) << 8 | u64::from(signal.unsigned_abs()), Ordering::SeqCst);
    if !doorbells::any_handles_signals() {
        RECEIVED.store(0, Ordering::SeqCst);
        return default_action(signal);
    }
    if !has_no_effect() {
        start_timer();
    }
    doorbells::ring_all();
    while DONE.load(Ordering::SeqCst) == done {
        let waited = Duration::from_nanos(monotonic().saturating_sub(now));
        match HANDLER_WAIT.checked_sub(waited) {
            Some(rest) if !rest.is_zero() => futex::wait(&DONE, done, rest),
            _ => return,
        }
    }
}

/// Triggers the default action of a signal in this process.
fn default_action(signal: libc::c_int) {
    // SAFETY: valid values; all of it is async-signal-safe.
    unsafe {
        let mut only: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&raw mut only);
        libc::sigaddset(&raw mut only, signal);
        set_action(signal, &action(libc::SIG_DFL));
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const only, ptr::null_mut());
        libc::raise(signal);
    }
}

fn our_handler() -> libc::sighandler_t {
    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = handle;
    handler as libc::sighandler_t
}

fn action(handler: libc::sighandler_t) -> libc::sigaction {
    // SAFETY: an all-zero action is valid: the default one.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = handler;
    if handler != libc::SIG_DFL {
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        // SAFETY: a local set, and valid signals.
        SIGNALS.iter().for_each(|signal| unsafe {
            libc::sigaddset(&raw mut action.sa_mask, *signal);
        });
    }
    action
}

/// Sets an action, and returns the previous one.
fn set_action(signal: libc::c_int, new: &libc::sigaction) -> libc::sigaction {
    let mut old = action(libc::SIG_DFL);
    // SAFETY: both are valid actions.
    unsafe { libc::sigaction(signal, new, &raw mut old) };
    old
}

fn current(signal: libc::c_int) -> libc::sighandler_t {
    let mut now = action(libc::SIG_DFL);
    // SAFETY: the pointer is valid for a write of the action.
    unsafe { libc::sigaction(signal, ptr::null(), &raw mut now) };
    now.sa_sigaction
}

fn install(signal: libc::c_int) {
    exchange(signal, libc::SIG_DFL, our_handler());
}

fn uninstall(signal: libc::c_int) {
    exchange(signal, our_handler(), libc::SIG_DFL);
}

/// Replaces one handler by another. A different handler that is installed meanwhile is restored.
fn exchange(signal: libc::c_int, expected: libc::sighandler_t, new: libc::sighandler_t) {
    if current(signal) == expected {
        let old = set_action(signal, &action(new));
        if old.sa_sigaction != expected {
            set_action(signal, &old);
        }
    }
}

/// Creates the timer of this process, which sends the first signal again. A forked child does not inherit its parent's.
fn make_timer() {
    let pid = std::process::id().cast_signed();
    if TIMER_OF.swap(pid, Ordering::SeqCst) == pid {
        return;
    }
    // SAFETY: zeros are a valid event; the pointer to the timer is valid.
    unsafe {
        let mut event: libc::sigevent = mem::zeroed();
        event.sigev_notify = libc::SIGEV_SIGNAL;
        event.sigev_signo = SIGNALS[0];
        let mut timer: libc::timer_t = ptr::null_mut();
        let is_made = libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer) == 0;
        // The first timer of a process may be 0.
        TIMER.store(if is_made { timer.expose_provenance() + 1 } else { 0 }, Ordering::SeqCst);
    }
}

fn start_timer() {
    let Some(timer) = TIMER.load(Ordering::SeqCst).checked_sub(1) else { return };
    // SAFETY: zeros are a valid time.
    let mut time: libc::itimerspec = unsafe { mem::zeroed() };
    time.it_value.tv_sec = libc::time_t::try_from(WRITERS_WAIT.as_secs()).unwrap_or(5);
    time.it_interval.tv_sec = 1;
    // SAFETY: a timer of this process, because one of its writers handles signals.
    unsafe { libc::timer_settime(ptr::with_exposed_provenance_mut(timer), 0, &raw const time, ptr::null_mut()) };
}

fn monotonic() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is valid for a write of the time.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

fn duration_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

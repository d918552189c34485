//! Runs code inside signal handlers, on the normal and on the alternate stack.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::mem::zeroed;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The stack on which a handler runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalStack {
    /// On the interrupted stack.
    Normal,
    /// On the thread's alternate stack.
    Alternate,
}

/// The function that a handler of this thread calls; its argument is the `ucontext`.
pub type Handler<'a> = &'a mut (dyn FnMut(*mut c_void) + 'a);

const SIGNALS: usize = 65;

thread_local! {
    static HANDLERS: [Cell<*mut c_void>; SIGNALS] = const { [const { Cell::new(std::ptr::null_mut()) }; SIGNALS] };
    static OWNS_ACTIONS: Cell<bool> = const { Cell::new(false) };
}

/// Serialises tests that install signal actions: actions belong to the process.
static ACTIONS: Mutex<()> = Mutex::new(());

fn handler_of(signal: c_int) -> *mut c_void {
    HANDLERS.with(|handlers| handlers[signal.unsigned_abs() as usize].get())
}

fn set_handler(signal: c_int, handler: *mut c_void) {
    HANDLERS.with(|handlers| handlers[signal.unsigned_abs() as usize].set(handler));
}

extern "C" fn on_signal(signal: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    let handler = handler_of(signal);
    if !handler.is_null() {
        // SAFETY: `with_handlers` keeps the closure alive and unused elsewhere while the pointer is set.
        let handler = unsafe { &mut *handler.cast::<Handler<'_>>() };
        handler(context);
    }
}

/// Runs `body`. When one of the signals arrives at this thread meanwhile, calls `handler` inside the signal
/// handler. `handler` must not allocate, lock or panic. Calls may be nested for different signals.
///
/// # Panics
/// When the system refuses a handler or an alternate stack.
pub fn with_handlers(signals: &[c_int], stack: SignalStack, mut handler: Handler<'_>, body: impl FnOnce()) {
    let outermost = !OWNS_ACTIONS.with(|owns| owns.replace(true));
    let _only_one = outermost.then(|| ACTIONS.lock().unwrap_or_else(PoisonError::into_inner));
    let alternate = AlternateStack::new();
    let handler: *mut c_void = (&raw mut handler).cast();
    for &signal in signals {
        set_handler(signal, handler);
    }
    let actions: Vec<_> = signals.iter().map(|&signal| SignalAction::install(signal, stack)).collect();
    body();
    drop((actions, alternate));
    for &signal in signals {
        set_handler(signal, std::ptr::null_mut());
    }
    OWNS_ACTIONS.with(|owns| owns.set(!outermost));
}

/// Raises a signal in this thread, and calls `inside` in its handler.
pub fn in_handler(stack: SignalStack, inside: Handler<'_>) {
    with_handlers(&[libc::SIGUSR1], stack, inside, || {
        // SAFETY: the signal has a handler.
        unsafe { libc::raise(libc::SIGUSR1) };
    });
}

struct SignalAction {
    signal: c_int,
    old: libc::sigaction,
}

impl SignalAction {
    fn install(signal: c_int, stack: SignalStack) -> Self {
        // SAFETY: an all-zero `sigaction` is valid (default action, empty mask).
        let (mut action, mut old): (libc::sigaction, libc::sigaction) = unsafe { (zeroed(), zeroed()) };
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        if stack == SignalStack::Alternate {
            action.sa_flags |= libc::SA_ONSTACK;
        }
        // SAFETY: the handler has the signature that SA_SIGINFO requires.
        let done = unsafe { libc::sigaction(signal, &raw const action, &raw mut old) };
        assert_eq!(done, 0, "sigaction failed");
        Self { signal, old }
    }
}

impl Drop for SignalAction {
    fn drop(&mut self) {
        // SAFETY: restores the previous action.
        unsafe { libc::sigaction(self.signal, &raw const self.old, std::ptr::null_mut()) };
    }
}

/// A large alternate stack for this thread, in place of the small one that the runtime made.
struct AlternateStack {
    _memory: Box<[u8]>,
    old: libc::stack_t,
}

impl AlternateStack {
    fn new() -> Self {
        let mut memory = vec![0_u8; 1 << 20].into_boxed_slice();
        let new = libc::stack_t { ss_sp: memory.as_mut_ptr().cast(), ss_flags: 0, ss_size: memory.len() };
        // SAFETY: an all-zero `stack_t` is valid.
        let mut old: libc::stack_t = unsafe { zeroed() };
        // SAFETY: the memory lives until the old stack is restored.
        let done = unsafe { libc::sigaltstack(&raw const new, &raw mut old) };
        assert_eq!(done, 0, "sigaltstack failed");
        Self { _memory: memory, old }
    }
}

impl Drop for AlternateStack {
    fn drop(&mut self) {
        // SAFETY: restores the previous stack; no handler runs on the memory any longer.
        unsafe { libc::sigaltstack(&raw const self.old, std::ptr::null_mut()) };
    }
}

/// A timer that sends a signal to the thread that created it.
#[derive(Debug)]
pub struct Alarm(libc::timer_t);

impl Alarm {
    /// Creates a timer that will send `signal` to the calling thread. It is not armed yet.
    ///
    /// # Panics
    /// When the system cannot create a timer.
    pub fn new(signal: c_int) -> Self {
        let mut timer: libc::timer_t = std::ptr::null_mut();
        // SAFETY: an all-zero `sigevent` is valid; `gettid` has no preconditions; `timer` is valid memory for the
        // id.
        let made = unsafe {
            let mut event: libc::sigevent = zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = signal;
            event.sigev_notify_thread_id = libc::gettid();
            libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer)
        };
        assert_eq!(made, 0, "timer_create failed");
        Self(timer)
    }

    /// Sends the signal once, after `delay`, which is not zero.
    pub fn ring_after(&self, delay: Duration) {
        self.set(delay, Duration::ZERO);
    }

    fn set(&self, first: Duration, again: Duration) {
        let of = |time: Duration| libc::timespec {
            tv_sec: time.as_secs().cast_signed(),
            tv_nsec: time.subsec_nanos().into(),
        };
        let setting = libc::itimerspec { it_interval: of(again), it_value: of(first) };
        // SAFETY: the timer exists, and the setting is fully initialised.
        let set = unsafe { libc::timer_settime(self.0, 0, &raw const setting, std::ptr::null_mut()) };
        assert_eq!(set, 0, "timer_settime failed");
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        // SAFETY: the timer exists.
        unsafe { libc::timer_delete(self.0) };
    }
}

/// A timer that sends a signal periodically.
#[derive(Debug)]
pub struct Ticker {
    _alarm: Alarm,
}

impl Ticker {
    /// Sends `signal` to the calling thread every `microseconds`.
    ///
    /// # Panics
    /// When the system cannot create a timer.
    pub fn start(signal: c_int, microseconds: u64) -> Self {
        let alarm = Alarm::new(signal);
        let every = Duration::from_micros(microseconds);
        alarm.set(every, every);
        Self { _alarm: alarm }
    }
}

//! Chooses a mechanism, and installs and removes its hooks.

use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};

use super::CallObserver;
use super::api::HookApi;
use super::error::HookError;
use super::eval_hook::{self, EvalHook};
use super::monitoring::{self, Monitoring};
use super::profile_slot::ProfileSlot;
use crate::frame_reader::FrameReader;
use crate::interpreter::Interpreter;
use crate::interpreters::OtherInterpreters;
use crate::source::PythonSource;
use crate::unavailable::Unavailable;

/// The mechanism by which the interpreter reports calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// `sys.monitoring`: 3.12 and later.
    Monitoring,
    /// The frame evaluation function of PEP 523: 3.10 and 3.11, and not for native functions. Early releases of 3.11 do
    /// not call it for a `__getitem__` in Python that is often used; there it is only used if requested.
    EvalHook,
    /// The profile function of each thread.
    ProfileSlot,
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Monitoring => "sys.monitoring",
            Self::EvalHook => "the frame evaluation hook",
            Self::ProfileSlot => "a profile function",
        })
    }
}

/// Which calls are recorded, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HookOptions {
    /// `None`: the cheapest mechanism that this version has.
    pub mechanism: Option<Mechanism>,
    /// Whether calls of native functions are recorded.
    pub c_calls: bool,
}

#[derive(Debug)]
enum Installed {
    Monitoring(Monitoring),
    EvalHook(EvalHook),
    ProfileSlot(ProfileSlot),
}

/// Makes the interpreter report calls to an observer, until it is removed. A process has one at a time.
#[derive(Debug)]
pub struct Hooks {
    installed: Option<Installed>,
    mechanism: Mechanism,
    fallback: Option<HookError>,
    interpreter: &'static Interpreter,
    api: &'static HookApi,
    others: OtherInterpreters,
}

// SAFETY: it holds references to Python's objects, which are used and dropped with the GIL held, by any thread.
unsafe impl Send for Hooks {}

static IS_INSTALLED: AtomicBool = AtomicBool::new(false);

impl Hooks {
    /// Installs hooks that call `O`. Frames that are running already are not reported as begun, but may be reported as
    /// ended.
    ///
    /// # Safety
    /// The GIL is held, and no exception is set.
    pub unsafe fn install<O: CallObserver>(source: &PythonSource, options: HookOptions) -> Result<Self, HookError> {
        let interpreter = source.interpreter().ok_or_else(|| HookError::Frames(no_direct_walk_reason()))?;
        if !interpreter.holds_gil() {
            return Err(HookError::NoGil);
        }
        let api = HookApi::find(interpreter)?;
        if IS_INSTALLED.swap(true, Ordering::AcqRel) {
            return Err(HookError::AlreadyInstalled);
        }
        // SAFETY: passed on to the caller.
        let chosen = unsafe { choose::<O>(interpreter, api, options) };
        if chosen.is_err() {
            IS_INSTALLED.store(false, Ordering::Release);
        }
        let (installed, fallback) = chosen?;
        let mechanism = match installed {
            Installed::Monitoring(_) => Mechanism::Monitoring,
            Installed::EvalHook(_) => Mechanism::EvalHook,
            Installed::ProfileSlot(_) => Mechanism::ProfileSlot,
        };
        let others = OtherInterpreters::now(interpreter);
        Ok(Self { installed: Some(installed), mechanism, fallback, interpreter, api, others })
    }

    /// Returns the mechanism that is used.
    pub fn mechanism(&self) -> Mechanism {
        self.mechanism
    }

    /// Returns why it is not the best mechanism for this version.
    pub fn fallback_reason(&self) -> Option<&HookError> {
        self.fallback.as_ref()
    }

    /// Returns how often, since the hooks were installed, deeper calls were not recorded because the C stack was nearly
    /// full.
    pub fn stepped_aside(&self) -> u64 {
        match &self.installed {
            Some(Installed::EvalHook(hook)) => hook.stepped_aside(),
            _ => 0,
        }
    }

    /// Returns how many threads are not recorded now: the program has set profile functions of its own, or none.
    ///
    /// # Safety
    /// The GIL is held.
    pub unsafe fn unrecorded_threads(&self) -> u64 {
        match &self.installed {
            // SAFETY: passed on to the caller.
            Some(Installed::ProfileSlot(slot)) if self.interpreter.holds_gil() => unsafe { slot.unrecorded_threads() },
            _ => 0,
        }
    }

    /// Returns whether other code has replaced the frame evaluation hook, so that calls are no longer recorded.
    ///
    /// # Safety
    /// The GIL is held.
    pub unsafe fn is_replaced(&self) -> bool {
        match &self.installed {
            // SAFETY: passed on to the caller.
            Some(Installed::EvalHook(hook)) if self.interpreter.holds_gil() => unsafe { hook.is_replaced() },
            _ => false,
        }
    }

    /// Returns how many other interpreters existed since the hooks were installed. Their calls are not recorded.
    pub fn other_interpreters(&self) -> u64 {
        self.others.until(&OtherInterpreters::now(self.interpreter))
    }

    /// Enables the events again for which the observer has returned [`Disable`](super::Verdict::Disable).
    ///
    /// # Safety
    /// The GIL is held.
    pub unsafe fn enable_all_events(&self) -> Result<(), HookError> {
        match &self.installed {
            // SAFETY: passed on to the caller.
            Some(Installed::Monitoring(monitoring)) => unsafe {
                self.api.without_error(|| monitoring.enable_all_events())
            },
            _ => Ok(()),
        }
    }

    /// Removes the hooks: nothing is reported any more, even if the interpreter is shutting down. A second call does
    /// nothing.
    ///
    /// # Safety
    /// The GIL is held, unless the interpreter has ended.
    pub unsafe fn remove(&mut self) {
        let Some(mut installed) = self.installed.take() else { return };
        if !self.interpreter.holds_gil() {
            // The hooks have ended with the interpreter.
            core::mem::forget(installed);
            return;
        }
        // SAFETY: the GIL is held. References are dropped before it may be released.
        unsafe {
            self.api.without_error(|| {
                match &mut installed {
                    Installed::Monitoring(monitoring) => monitoring.remove(),
                    Installed::EvalHook(hook) => hook.remove(),
                    Installed::ProfileSlot(slot) => slot.remove(),
                }
                drop(installed);
            });
        }
        IS_INSTALLED.store(false, Ordering::Release);
    }
}

fn no_direct_walk_reason() -> Unavailable {
    match FrameReader::choose() {
        Ok(reader) => reader.fallback_reason().unwrap_or(Unavailable::SelfTestNotRun),
        Err(reason) => reason,
    }
}

/// # Safety
/// The GIL is held, and no exception is set.
unsafe fn choose<O: CallObserver>(
    interpreter: &'static Interpreter,
    api: &'static HookApi,
    options: HookOptions,
) -> Result<(Installed, Option<HookError>), HookError> {
    let minor = interpreter.layout.minor;
    let c_calls = options.c_calls;
    // SAFETY: passed on to the caller.
    unsafe {
        let profile_slot = || ProfileSlot::install::<O>(interpreter, api, c_calls).map(Installed::ProfileSlot);
        let monitoring = || Monitoring::install::<O>(interpreter, api, c_calls).map(Installed::Monitoring);
        let eval_hook = |may_miss| EvalHook::install::<O>(interpreter, api, may_miss).map(Installed::EvalHook);
        match options.mechanism {
            Some(Mechanism::Monitoring) if minor < monitoring::OLDEST => {
                Err(HookError::NotInThisVersion(Mechanism::Monitoring, minor))
            }
            Some(Mechanism::EvalHook) if minor > eval_hook::NEWEST => {
                Err(HookError::NotInThisVersion(Mechanism::EvalHook, minor))
            }
            Some(Mechanism::EvalHook) if c_calls => Err(HookError::NoNativeCalls(Mechanism::EvalHook)),
            Some(Mechanism::Monitoring) => Ok((monitoring()?, None)),
            Some(Mechanism::EvalHook) => Ok((eval_hook(true)?, None)),
            Some(Mechanism::ProfileSlot) => Ok((profile_slot()?, None)),
            None if minor >= monitoring::OLDEST => match monitoring() {
                Ok(installed) => Ok((installed, None)),
                Err(reason @ HookError::NoToolId(_)) => Ok((profile_slot()?, Some(reason))),
                Err(reason) => Err(reason),
            },
            None if c_calls => Ok((profile_slot()?, None)),
            None => match eval_hook(false) {
                Ok(installed) => Ok((installed, None)),
                Err(reason) => Ok((profile_slot()?, Some(reason))),
            },
        }
    }
}

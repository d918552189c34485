//! Installs and removes the frame evaluation function of PEP 523, on 3.10 and 3.11.

use core::ffi::{c_int, c_void};
use core::mem;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use super::api::HookApi;
use super::error::HookError;
use super::eval_check::sees_every_frame;
use super::{CallObserver, eval_function};
use crate::interpreter::{Interpreter, first_of};
use crate::public_api::ObjectPointer;

pub(super) const NEWEST: u8 = 11;

/// A thread state, a frame, and whether an exception is thrown into it.
pub(super) type FrameEvalFunction = unsafe extern "C-unwind" fn(u64, u64, c_int) -> ObjectPointer;

/// The previous function. Set before ours can be called, and kept: code that was installed after ours may call us for
/// ever.
static PREVIOUS: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
/// Our function, as long as other code may call it.
static OURS: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
pub(super) static IS_RECORDING: AtomicBool = AtomicBool::new(false);
/// The number of evaluations that run with the hook off, because the stack is nearly full.
static ASIDE: AtomicU64 = AtomicU64::new(0);
static STEPPED_ASIDE: AtomicU64 = AtomicU64::new(0);
/// The interpreter's own function, if it is known.
static DEFAULT: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static SET: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static GET: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static THIS_INTERPRETER: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
/// `Py_GetRecursionLimit`.
pub(super) static RECURSION_LIMIT: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// The hook, as long as it records.
#[derive(Debug)]
pub(super) struct EvalHook {
    stepped_aside_before: u64,
}

impl EvalHook {
    /// Installs the hook. Without `may_miss`, it is installed only if it is called for every frame.
    ///
    /// # Safety
    /// The GIL is held, and no exception is set.
    pub(super) unsafe fn install<O: CallObserver>(
        interpreter: &Interpreter,
        api: &'static HookApi,
        may_miss: bool,
    ) -> Result<Self, HookError> {
        let symbols = interpreter.symbols;
        for (slot, name) in [
            (&SET, c"_PyInterpreterState_SetEvalFrameFunc"),
            (&GET, c"_PyInterpreterState_GetEvalFrameFunc"),
            (&THIS_INTERPRETER, c"PyInterpreterState_Get"),
            (&RECURSION_LIMIT, c"Py_GetRecursionLimit"),
        ] {
            // SAFETY: kept as a pointer, and called with the signature of the headers.
            slot.store(unsafe { first_of::<*mut c_void>(symbols, &[name])? }, Ordering::Relaxed);
        }
        let default = symbols.address(c"_PyEval_EvalFrameDefault").unwrap_or(ptr::null_mut());
        DEFAULT.store(default, Ordering::Relaxed);
        // SAFETY: passed on to the caller.
        if !may_miss && !unsafe { sees_every_frame(interpreter, api)? } {
            return Err(HookError::EvalHookMisses);
        }
        let ours = if interpreter.layout.minor == 10 {
            eval_function::evaluate_3_10::<O>
        } else {
            eval_function::evaluate_3_11::<O> as FrameEvalFunction
        };
        // SAFETY: the GIL is held, and the functions are known.
        unsafe { insert(ours as *mut c_void)? };
        IS_RECORDING.store(true, Ordering::Relaxed);
        Ok(Self { stepped_aside_before: STEPPED_ASIDE.load(Ordering::Relaxed) })
    }

    pub(super) fn stepped_aside(&self) -> u64 {
        STEPPED_ASIDE.load(Ordering::Relaxed) - self.stepped_aside_before
    }

    /// Returns whether other code has replaced our function by one that does not call it: the interpreter's own, or the
    /// one from before ours. Code that was installed before us and restores what it found does that. Any other function
    /// may call ours.
    ///
    /// # Safety
    /// The GIL is held.
    #[expect(clippy::unused_self, reason = "there is one hook in the process")]
    pub(super) unsafe fn is_replaced(&self) -> bool {
        let (ours, previous) = (OURS.load(Ordering::Relaxed), PREVIOUS.load(Ordering::Relaxed));
        // SAFETY: the GIL is held, and the functions are known.
        let now = unsafe { get() };
        let steps_aside = ASIDE.load(Ordering::Relaxed) > 0 && now == previous;
        now != ours && !steps_aside && (now == previous || now == DEFAULT.load(Ordering::Relaxed))
    }

    /// Restores the previous function, unless other code has installed its own after ours: it may call us.
    ///
    /// # Safety
    /// The GIL is held.
    pub(super) unsafe fn remove(&mut self) {
        IS_RECORDING.store(false, Ordering::Relaxed);
        let ours = OURS.load(Ordering::Relaxed);
        // SAFETY: the GIL is held, and the functions are known.
        unsafe {
            if self.is_replaced() {
                // No code calls ours any more: the next trace may start afresh.
                OURS.store(ptr::null_mut(), Ordering::Relaxed);
            } else if get() == ours {
                set(PREVIOUS.load(Ordering::Relaxed));
                OURS.store(ptr::null_mut(), Ordering::Relaxed);
            } else if ASIDE.load(Ordering::Relaxed) > 0 && get() == PREVIOUS.load(Ordering::Relaxed) {
                OURS.store(ptr::null_mut(), Ordering::Relaxed);
            }
        }
    }
}

/// Makes the interpreter call a function of ours, unless code that was installed after ours may still call an older
/// one.
///
/// # Safety
/// The GIL is held, and `install` has looked up the functions.
unsafe fn insert(ours: *mut c_void) -> Result<(), HookError> {
    let (left, previous) = (OURS.load(Ordering::Relaxed), PREVIOUS.load(Ordering::Relaxed));
    // SAFETY: passed on to the caller.
    unsafe {
        let now = get();
        if left.is_null() {
            PREVIOUS.store(now, Ordering::Relaxed);
        } else if now != left && now != previous {
            // Other code has installed a function over one of ours, and may call that.
            return if left == ours { Ok(()) } else { Err(HookError::EvalHookBuried) };
        }
        OURS.store(ours, Ordering::Relaxed);
        set(ours);
    }
    Ok(())
}

/// # Safety
/// The GIL is held, and `install` has looked up the functions.
pub(super) unsafe fn get() -> *mut c_void {
    // SAFETY: the signatures are those of the headers.
    unsafe {
        let get: unsafe extern "C" fn(*mut c_void) -> *mut c_void = mem::transmute(GET.load(Ordering::Relaxed));
        get(this_interpreter())
    }
}

/// # Safety
/// As for [`get`].
pub(super) unsafe fn set(evaluate: *mut c_void) {
    // SAFETY: the signatures are those of the headers.
    unsafe {
        let set: unsafe extern "C" fn(*mut c_void, *mut c_void) = mem::transmute(SET.load(Ordering::Relaxed));
        set(this_interpreter(), evaluate);
    }
}

/// # Safety
/// As for [`get`].
unsafe fn this_interpreter() -> *mut c_void {
    // SAFETY: the signature is that of the documentation.
    unsafe {
        let this: unsafe extern "C" fn() -> *mut c_void = mem::transmute(THIS_INTERPRETER.load(Ordering::Relaxed));
        this()
    }
}

/// Runs a frame without us.
///
/// # Safety
/// The arguments are those of the interpreter.
#[inline(always)]
pub(super) unsafe fn run(state: u64, frame: u64, throw: c_int) -> ObjectPointer {
    // SAFETY: the previous function takes the same arguments.
    unsafe { mem::transmute::<*mut c_void, FrameEvalFunction>(PREVIOUS.load(Ordering::Relaxed))(state, frame, throw) }
}

/// Runs a frame with the hook off, so that deeper calls use no more of the C stack than without it. Calls of other
/// threads are not recorded meanwhile either.
///
/// # Safety
/// The arguments are those of the interpreter.
#[cold]
#[inline(never)]
pub(super) unsafe fn step_aside(state: u64, frame: u64, throw: c_int) -> ObjectPointer {
    STEPPED_ASIDE.fetch_add(1, Ordering::Relaxed);
    let (ours, previous) = (OURS.load(Ordering::Relaxed), PREVIOUS.load(Ordering::Relaxed));
    // SAFETY: the GIL is held before and after; passed on to the caller.
    unsafe {
        if get() != ours {
            return run(state, frame, throw);
        }
        set(previous);
        ASIDE.fetch_add(1, Ordering::Relaxed);
        let result = run(state, frame, throw);
        ASIDE.fetch_sub(1, Ordering::Relaxed);
        if IS_RECORDING.load(Ordering::Relaxed) && get() == previous {
            set(ours);
        }
        result
    }
}

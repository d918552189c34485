//! The callbacks of `sys.monitoring`: each finds the running frame and calls the observer.
//!
//! Hot file: no allocation, no lock, no Python code; never an exception. Only the arguments of native calls are read:
//! otherwise the frame is sufficient.

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use super::api::{HookApi, ObjectReference};
use super::error::HookError;
use super::live_frame::{LiveFrame, field};
use super::native_functions::{self, OBJECT_TYPE, is_descriptor, is_function};
use super::{CallObserver, Entering, Leaving, Verdict, current_state};
use crate::interpreter::Interpreter;
use crate::public_api::ObjectPointer;
use crate::unavailable::Unavailable;

/// From this version on every event can be disabled; before, not those of exceptions.
const DISABLES_EXCEPTIONS: u8 = 15;
/// `im_func` of a bound method.
const METHOD_FUNCTION: usize = 16;

/// `None` and `DISABLE`: both live forever, and are not counted.
static NONE: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static DISABLE: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
/// The object that replaces the first argument of a call that has none.
static MISSING: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static METHOD_TYPE: AtomicU64 = AtomicU64::new(0);

/// Stores what the callbacks need.
///
/// # Safety
/// The GIL is held, and no exception is set.
pub(super) unsafe fn prepare(
    interpreter: &'static Interpreter,
    api: &'static HookApi,
    monitoring: &ObjectReference,
) -> Result<(), HookError> {
    current_state::prepare(interpreter);
    native_functions::prepare(interpreter)?;
    let method_type =
        interpreter.symbols.address(c"PyMethod_Type").ok_or(Unavailable::MissingFunction("PyMethod_Type"))?;
    METHOD_TYPE.store(method_type as u64, Ordering::Relaxed);
    NONE.store(api.none, Ordering::Relaxed);
    // SAFETY: passed on to the caller. Both objects are the interpreter's own, and the references are never released.
    unsafe {
        DISABLE.store(monitoring.attribute(c"DISABLE")?.into_object(), Ordering::Relaxed);
        MISSING.store(monitoring.attribute(c"MISSING")?.into_object(), Ordering::Relaxed);
    }
    Ok(())
}

/// Returns the frame that this thread runs.
#[inline(always)]
fn frame<const MINOR: u8>() -> LiveFrame<MINOR> {
    // SAFETY: an event comes on the thread of its frame, which holds the GIL and so has a state.
    unsafe { LiveFrame::new(LiveFrame::<MINOR>::running(current_state::get())) }
}

#[inline(always)]
fn result_of(verdict: Verdict, can_disable: bool) -> ObjectPointer {
    match verdict {
        Verdict::Disable if can_disable => DISABLE.load(Ordering::Relaxed),
        _ => NONE.load(Ordering::Relaxed),
    }
}

macro_rules! callback {
    ($(#[$about:meta])* $name:ident, $verb:ident, $how:expr, $can_disable:expr) => {
        $(#[$about])*
        ///
        /// # Safety
        /// The interpreter calls it.
        pub(super) unsafe extern "C-unwind" fn $name<O: CallObserver, const MINOR: u8>(
            _: ObjectPointer,
            _: *const ObjectPointer,
            _: usize,
            _: ObjectPointer,
        ) -> ObjectPointer {
            // SAFETY: this is a mechanism, on the thread of the frame.
            result_of(unsafe { O::$verb($how, frame::<MINOR>()) }, $can_disable)
        }
    };
}

callback!(
    /// `PY_START`.
    start, enter, Entering::Call, true
);
callback!(
    /// `PY_RESUME`.
    resume, enter, Entering::Resume, true
);
callback!(
    /// `PY_THROW`.
    throw, enter, Entering::Throw, MINOR >= DISABLES_EXCEPTIONS
);
callback!(
    /// `PY_RETURN`.
    returned, leave, Leaving::Return, true
);
callback!(
    /// `PY_YIELD`.
    yielded, leave, Leaving::Yield, true
);
callback!(
    /// `PY_UNWIND`.
    unwind, leave, Leaving::Raise, MINOR >= DISABLES_EXCEPTIONS
);

/// Returns the native function behind a callee, if it is one that is recorded: a function or a method in C, bound or
/// not. Types and other objects with a `__call__` are not.
///
/// # Safety
/// The arguments are those of a `CALL`, `C_RETURN` or `C_RAISE` event.
#[inline(always)]
unsafe fn native_function(arguments: *const ObjectPointer) -> Option<u64> {
    // SAFETY: such an event has the code, the offset, the callee and its first argument. The last two are alive.
    unsafe {
        let (callable, first) = (*arguments.add(2) as u64, *arguments.add(3));
        let kind: u64 = field(callable, OBJECT_TYPE);
        if is_function(kind) {
            return Some(callable);
        }
        if is_descriptor(kind) {
            return (first != MISSING.load(Ordering::Relaxed)).then_some(callable);
        }
        if kind == METHOD_TYPE.load(Ordering::Relaxed) {
            let function: u64 = field(callable, METHOD_FUNCTION);
            let kind: u64 = field(function, OBJECT_TYPE);
            return (is_function(kind) || is_descriptor(kind)).then_some(function);
        }
    }
    None
}

/// Handles `CALL`.
///
/// # Safety
/// The interpreter calls it.
pub(super) unsafe extern "C-unwind" fn native_call<O: CallObserver, const MINOR: u8>(
    _: ObjectPointer,
    arguments: *const ObjectPointer,
    _: usize,
    _: ObjectPointer,
) -> ObjectPointer {
    // SAFETY: the arguments are those of the event; this is a mechanism, on the thread of the frame.
    unsafe {
        if let Some(callable) = native_function(arguments) {
            O::enter_native(callable, frame::<MINOR>());
        }
    }
    NONE.load(Ordering::Relaxed)
}

/// Handles `C_RETURN`.
///
/// # Safety
/// The interpreter calls it.
pub(super) unsafe extern "C-unwind" fn native_return<O: CallObserver, const MINOR: u8>(
    _: ObjectPointer,
    arguments: *const ObjectPointer,
    _: usize,
    _: ObjectPointer,
) -> ObjectPointer {
    // SAFETY: as for `native_call`.
    unsafe { leave_native::<O, MINOR>(arguments, false) }
}

/// Handles `C_RAISE`.
///
/// # Safety
/// The interpreter calls it.
pub(super) unsafe extern "C-unwind" fn native_raise<O: CallObserver, const MINOR: u8>(
    _: ObjectPointer,
    arguments: *const ObjectPointer,
    _: usize,
    _: ObjectPointer,
) -> ObjectPointer {
    // SAFETY: as for `native_call`.
    unsafe { leave_native::<O, MINOR>(arguments, true) }
}

/// # Safety
/// The arguments are those of a `C_RETURN` or `C_RAISE` event.
#[inline(always)]
unsafe fn leave_native<O: CallObserver, const MINOR: u8>(
    arguments: *const ObjectPointer,
    raised: bool,
) -> ObjectPointer {
    // SAFETY: passed on to the caller; this is a mechanism, on the thread of the frame.
    unsafe {
        if native_function(arguments).is_some() {
            O::leave_native(raised, frame::<MINOR>());
        }
    }
    NONE.load(Ordering::Relaxed)
}

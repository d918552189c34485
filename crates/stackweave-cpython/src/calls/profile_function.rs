//! The profile function that the interpreter calls on each thread.
//!
//! Hot file: no allocation, no lock, no Python code; never an exception.

use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

use super::api::HookApi;
use super::error::HookError;
use super::live_frame::{LiveFrame, field};
use super::{CallFrame, CallObserver, Entering, Leaving};
use crate::interpreter::Interpreter;
use crate::public_api::ObjectPointer;

/// `Py_tracefunc`: an object, a frame object, the event, its argument.
pub(super) type ProfileFunction =
    unsafe extern "C-unwind" fn(ObjectPointer, ObjectPointer, c_int, ObjectPointer) -> c_int;

const CALL: c_int = 0;
const RETURN: c_int = 3;
const NATIVE_CALL: c_int = 4;
const NATIVE_RAISE: c_int = 5;
const NATIVE_RETURN: c_int = 6;

/// The offset of the frame in a frame object of 3.11 or later.
const FRAME: usize = 24;
/// `f_state` of a frame of 3.10.
const STATE_3_10: usize = 108;
const SUSPENDED_3_10: i8 = -1;
/// The distance from a frame back to `gi_frame_state` of its generator, from 3.11 on. A generator that yields is marked
/// as suspended, which is less than 0, before the event; from 3.14 on, after it.
const GENERATOR_STATE_BEFORE: u64 = 5;
const LAST_MARKED_BEFORE_EVENT: u8 = 13;

/// The instructions that end a frame while profile functions are set, from 3.12 on; 0: the version has none.
static YIELD: AtomicU8 = AtomicU8::new(0);
static RETURN_VALUE: AtomicU8 = AtomicU8::new(0);
static RETURN_CONSTANT: AtomicU8 = AtomicU8::new(0);
/// Instructions that replace another one, which can't be determined.
static ANY_LINE: AtomicU8 = AtomicU8::new(0);
static ANY_INSTRUCTION: AtomicU8 = AtomicU8::new(0);
static NONE: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// Looks up what the function needs.
///
/// # Safety
/// The GIL is held, and no exception is set.
pub(super) unsafe fn prepare(interpreter: &Interpreter, api: &'static HookApi) -> Result<(), HookError> {
    NONE.store(api.none, Ordering::Relaxed);
    if interpreter.layout.minor < 12 {
        return Ok(());
    }
    // SAFETY: passed on to the caller.
    unsafe {
        let numbers = api.module(c"opcode")?.attribute(c"opmap")?;
        let none = api.number(0)?;
        for (slot, name) in [
            (&YIELD, c"INSTRUMENTED_YIELD_VALUE"),
            (&RETURN_VALUE, c"INSTRUMENTED_RETURN_VALUE"),
            (&RETURN_CONSTANT, c"INSTRUMENTED_RETURN_CONST"),
            (&ANY_LINE, c"INSTRUMENTED_LINE"),
            (&ANY_INSTRUCTION, c"INSTRUMENTED_INSTRUCTION"),
        ] {
            let number = numbers.call(c"get", &[&api.text(name)?, &none])?.as_number();
            slot.store(u8::try_from(number).unwrap_or(0), Ordering::Relaxed);
        }
    }
    Ok(())
}

/// Returns the number of an event from the name that a profile function in Python gets.
///
/// # Safety
/// `name` is a live `str`, compact and ASCII, as the interpreter's own names are.
pub(super) unsafe fn event_of_name(name: ObjectPointer) -> Option<c_int> {
    let api = super::api::cached()?;
    // SAFETY: passed on to the caller; the GIL is held in an event.
    match unsafe { api.read_text(name) }?.as_str() {
        "call" => Some(CALL),
        "return" => Some(RETURN),
        "c_call" => Some(NATIVE_CALL),
        "c_exception" => Some(NATIVE_RAISE),
        "c_return" => Some(NATIVE_RETURN),
        _ => None,
    }
}

/// # Safety
/// The interpreter calls it.
pub(super) unsafe extern "C-unwind" fn profile_event<O: CallObserver, const MINOR: u8, const NATIVE: bool>(
    _: ObjectPointer,
    frame: ObjectPointer,
    event: c_int,
    argument: ObjectPointer,
) -> c_int {
    // SAFETY: the frame object is alive, and its frame runs on this thread; this is a mechanism.
    unsafe {
        let frame = LiveFrame::<MINOR>::new(if MINOR == 10 { frame as u64 } else { field(frame as u64, FRAME) });
        match event {
            CALL => _ = O::enter(entering(frame), frame),
            RETURN => _ = O::leave(leaving(frame, argument), frame),
            NATIVE_CALL if NATIVE => O::enter_native(argument as u64, frame),
            NATIVE_RETURN | NATIVE_RAISE if NATIVE => O::leave_native(event == NATIVE_RAISE, frame),
            _ => {}
        }
    }
    0
}

/// Returns how the frame starts. A throw can't be distinguished from a resumption.
///
/// # Safety
/// A frame with a `CALL` event.
#[inline(always)]
unsafe fn entering<const MINOR: u8>(frame: LiveFrame<MINOR>) -> Entering {
    let has_run = if MINOR == 10 {
        frame.unit() != u32::MAX
    } else {
        frame.is_in_generator() && !frame.is_before(frame.first_traceable() + 1)
    };
    if has_run { Entering::Resume } else { Entering::Call }
}

/// Returns how the frame stops.
///
/// # Safety
/// A frame with a `RETURN` event that has this argument.
#[inline(always)]
unsafe fn leaving<const MINOR: u8>(frame: LiveFrame<MINOR>, argument: ObjectPointer) -> Leaving {
    if argument.is_null() || (MINOR == 12 && argument == NONE.load(Ordering::Relaxed) && !is_at_end(frame)) {
        return Leaving::Raise;
    }
    // SAFETY: passed on to the caller: the frame is alive, and so is its generator.
    let yields = unsafe {
        match MINOR {
            10 => field::<i8>(frame.address(), STATE_3_10) == SUSPENDED_3_10,
            11..=LAST_MARKED_BEFORE_EVENT => {
                frame.is_in_generator() && field::<i8>(frame.address() - GENERATOR_STATE_BEFORE, 0) < 0
            }
            _ => frame.is_in_generator() && frame.opcode() == YIELD.load(Ordering::Relaxed),
        }
    };
    if yields { Leaving::Yield } else { Leaving::Return }
}

/// Returns whether a frame is at an instruction that ends frames, and not where an exception was raised: 3.12 passes
/// `None` for both.
#[inline(always)]
fn is_at_end<const MINOR: u8>(frame: LiveFrame<MINOR>) -> bool {
    let here = frame.opcode();
    [&YIELD, &RETURN_VALUE, &RETURN_CONSTANT, &ANY_LINE, &ANY_INSTRUCTION]
        .iter()
        .any(|ends| ends.load(Ordering::Relaxed) == here)
}

//! Checks whether the frame evaluation hook is called for every frame: early releases of 3.11 run a `__getitem__` that
//! is often used without it.

use core::ffi::{CStr, c_int, c_void};
use core::mem;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::OnceLock;

use super::api::HookApi;
use super::error::HookError;
use super::eval_hook::{self, FrameEvalFunction};
use super::live_frame::field;
use crate::interpreter::Interpreter;
use crate::public_api::ObjectPointer;

const PROGRAM: &CStr = c"
class Sequence:
    def __getitem__(self, index):
        return index

def use(sequence, times):
    for _ in range(times):
        sequence[0]

use(Sequence(), 64)
";
const USE: &CStr = c"use(Sequence(), 3)";
/// The frame of the statement, that of the function, and three of the method.
const FRAMES: u64 = 5;

static PREVIOUS: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static GLOBALS: AtomicU64 = AtomicU64::new(0);
static GLOBALS_OFFSET: AtomicU64 = AtomicU64::new(0);
static COUNTED: AtomicU64 = AtomicU64::new(0);

/// Counts the frames of the program.
///
/// # Safety
/// The interpreter calls it.
unsafe extern "C-unwind" fn count(state: u64, frame: u64, throw: c_int) -> ObjectPointer {
    let offset = GLOBALS_OFFSET.load(Ordering::Relaxed) as usize;
    // SAFETY: the frame is alive; the previous function takes the same arguments.
    unsafe {
        if field::<u64>(frame, offset) == GLOBALS.load(Ordering::Relaxed) {
            COUNTED.fetch_add(1, Ordering::Relaxed);
        }
        mem::transmute::<*mut c_void, FrameEvalFunction>(PREVIOUS.load(Ordering::Relaxed))(state, frame, throw)
    }
}

/// Runs the check, once.
///
/// # Safety
/// The GIL is held, no exception is set, and the functions of [`eval_hook`] are known.
pub(super) unsafe fn sees_every_frame(interpreter: &Interpreter, api: &'static HookApi) -> Result<bool, HookError> {
    static RESULT: OnceLock<bool> = OnceLock::new();
    if let Some(result) = RESULT.get() {
        return Ok(*result);
    }
    // SAFETY: passed on to the caller. The previous function is restored, unless other code has installed its own.
    let outcome = unsafe {
        let builtins = api.module(c"builtins")?;
        let globals = builtins.call(c"dict", &[])?;
        let (program, statement) = (api.text(PROGRAM)?, api.text(USE)?);
        builtins.call(c"exec", &[&program, &globals])?;
        GLOBALS.store(globals.object() as u64, Ordering::Relaxed);
        GLOBALS_OFFSET.store(interpreter.layout.frame.globals as u64, Ordering::Relaxed);
        COUNTED.store(0, Ordering::Relaxed);
        PREVIOUS.store(eval_hook::get(), Ordering::Relaxed);
        eval_hook::set(count as *mut c_void);
        let outcome = builtins.call(c"exec", &[&statement, &globals]);
        if eval_hook::get() == count as *mut c_void {
            eval_hook::set(PREVIOUS.load(Ordering::Relaxed));
        }
        let cleared = globals.call(c"clear", &[]);
        outcome.and(cleared)
    };
    outcome?;
    Ok(*RESULT.get_or_init(|| COUNTED.load(Ordering::Relaxed) == FRAMES))
}

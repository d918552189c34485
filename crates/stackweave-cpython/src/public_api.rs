//! The slow way to the same frames: the interpreter's public functions, which need the GIL.
//!
//! It works on any version and build, so it is the fallback where the direct walk is refused, and the oracle that the
//! direct walk is tested against.

use core::ffi::{c_char, c_int, c_long, c_void};
use std::sync::OnceLock;

use stackweave_core::SourceStop;

use crate::frame::{CodePointer, PythonFrame, Walked};
use crate::interpreter::first_of;
use crate::symbols::Symbols;
use crate::unavailable::Unavailable;

pub(crate) type Object = *mut c_void;

/// The public functions that lead along frames.
#[derive(Clone, Copy, Debug)]
pub struct PublicApi {
    is_initialized: unsafe extern "C" fn() -> c_int,
    holds_gil: unsafe extern "C" fn() -> c_int,
    current_frame: unsafe extern "C" fn() -> Object,
    frame_back: unsafe extern "C" fn(Object) -> Object,
    frame_code: unsafe extern "C" fn(Object) -> Object,
    attribute: unsafe extern "C" fn(Object, *const c_char) -> Object,
    as_long: unsafe extern "C" fn(Object) -> c_long,
    increment: unsafe extern "C" fn(Object),
    decrement: unsafe extern "C" fn(Object),
}

impl PublicApi {
    /// The functions of the interpreter in this process.
    pub fn find() -> Result<&'static Self, Unavailable> {
        static FOUND: OnceLock<PublicApi> = OnceLock::new();
        if let Some(found) = FOUND.get() {
            return Ok(found);
        }
        let symbols = Symbols::find().ok_or(Unavailable::NoInterpreter)?;
        // SAFETY: the signatures are those of the documentation, the same in every version from 3.9 on.
        let found = unsafe {
            Self {
                is_initialized: first_of(symbols, &[c"Py_IsInitialized"])?,
                holds_gil: first_of(symbols, &[c"PyGILState_Check"])?,
                current_frame: first_of(symbols, &[c"PyEval_GetFrame"])?,
                frame_back: first_of(symbols, &[c"PyFrame_GetBack"])?,
                frame_code: first_of(symbols, &[c"PyFrame_GetCode"])?,
                attribute: first_of(symbols, &[c"PyObject_GetAttrString"])?,
                as_long: first_of(symbols, &[c"PyLong_AsLong"])?,
                increment: first_of(symbols, &[c"Py_IncRef"])?,
                decrement: first_of(symbols, &[c"Py_DecRef"])?,
            }
        };
        Ok(FOUND.get_or_init(|| found))
    }

    /// Walks this thread's frames, innermost first. Where native code entered Python is not known this way. Needs the
    /// GIL, and does not take it: without, the result is empty.
    pub fn walk(&self, frames: &mut [PythonFrame]) -> Walked {
        // SAFETY: may be called at any time.
        if unsafe { (self.is_initialized)() } == 0 {
            return Walked::nothing(SourceStop::NotInitialized);
        }
        if !self.holds_gil() {
            return Walked::nothing(SourceStop::NoGil);
        }
        let mut len = 0;
        // SAFETY: the GIL is held, so each function may be called with a live frame: the first is borrowed from the
        // thread, the others are references of ours, given back after use.
        unsafe {
            let mut frame = (self.current_frame)();
            if !frame.is_null() {
                (self.increment)(frame);
            }
            while !frame.is_null() {
                let Some(slot) = frames.get_mut(len) else {
                    (self.decrement)(frame);
                    return Walked { len, stop: SourceStop::DepthLimit };
                };
                *slot = self.read(frame);
                len += 1;
                let back = (self.frame_back)(frame);
                (self.decrement)(frame);
                frame = back;
            }
        }
        Walked { len, stop: SourceStop::EndOfStack }
    }

    pub(crate) fn holds_gil(&self) -> bool {
        // SAFETY: may be called at any time.
        unsafe { (self.holds_gil)() != 0 }
    }

    /// # Safety
    /// The GIL is held, the object is alive.
    pub(crate) unsafe fn another_reference(&self, object: Object) -> Object {
        // SAFETY: passed on to the caller.
        unsafe { (self.increment)(object) };
        object
    }

    /// # Safety
    /// The GIL is held, `frame` is a live frame object.
    unsafe fn read(&self, frame: Object) -> PythonFrame {
        // SAFETY: the caller's word; every frame has a code object, which it keeps alive after our reference is gone.
        unsafe {
            let code = (self.frame_code)(frame);
            (self.decrement)(code);
            let index = (self.attribute)(frame, c"f_lasti".as_ptr());
            let instruction = (self.as_long)(index);
            (self.decrement)(index);
            PythonFrame {
                code: CodePointer::new(code as u64),
                instruction: u32::try_from(instruction).unwrap_or(PythonFrame::NOT_BEGUN),
                ..PythonFrame::default()
            }
        }
    }
}

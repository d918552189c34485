//! Reads frames by the interpreter's public functions, which is slower and needs the GIL.
//!
//! It works on any version and build. So it is the fallback where the direct walk is rejected, and the oracle that the
//! direct walk is tested against.

use core::ffi::{c_char, c_int, c_long, c_void};
use std::sync::OnceLock;

use stackweave_core::SourceStop;

use crate::frame::{CodePointer, PythonFrame, WalkResult};
use crate::interpreter::{first_of, version};
use crate::symbols::SymbolLookup;
use crate::thread_state::is_state_of_this_thread;
use crate::unavailable::Unavailable;
use crate::version::VersionLayout;

pub(crate) type ObjectPointer = *mut c_void;

/// The public functions for frames.
#[derive(Clone, Copy, Debug)]
pub struct PublicApi {
    is_initialized: unsafe extern "C" fn() -> c_int,
    may_hold_gil: unsafe extern "C" fn() -> c_int,
    this_thread_state: unsafe extern "C" fn() -> *mut c_void,
    holder_state: unsafe extern "C" fn() -> *mut c_void,
    current_frame: unsafe extern "C" fn() -> ObjectPointer,
    frame_back: unsafe extern "C" fn(ObjectPointer) -> ObjectPointer,
    frame_code: unsafe extern "C" fn(ObjectPointer) -> ObjectPointer,
    attribute: unsafe extern "C" fn(ObjectPointer, *const c_char) -> ObjectPointer,
    as_long: unsafe extern "C" fn(ObjectPointer) -> c_long,
    increment: unsafe extern "C" fn(ObjectPointer),
    decrement: unsafe extern "C" fn(ObjectPointer),
    minor: u8,
}

impl PublicApi {
    /// Returns the functions of the interpreter in this process.
    pub fn find() -> Result<&'static Self, Unavailable> {
        static API: OnceLock<PublicApi> = OnceLock::new();
        if let Some(api) = API.get() {
            return Ok(api);
        }
        let symbols = SymbolLookup::find().ok_or(Unavailable::NoInterpreter)?;
        // SAFETY: the signatures are those of the documentation, the same in every version from 3.9 on.
        let api = unsafe {
            Self {
                is_initialized: first_of(symbols, &[c"Py_IsInitialized"])?,
                may_hold_gil: first_of(symbols, &[c"PyGILState_Check"])?,
                this_thread_state: first_of(symbols, &[c"PyGILState_GetThisThreadState"])?,
                holder_state: first_of(symbols, &[c"PyThreadState_GetUnchecked", c"_PyThreadState_UncheckedGet"])?,
                current_frame: first_of(symbols, &[c"PyEval_GetFrame"])?,
                frame_back: first_of(symbols, &[c"PyFrame_GetBack"])?,
                frame_code: first_of(symbols, &[c"PyFrame_GetCode"])?,
                attribute: first_of(symbols, &[c"PyObject_GetAttrString"])?,
                as_long: first_of(symbols, &[c"PyLong_AsLong"])?,
                increment: first_of(symbols, &[c"Py_IncRef"])?,
                decrement: first_of(symbols, &[c"Py_DecRef"])?,
                minor: version(symbols)?.1,
            }
        };
        Ok(API.get_or_init(|| api))
    }

    /// Walks this thread's frames, innermost first. It can't find out where native code entered Python. Needs the GIL,
    /// and does not take it: without it, the result is empty.
    pub fn walk(&self, frames: &mut [PythonFrame]) -> WalkResult {
        let mut len = 0;
        let write = &mut |frame| {
            *frames.get_mut(len).ok_or(SourceStop::DepthLimit)? = frame;
            len += 1;
            Ok(())
        };
        let stop = match self.current_frame() {
            // SAFETY: the GIL is held, and the frame is a reference of ours.
            Ok(first) => unsafe { self.visit(first, write) },
            Err(stop) => stop,
        };
        WalkResult { len, stop }
    }

    /// Returns a reference to this thread's innermost frame; null if it has none.
    pub(crate) fn current_frame(&self) -> Result<ObjectPointer, SourceStop> {
        // SAFETY: may be called at any time.
        if unsafe { (self.is_initialized)() } == 0 {
            return Err(SourceStop::NotInitialized);
        }
        if !self.holds_gil() {
            return Err(SourceStop::NoGil);
        }
        // SAFETY: the GIL is held; the frame is borrowed from the thread.
        unsafe {
            let frame = (self.current_frame)();
            if !frame.is_null() {
                (self.increment)(frame);
            }
            Ok(frame)
        }
    }

    /// Visits the frames until there are no more, or the visitor returns a reason to stop. The code object of a frame
    /// is alive while it is visited.
    ///
    /// # Safety
    /// The GIL is held; `frame` is null or a reference to a frame object that this function may release.
    pub(crate) unsafe fn visit(
        &self,
        mut frame: ObjectPointer,
        visitor: &mut dyn FnMut(PythonFrame) -> Result<(), SourceStop>,
    ) -> SourceStop {
        while !frame.is_null() {
            // SAFETY: each frame is a reference of ours, released after use.
            unsafe {
                let visited = visitor(self.read(frame));
                let back = if visited.is_ok() { (self.frame_back)(frame) } else { core::ptr::null_mut() };
                (self.decrement)(frame);
                if let Err(stop) = visited {
                    return stop;
                }
                frame = back;
            }
        }
        SourceStop::EndOfStack
    }

    /// Returns whether this thread holds the GIL. Once a sub-interpreter was created, `PyGILState_Check` returns 1 for
    /// every thread.
    pub(crate) fn holds_gil(&self) -> bool {
        // SAFETY: may be called at any time, from any thread; the states are not dereferenced.
        let (may, own, holder) =
            unsafe { ((self.may_hold_gil)() != 0, (self.this_thread_state)() as u64, (self.holder_state)() as u64) };
        if !may || holder == 0 {
            return false;
        }
        // From 3.12 on, the function returns null for a thread that does not hold it.
        self.minor >= 12
            || own == holder
            || VersionLayout::of_minor(self.minor).is_some_and(|layout| is_state_of_this_thread(layout, holder))
    }

    /// # Safety
    /// The GIL is held, the object is alive.
    pub(crate) unsafe fn another_reference(&self, object: ObjectPointer) -> ObjectPointer {
        // SAFETY: passed on to the caller.
        unsafe { (self.increment)(object) };
        object
    }

    /// # Safety
    /// The GIL is held, `frame` is a live frame object.
    unsafe fn read(&self, frame: ObjectPointer) -> PythonFrame {
        // SAFETY: passed on to the caller; every frame has a code object, which it keeps alive after our reference is
        // released.
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

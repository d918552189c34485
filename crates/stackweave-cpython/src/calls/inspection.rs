//! Reads frames and code objects for observers of calls.

use stackweave_core::CodeId;

use super::CallFrame;
use super::api::HookApi;
use super::live_frame::{LiveFrame, field};
use crate::code_table::CODES;
use crate::interpreter::Interpreter;
use crate::source::PythonSource;
use crate::text::{StrText, text};
use crate::thread_state::ThreadStatePointer;

/// A frame on a thread's stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackFrame {
    /// Its address.
    pub address: u64,
    /// The address of its code object.
    pub code: u64,
    /// The code unit of its current instruction: half of `f_lasti`.
    pub unit: u32,
}

/// Returns the id of the code object at this address, if it was seen before: else [`PythonSource::code_id`] creates
/// one. The code object is alive. A hot function: no allocation, no lock.
#[inline(always)]
pub fn known_code(address: u64) -> Option<CodeId> {
    CODES.id_at(address)
}

/// Compiles an expression once for each version, with its number as a constant.
macro_rules! with_minor {
    ($minor:expr, $constant:ident => $body:expr) => {
        match $minor {
            10 => {
                const $constant: u8 = 10;
                $body
            }
            11 => {
                const $constant: u8 = 11;
                $body
            }
            12 => {
                const $constant: u8 = 12;
                $body
            }
            13 => {
                const $constant: u8 = 13;
                $body
            }
            14 => {
                const $constant: u8 = 14;
                $body
            }
            _ => {
                const $constant: u8 = 15;
                $body
            }
        }
    };
}
pub(super) use with_minor;

impl PythonSource {
    /// Returns `co_flags` of a code object; 0 if code objects can't be read directly.
    ///
    /// # Safety
    /// The code object is alive.
    pub unsafe fn code_flags(&self, code: u64) -> u32 {
        // SAFETY: passed on to the caller.
        self.interpreter().map_or(0, |interpreter| unsafe { field(code, interpreter.layout.code.flags) })
    }

    /// Returns `__name__` of a frame's module, if that is a `str`.
    ///
    /// # Safety
    /// The GIL is held, and the frame is that of an event, or on the stack.
    pub unsafe fn module_name(&self, frame: u64) -> Option<String> {
        let interpreter = self.interpreter()?;
        let api = HookApi::find(interpreter).ok()?;
        // SAFETY: a frame has its globals, a dictionary, and keeps them alive. The value is borrowed from it, and is an
        // object that begins with its type.
        unsafe {
            let globals: u64 = field(frame, interpreter.layout.frame.globals);
            api.without_error(|| {
                let name = (api.dict_item)(globals as usize as *mut _, c"__name__".as_ptr()) as u64;
                let is_text =
                    name != 0 && field::<u64>(name, 8) == interpreter.symbols.address(c"PyUnicode_Type")? as u64;
                if is_text { text(&interpreter.layout.text, name).map(StrText::decode) } else { None }
            })
        }
    }

    /// Visits the Python frames of this thread, innermost first.
    ///
    /// # Safety
    /// The GIL is held.
    pub unsafe fn visit_frames(&self, visit: impl FnMut(StackFrame)) {
        if let Some(interpreter) = self.interpreter()
            && let Ok(state) = interpreter.thread_state()
        {
            // SAFETY: the state is this thread's.
            unsafe { frames_of(interpreter, state, visit) };
        }
    }

    /// Visits those of another thread.
    ///
    /// # Safety
    /// The GIL is held, and the state is one of [`PythonSource::thread_states`], which was called since the GIL was
    /// taken.
    pub unsafe fn visit_frames_of(&self, state: ThreadStatePointer, visit: impl FnMut(StackFrame)) {
        if let Some(interpreter) = self.interpreter() {
            // SAFETY: passed on to the caller.
            unsafe { frames_of(interpreter, state, visit) };
        }
    }
}

/// # Safety
/// The state is alive, and its frames do not change.
unsafe fn frames_of(interpreter: &Interpreter, state: ThreadStatePointer, mut visit: impl FnMut(StackFrame)) {
    with_minor!(interpreter.layout.minor, MINOR => {
        // SAFETY: passed on to the caller.
        let mut next = unsafe { LiveFrame::<MINOR>::first_visible(LiveFrame::<MINOR>::running(state.address())) };
        while let Some(frame) = next {
            visit(StackFrame { address: frame.address(), code: frame.code(), unit: frame.unit() });
            next = frame.caller();
        }
    });
}

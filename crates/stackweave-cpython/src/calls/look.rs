//! What is asked about frames and code objects when calls are told of.

use stackweave_core::CodeId;

use super::CallFrame;
use super::api::Api;
use super::frame::{Frame, field};
use crate::code_table::CODES;
use crate::interpreter::Interpreter;
use crate::source::PythonSource;
use crate::text::{Text, text};
use crate::thread_state::ThreadStatePointer;

/// A frame, as the walks of calls tell of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameAt {
    /// Its address.
    pub address: u64,
    /// The address of its code object.
    pub code: u64,
    /// The code unit that it stands at: half of `f_lasti`.
    pub unit: u32,
}

/// The id of the code object at this address, if it has been seen: else [`PythonSource::code_id`] gives it one. The code
/// object is alive. A hot function: no allocation, no lock.
#[inline(always)]
pub fn known_code(address: u64) -> Option<CodeId> {
    CODES.id_at(address)
}

/// Runs a part once for each version, with its number as a constant.
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
    /// `co_flags` of a code object; 0 where code objects can't be read directly.
    ///
    /// # Safety
    /// The code object is alive.
    pub unsafe fn code_flags(&self, code: u64) -> u32 {
        // SAFETY: passed on to the caller.
        self.interpreter().map_or(0, |interpreter| unsafe { field(code, interpreter.layout.code.flags) })
    }

    /// `__name__` of the module that a frame runs in, if that is a `str`.
    ///
    /// # Safety
    /// The GIL is held, and the frame is one that is told of, or on the stack.
    pub unsafe fn module_name(&self, frame: u64) -> Option<String> {
        let interpreter = self.interpreter()?;
        let api = Api::find(interpreter).ok()?;
        // SAFETY: a frame has its globals, a dictionary, and keeps them alive. What is found is borrowed from it, and is
        // an object that begins with its type.
        unsafe {
            let globals: u64 = field(frame, interpreter.layout.frame.globals);
            api.without_error(|| {
                let name = (api.dict_item)(globals as usize as *mut _, c"__name__".as_ptr()) as u64;
                let is_text =
                    name != 0 && field::<u64>(name, 8) == interpreter.symbols.address(c"PyUnicode_Type")? as u64;
                if is_text { text(&interpreter.layout.text, name).map(Text::decode) } else { None }
            })
        }
    }

    /// The Python frames of this thread, innermost first.
    ///
    /// # Safety
    /// The GIL is held.
    pub unsafe fn visit_frames(&self, visit: impl FnMut(FrameAt)) {
        if let Some(interpreter) = self.interpreter()
            && let Ok(state) = interpreter.thread_state()
        {
            // SAFETY: the state is this thread's.
            unsafe { frames_of(interpreter, state, visit) };
        }
    }

    /// Those of another thread.
    ///
    /// # Safety
    /// The GIL is held, and the state is one of [`PythonSource::thread_states`], called since the GIL was taken.
    pub unsafe fn visit_frames_of(&self, state: ThreadStatePointer, visit: impl FnMut(FrameAt)) {
        if let Some(interpreter) = self.interpreter() {
            // SAFETY: passed on to the caller.
            unsafe { frames_of(interpreter, state, visit) };
        }
    }
}

/// # Safety
/// The state is alive, and its frames stay as they are.
unsafe fn frames_of(interpreter: &Interpreter, state: ThreadStatePointer, mut visit: impl FnMut(FrameAt)) {
    with_minor!(interpreter.layout.minor, MINOR => {
        // SAFETY: passed on to the caller.
        let mut next = unsafe { Frame::<MINOR>::first_shown(Frame::<MINOR>::running(state.address())) };
        while let Some(frame) = next {
            visit(FrameAt { address: frame.address(), code: frame.code(), unit: frame.unit() });
            next = frame.caller();
        }
    });
}

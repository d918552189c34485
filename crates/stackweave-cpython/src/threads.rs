//! Lists the threads of the interpreter.

use core::ffi::c_void;
use core::ptr;

use crate::interpreter::{Interpreter, first_of};
use crate::memory::word;
use crate::source::PythonSource;
use crate::thread_state::ThreadStatePointer;
use crate::unavailable::Unavailable;

type Pointer = *mut c_void;

/// The public functions for the lists of interpreters and threads.
struct ThreadLists {
    this_interpreter: unsafe extern "C" fn() -> Pointer,
    newest_interpreter: unsafe extern "C" fn() -> Pointer,
    next_interpreter: unsafe extern "C" fn(Pointer) -> Pointer,
    first_thread: unsafe extern "C" fn(Pointer) -> Pointer,
    next_thread: unsafe extern "C" fn(Pointer) -> Pointer,
}

impl ThreadLists {
    fn look_up(interpreter: &Interpreter) -> Result<Self, Unavailable> {
        let symbols = interpreter.symbols;
        // SAFETY: the signatures are those of the documentation, the same in every version from 3.9 on.
        unsafe {
            Ok(Self {
                this_interpreter: first_of(symbols, &[c"PyInterpreterState_Get"])?,
                newest_interpreter: first_of(symbols, &[c"PyInterpreterState_Head"])?,
                next_interpreter: first_of(symbols, &[c"PyInterpreterState_Next"])?,
                first_thread: first_of(symbols, &[c"PyInterpreterState_ThreadHead"])?,
                next_thread: first_of(symbols, &[c"PyThreadState_Next"])?,
            })
        }
    }
}

/// Returns the states of the threads of the current interpreter. The GIL is held.
pub(crate) fn states_of_this_interpreter(interpreter: &Interpreter) -> Vec<u64> {
    let Ok(lists) = ThreadLists::look_up(interpreter) else { return Vec::new() };
    let mut states = Vec::new();
    // SAFETY: the GIL is held: no thread leaves the list. New ones are put before the first.
    unsafe {
        let mut state = (lists.first_thread)((lists.this_interpreter)());
        while !state.is_null() {
            states.push(state as u64);
            state = (lists.next_thread)(state);
        }
    }
    states
}

impl PythonSource {
    /// Returns the threads whose frames can't change while the GIL is held, each with its `threading.get_ident`. From
    /// 3.12 on, where each interpreter may have a GIL, these are the threads of the current interpreter; before, those
    /// of all. Empty without the GIL, and if frames can only be read by the public API.
    pub fn thread_states(&self) -> Vec<(u64, ThreadStatePointer)> {
        let Some(interpreter) = self.interpreter().filter(|interpreter| interpreter.holds_gil()) else {
            return Vec::new();
        };
        let Ok(lists) = ThreadLists::look_up(interpreter) else { return Vec::new() };
        let shares_gil = !interpreter.layout.thread.follows_swaps;
        let mut states = Vec::new();
        // SAFETY: the GIL is held: none of its interpreters ends, and no thread leaves the list. New ones are put
        // before the first.
        unsafe {
            let mut owner = if shares_gil { (lists.newest_interpreter)() } else { (lists.this_interpreter)() };
            while !owner.is_null() {
                let mut state = (lists.first_thread)(owner);
                while !state.is_null() {
                    let address = state as u64;
                    let thread = word(address, interpreter.layout.thread.thread_id);
                    states.push((thread, ThreadStatePointer::new(address)));
                    state = (lists.next_thread)(state);
                }
                owner = if shares_gil { (lists.next_interpreter)(owner) } else { ptr::null_mut() };
            }
        }
        states
    }
}

//! Hides the callers of a program that another Python program runs.
//!
//! A program that the interpreter itself runs has no callers: `sys._getframe` and tracebacks end with its own frames,
//! and the recursion limit counts from there. While callers are hidden, this also holds for a program that they run.

use core::ffi::{c_int, c_void};

use crate::data_stack::DataStack;
use crate::interpreter::{Interpreter, first_of};
use crate::memory::{is_plausible, load, store, word};
use crate::version::{Chain, RecursionLayout};

/// A command has fewer callers than this.
const MAX_CALLERS: i32 = 256;

/// The calling thread's frames, hidden until [`HiddenCallers::show`].
#[derive(Debug)]
#[must_use]
pub struct HiddenCallers {
    /// The address of the interpreter's pointer to the innermost frame.
    slot: u64,
    frame: u64,
    state: u64,
    recursion: RecursionLayout,
    /// The number of levels of recursion that the callers use.
    depth: i32,
    /// The number of levels of C recursion that they use, if these are counted separately.
    c_depth: i32,
    data_stack: Option<DataStack>,
}

impl HiddenCallers {
    /// Hides all frames of this thread. Returns `None`, and changes nothing, if the interpreter's structures are not as
    /// expected.
    ///
    /// # Safety
    /// The calling thread holds the GIL. No Python code of the callers runs before [`HiddenCallers::show`].
    pub unsafe fn hide() -> Option<Self> {
        let interpreter = Interpreter::find().ok()?;
        let recursion = interpreter.layout.thread.recursion;
        let state = interpreter.thread_state().ok()?.address();
        // SAFETY: the signatures are those of the headers of 3.10 to 3.15.
        let (current, limit): (CurrentFrame, RecursionLimit) = unsafe {
            (
                first_of(interpreter.symbols, &[c"PyEval_GetFrame"]).ok()?,
                first_of(interpreter.symbols, &[c"Py_GetRecursionLimit"]).ok()?,
            )
        };
        // SAFETY: the state is this thread's, which holds the GIL.
        unsafe {
            let slot = slot_of(interpreter, state)?;
            let frame = word(slot, 0);
            let depth = recursion.depth(state, limit())?;
            if !is_plausible(frame) || current().is_null() || !(1..MAX_CALLERS).contains(&depth) {
                return None;
            }
            let end = end_of_chain(interpreter, state, frame)?;
            let c_depth = recursion.c_depth(interpreter, state).filter(|depth| (0..MAX_CALLERS).contains(depth));
            store(slot, 0, end);
            if !current().is_null() {
                store(slot, 0, frame);
                return None;
            }
            let data_stack = DataStack::set_aside(interpreter, state);
            let hidden = Self { slot, frame, state, recursion, depth, c_depth: c_depth.unwrap_or(0), data_stack };
            hidden.add_depth(-1);
            Some(hidden)
        }
    }

    /// Makes the frames visible again.
    ///
    /// # Safety
    /// The same thread holds the GIL, and the program has returned.
    pub unsafe fn show(self) {
        // SAFETY: the fields are of this thread's state, and of its caller's part of the C stack.
        unsafe {
            store(self.slot, 0, self.frame);
            self.add_depth(1);
            if let Some(data_stack) = self.data_stack {
                data_stack.restore();
            }
        }
    }

    /// Adds the callers' levels to those of the thread, or subtracts them.
    ///
    /// # Safety
    /// As for [`slot_of`].
    unsafe fn add_depth(&self, sign: i32) {
        let add = |field: usize, levels: i32| {
            // SAFETY: passed on to the caller.
            unsafe { store(self.state, field, load::<i32>(self.state, field) + levels) }
        };
        match self.recursion {
            RecursionLayout::Depth { depth } => add(depth, sign * self.depth),
            RecursionLayout::Remaining { remaining, c_remaining, .. } => {
                add(remaining, -sign * self.depth);
                if let Some(c_remaining) = c_remaining {
                    add(c_remaining, -sign * self.c_depth);
                }
            }
        }
    }
}

/// `PyEval_GetFrame`: returns a borrowed reference, or null.
type CurrentFrame = unsafe extern "C" fn() -> *mut c_void;
/// `Py_GetRecursionLimit`.
type RecursionLimit = unsafe extern "C" fn() -> c_int;

/// `PyThreadState_New`: its argument is an interpreter.
type NewState = unsafe extern "C" fn(*mut c_void) -> *mut c_void;
/// `PyThreadState_Clear` and `PyThreadState_Delete`.
type EndState = unsafe extern "C" fn(*mut c_void);

/// Returns the address of a thread's pointer to its innermost frame.
///
/// # Safety
/// The state is the calling thread's, which holds the GIL.
unsafe fn slot_of(interpreter: &Interpreter, state: u64) -> Option<u64> {
    match interpreter.layout.thread.chain {
        Chain::FrameObjects { frame: field, .. } | Chain::Shims { current_frame: field } => Some(state + field as u64),
        Chain::EntryFlags { c_frame, current_frame, .. } | Chain::ShimsBehindCFrame { c_frame, current_frame, .. } => {
            // SAFETY: passed on to the caller.
            let c_frame = unsafe { word(state, c_frame) };
            is_plausible(c_frame).then_some(c_frame + current_frame as u64)
        }
    }
}

/// Returns what a thread without frames has as its innermost frame. `None` if the chain does not end there.
///
/// # Safety
/// As for [`slot_of`]; the frame is the innermost of the thread.
unsafe fn end_of_chain(interpreter: &Interpreter, state: u64, frame: u64) -> Option<u64> {
    let Some(base_frame) = interpreter.layout.thread.base_frame else { return Some(0) };
    // SAFETY: passed on to the caller.
    let base = unsafe { word(state, base_frame) };
    let callers = core::iter::successors(Some(frame), |&frame| {
        // SAFETY: each frame of a chain points to the next one.
        let previous = unsafe { word(frame, interpreter.layout.frame.previous) };
        is_plausible(previous).then_some(previous)
    });
    (callers.last() == Some(base)).then_some(base)
}

impl RecursionLayout {
    /// Returns the depth of the thread's calls; `None` if its limit is not that of the interpreter.
    ///
    /// # Safety
    /// As for [`slot_of`].
    unsafe fn depth(self, state: u64, limit: c_int) -> Option<i32> {
        // SAFETY: passed on to the caller.
        unsafe {
            match self {
                Self::Depth { depth } => Some(load(state, depth)),
                Self::Remaining { remaining, limit: field, .. } => {
                    let own: i32 = load(state, field);
                    (own == limit).then(|| own - load::<i32>(state, remaining))
                }
            }
        }
    }

    /// Returns the depth of C calls, where these have a separate limit: the difference to a new thread state.
    ///
    /// # Safety
    /// As for [`slot_of`].
    unsafe fn c_depth(self, interpreter: &Interpreter, state: u64) -> Option<i32> {
        let Self::Remaining { c_remaining: Some(field), .. } = self else { return None };
        let symbols = interpreter.symbols;
        // SAFETY: the signatures are those of the headers of 3.10 to 3.15. The GIL is held, and no other thread uses the
        // new state.
        unsafe {
            let new: NewState = first_of(symbols, &[c"PyThreadState_New"]).ok()?;
            let clear: EndState = first_of(symbols, &[c"PyThreadState_Clear"]).ok()?;
            let delete: EndState = first_of(symbols, &[c"PyThreadState_Delete"]).ok()?;
            let fresh = new((interpreter.functions.main_interpreter)());
            if fresh.is_null() {
                return None;
            }
            let all: i32 = load(fresh as u64, field);
            clear(fresh);
            delete(fresh);
            Some(all - load::<i32>(state, field))
        }
    }
}

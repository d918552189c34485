//! The check at start: a known program, in which the direct walk and the public API must return the same frames at each
//! interesting position. It turns a layout that differs from the tables into slowness instead of wrong stacks.

use core::ffi::{CStr, c_char, c_int};
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use crate::frame::PythonFrame;
use crate::interpreter::{Interpreter, first_of};
use crate::public_api::{ObjectPointer, PublicApi};
use crate::unavailable::Unavailable;

/// Nested calls, a generator, and a class that is instantiated so often that the interpreter specializes the call.
const PROGRAM: &CStr = c"
def recurse(depth):
    return recurse(depth - 1) if depth else compare()

def generate():
    yield compare()

class Made:
    def __init__(self):
        compare()

def instantiate(times):
    for _ in range(times):
        Made()

recurse(8)
list(generate())
list(map(lambda _: compare(), [1, 2]))
instantiate(64)
";
const COMPARISONS: usize = 1 + 1 + 2 + 64;
const DEPTH: usize = 128;

/// The interpreter whose walk is tested. Set by the thread that holds the GIL, only to one that lives forever.
static SUBJECT: AtomicPtr<Interpreter> = AtomicPtr::new(ptr::null_mut());
static COMPARED: AtomicUsize = AtomicUsize::new(0);
static DIFFERENT: AtomicUsize = AtomicUsize::new(0);

/// Runs the check. Needs the GIL, and no exception set.
pub fn self_test(interpreter: &'static Interpreter) -> Result<(), Unavailable> {
    if !PublicApi::find()?.holds_gil() {
        return Err(Unavailable::SelfTestNotRun);
    }
    let (compared, different) = (COMPARED.load(Ordering::Relaxed), DIFFERENT.load(Ordering::Relaxed));
    let runner = Runner::look_up(interpreter)?;
    SUBJECT.store(ptr::from_ref(interpreter).cast_mut(), Ordering::Release);
    // SAFETY: the GIL is held.
    let is_complete = unsafe { runner.run() };
    if DIFFERENT.load(Ordering::Relaxed) != different {
        return Err(Unavailable::SelfTestDiffers);
    }
    if !is_complete || COMPARED.load(Ordering::Relaxed) < compared + COMPARISONS {
        return Err(Unavailable::SelfTestNotRun);
    }
    Ok(())
}

/// Returns whether both ways return the same frames here. Stacks deeper than the buffers are compared up to their size.
fn agree() -> bool {
    // SAFETY: the subject is null or lives forever, and nothing changes it.
    let Some(interpreter) = (unsafe { SUBJECT.load(Ordering::Acquire).as_ref() }) else { return false };
    let Ok(api) = PublicApi::find() else { return false };
    let mut direct = [PythonFrame::default(); DEPTH];
    let mut public = direct;
    let (walked, expected) = (interpreter.walk(&mut direct), api.walk(&mut public));
    let same = |(ours, reference): (&PythonFrame, &PythonFrame)| {
        ours.code == reference.code && ours.instruction == reference.instruction
    };
    walked == expected && direct.iter().zip(&public).take(walked.len).all(same)
}

/// `PyMethodDef`.
#[repr(C)]
struct Method {
    name: *const c_char,
    function: unsafe extern "C" fn(ObjectPointer, ObjectPointer) -> ObjectPointer,
    flags: c_int,
    doc: *const c_char,
}

// SAFETY: it is constant.
unsafe impl Sync for Method {}

const NO_ARGUMENTS: c_int = 4;
const FILE_INPUT: c_int = 257;

static COMPARE: Method = Method { name: c"compare".as_ptr(), function: compare, flags: NO_ARGUMENTS, doc: ptr::null() };

/// Compares the walks. The program calls it. Returns the object that it is bound to.
///
/// # Safety
/// The interpreter calls it, with the GIL held.
unsafe extern "C" fn compare(bound: ObjectPointer, _: ObjectPointer) -> ObjectPointer {
    COMPARED.fetch_add(1, Ordering::Relaxed);
    if !agree() {
        DIFFERENT.fetch_add(1, Ordering::Relaxed);
    }
    let Ok(api) = PublicApi::find() else { return ptr::null_mut() };
    // SAFETY: the GIL is held, and the function keeps alive the object that it is bound to.
    unsafe { api.another_reference(bound) }
}

/// The public functions that run a program.
struct Runner {
    new_dict: unsafe extern "C" fn() -> ObjectPointer,
    set_item: unsafe extern "C" fn(ObjectPointer, *const c_char, ObjectPointer) -> c_int,
    builtins: unsafe extern "C" fn() -> ObjectPointer,
    new_function: unsafe extern "C" fn(*const Method, ObjectPointer, ObjectPointer) -> ObjectPointer,
    compile: unsafe extern "C" fn(*const c_char, *const c_char, c_int) -> ObjectPointer,
    evaluate: unsafe extern "C" fn(ObjectPointer, ObjectPointer, ObjectPointer) -> ObjectPointer,
    clear_error: unsafe extern "C" fn(),
    decrement: unsafe extern "C" fn(ObjectPointer),
    clear_dict: unsafe extern "C" fn(ObjectPointer),
}

impl Runner {
    fn look_up(interpreter: &Interpreter) -> Result<Self, Unavailable> {
        let symbols = interpreter.symbols;
        // SAFETY: the signatures are those of the documentation, the same in every version.
        unsafe {
            Ok(Self {
                new_dict: first_of(symbols, &[c"PyDict_New"])?,
                set_item: first_of(symbols, &[c"PyDict_SetItemString"])?,
                builtins: first_of(symbols, &[c"PyEval_GetBuiltins"])?,
                new_function: first_of(symbols, &[c"PyCFunction_NewEx"])?,
                compile: first_of(symbols, &[c"Py_CompileString"])?,
                evaluate: first_of(symbols, &[c"PyEval_EvalCode"])?,
                clear_error: first_of(symbols, &[c"PyErr_Clear"])?,
                decrement: first_of(symbols, &[c"Py_DecRef"])?,
                clear_dict: first_of(symbols, &[c"PyDict_Clear"])?,
            })
        }
    }

    /// Runs the program; returns whether it ran to its end.
    ///
    /// # Safety
    /// The GIL is held.
    unsafe fn run(&self) -> bool {
        // SAFETY: each function gets objects of the required type, or null where it allows null, as `Py_DecRef` does.
        // The dictionary is cleared last, because the program's functions hold it.
        unsafe {
            let (globals, bound) = ((self.new_dict)(), (self.new_dict)());
            if globals.is_null() || bound.is_null() {
                (self.clear_error)();
                return false;
            }
            let function = (self.new_function)(&raw const COMPARE, bound, ptr::null_mut());
            let code = (self.compile)(PROGRAM.as_ptr(), c"<stackweave self-test>".as_ptr(), FILE_INPUT);
            let mut result = ptr::null_mut();
            if !function.is_null()
                && !code.is_null()
                && (self.set_item)(globals, c"compare".as_ptr(), function) == 0
                && (self.set_item)(globals, c"__builtins__".as_ptr(), (self.builtins)()) == 0
            {
                result = (self.evaluate)(code, globals, globals);
            }
            let is_complete = !result.is_null();
            if !is_complete {
                (self.clear_error)();
            }
            (self.clear_dict)(globals);
            for object in [result, code, function, bound, globals] {
                (self.decrement)(object);
            }
            is_complete
        }
    }
}

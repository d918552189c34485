//! Walks for the scripts.

use std::ffi::{CString, c_char};
use std::ptr::null;

use stackweave_cpython::{
    FrameReader, Interpreter, PublicApi, PythonFrame, SourceStop, ThreadStatePointer, Unavailable, WalkResult,
    self_test,
};
use stackweave_testkit::counting_allocator;

use crate::sources::{self, CheckedStack, INTERRUPTED, PLAIN, REPLAYING, with_memory};

/// The capacity for the deepest stack of the tests.
pub const DEPTH: usize = 16384;

/// A frame as `ctypes` reads it.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct CtypesFrame {
    code: u64,
    activation: u64,
    instruction: u32,
    is_entry: u32,
}

impl From<&PythonFrame> for CtypesFrame {
    fn from(frame: &PythonFrame) -> Self {
        Self {
            code: frame.code.address(),
            activation: frame.activation,
            instruction: frame.instruction,
            is_entry: u32::from(frame.is_entry),
        }
    }
}

/// The result of a walk as `ctypes` reads it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CtypesWalkResult {
    len: usize,
    stop: *const c_char,
}

impl CtypesWalkResult {
    /// Creates the result of a walk.
    pub fn new(len: usize, stop: SourceStop) -> Self {
        Self { len, stop: lasting(stop.as_str()) }
    }
}

impl From<WalkResult> for CtypesWalkResult {
    fn from(walked: WalkResult) -> Self {
        Self::new(walked.len, walked.stop)
    }
}

/// Returns a C string that is never freed.
pub fn lasting(text: &str) -> *const c_char {
    CString::new(text).map_or(null(), |text| text.into_raw().cast_const())
}

/// # Safety
/// `records` has room for all of them.
unsafe fn copy(frames: &[PythonFrame], walked: WalkResult, records: *mut CtypesFrame) -> CtypesWalkResult {
    for (index, frame) in frames[..walked.len].iter().enumerate() {
        // SAFETY: the caller vouches for the room.
        unsafe { records.add(index).write(CtypesFrame::from(frame)) };
    }
    CtypesWalkResult::from(walked)
}

fn interpreter() -> &'static Interpreter {
    Interpreter::find().expect("the script runs in an interpreter that is supported")
}

/// Walks this thread's frames directly.
///
/// # Safety
/// `records` has room for `capacity` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cpython_tests_walk(records: *mut CtypesFrame, capacity: usize) -> CtypesWalkResult {
    let mut frames = vec![PythonFrame::default(); capacity];
    let walked = interpreter().walk(&mut frames);
    // SAFETY: the buffer is no longer than the array.
    unsafe { copy(&frames, walked, records) }
}

/// Does the same in the way of signal handlers.
///
/// # Safety
/// `records` has room for `capacity` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cpython_tests_walk_interrupted(
    records: *mut CtypesFrame,
    capacity: usize,
) -> CtypesWalkResult {
    let mut frames = vec![PythonFrame::default(); capacity];
    let walked = interpreter().walk_interrupted(&mut frames);
    // SAFETY: the buffer is no longer than the array.
    unsafe { copy(&frames, walked, records) }
}

/// Does the same by the public API.
///
/// # Safety
/// `records` has room for `capacity` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cpython_tests_walk_public(records: *mut CtypesFrame, capacity: usize) -> CtypesWalkResult {
    let mut frames = vec![PythonFrame::default(); capacity];
    let walked = PublicApi::find().expect("every interpreter has it").walk(&mut frames);
    // SAFETY: the buffer is no longer than the array.
    unsafe { copy(&frames, walked, records) }
}

/// Walks the frames of another thread's state. The script holds the GIL.
///
/// # Safety
/// `records` has room for `capacity` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cpython_tests_walk_thread(
    state: u64,
    records: *mut CtypesFrame,
    capacity: usize,
) -> CtypesWalkResult {
    let mut frames = vec![PythonFrame::default(); capacity];
    // SAFETY: the script holds the GIL and took the state from the interpreter's list.
    let walked = unsafe { interpreter().walk_thread(ThreadStatePointer::new(state), &mut frames) };
    // SAFETY: the buffer is no longer than the array.
    unsafe { copy(&frames, walked, records) }
}

/// Returns null if frames are read directly here, else why not.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_fallback_reason() -> *const c_char {
    match FrameReader::choose().map(|reader| reader.fallback_reason()) {
        Ok(None) => null(),
        Ok(Some(reason)) | Err(reason) => lasting(&reason.to_string()),
    }
}

/// Does the same in the best way that is possible here.
///
/// # Safety
/// `records` has room for `capacity` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cpython_tests_walk_reader(records: *mut CtypesFrame, capacity: usize) -> CtypesWalkResult {
    let mut frames = vec![PythonFrame::default(); capacity];
    let walked = FrameReader::choose().expect("there is an interpreter").walk(&mut frames);
    // SAFETY: the buffer is no longer than the array.
    unsafe { copy(&frames, walked, records) }
}

/// Returns the result of the self-test with the table of another version; null if it passes.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_self_test_with_table_of(minor: u8) -> *const c_char {
    let with_table = interpreter().with_table_of(minor).expect("there is such a table");
    self_test(Box::leak(Box::new(with_table))).map_or_else(|reason| lasting(&reason.to_string()), |()| null())
}

/// Returns why there is no interpreter to walk; null if there is one.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_unavailable() -> *const c_char {
    Interpreter::find().map_or_else(|reason: Unavailable| lasting(&reason.to_string()), |_| null())
}

/// Returns how often walks allocate, including the first walk of a code object.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_allocations() -> u64 {
    let mut frames = vec![PythonFrame::default(); DEPTH];
    let mut stack = CheckedStack::with_capacity(DEPTH);
    let interpreter = interpreter();
    // Creates now what this thread keeps for its walks.
    with_memory(|_| ());
    let before = counting_allocator::requests();
    let lengths = [
        interpreter.walk(&mut frames).len,
        interpreter.walk_interrupted(&mut frames).len,
        sources::walk(REPLAYING, &mut stack).len,
        sources::walk(PLAIN, &mut stack).len,
        sources::walk(INTERRUPTED, &mut stack).len,
    ];
    let after = counting_allocator::requests();
    assert!(lengths[0] > 0 && lengths.iter().all(|length| *length == lengths[0]));
    after - before
}

/// Returns why a walk ends in a thread that Python does not know.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_foreign_thread() -> *const c_char {
    let walk = || interpreter().walk(&mut [PythonFrame::default(); 8]);
    let walked = std::thread::spawn(walk).join().expect("a walk does not panic");
    lasting(&format!("{} frames, {}", walked.len, walked.stop))
}

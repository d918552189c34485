//! Walks with code ids, and the names of these.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_void};
use std::fmt::Write;
use std::ptr::null;

use stackweave_core::{FrameSource, RawFrame, RawFrameKind, SourceWalk, SourceWalkResult, StackPointer};
use stackweave_cpython::{CodePointer, Interpreter, PythonFrame, PythonSource, ThreadStatePointer};

use crate::walks::{CtypesWalkResult, DEPTH, lasting};

/// The amount of memory that a capture provides is enough.
const WORDS: usize = PythonSource::MEMORY_WORDS;

thread_local! {
    static MEMORY: RefCell<Vec<u64>> = RefCell::new(vec![0; WORDS]);
}

/// Runs `work` with the memory of this thread's walks.
pub fn with_memory<R>(work: impl FnOnce(&mut [u64]) -> R) -> R {
    MEMORY.with_borrow_mut(|memory| work(memory))
}

pub(crate) fn source() -> &'static PythonSource {
    PythonSource::install().expect("there is an interpreter")
}

/// Starts to watch code objects. Returns null, or why there is no source.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_install() -> *const c_char {
    PythonSource::install().map_or_else(|reason| lasting(&reason.to_string()), |_| null())
}

/// The kinds of walks: replay of the last stacks, frame by frame, as in a signal handler; without detection of deaths;
/// by the public API.
pub(crate) const REPLAYING: u32 = 0;
pub(crate) const PLAIN: u32 = 1;
pub(crate) const INTERRUPTED: u32 = 2;
const PINNING: u32 = 3;
const PUBLIC: u32 = 4;

/// The frames that a walk wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CheckedStack {
    pub(crate) frames: Vec<RawFrame>,
    pub(crate) activations: Vec<StackPointer>,
}

impl CheckedStack {
    pub(crate) fn with_capacity(length: usize) -> Self {
        Self { frames: vec![RawFrame::default(); length], activations: vec![StackPointer(0); length] }
    }

    pub(crate) fn truncate(&mut self, length: usize) {
        self.frames.truncate(length);
        self.activations.truncate(length);
    }
}

pub(crate) fn walk(kind: u32, stack: &mut CheckedStack) -> SourceWalkResult {
    let CheckedStack { frames, activations } = stack;
    let mut walk_source = |source: &PythonSource, memory: &mut [u64], in_signal_handler| {
        source.walk(SourceWalk { frames, activations, memory, source: 0, in_signal_handler })
    };
    let walked = match kind {
        REPLAYING => with_memory(|memory| walk_source(source(), memory, false)),
        PLAIN => walk_source(source(), &mut [], false),
        INTERRUPTED => with_memory(|memory| walk_source(source(), memory, true)),
        PINNING => walk_source(&PythonSource::with_pinning().expect("there is an interpreter"), &mut [], false),
        PUBLIC => walk_source(&PythonSource::with_public_api().expect("there is an interpreter"), &mut [], false),
        _ => panic!("no such kind: {kind}"),
    };
    // Only walks with memory can detect this.
    SourceWalkResult { is_unchanged: false, ..walked }
}

/// Walks this thread's frames and writes pairs of words: a frame and its activation.
///
/// # Safety
/// `pairs` has room for `capacity` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cpython_tests_source_walk(
    kind: u32,
    pairs: *mut [u64; 2],
    capacity: usize,
) -> CtypesWalkResult {
    let mut stack = CheckedStack::with_capacity(capacity);
    let walked = walk(kind, &mut stack);
    // SAFETY: the caller vouches for the room.
    unsafe { copy(&stack, walked, pairs) }
}

/// Walks by the public API while an exception is set, which the caller gets when this returns.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_public_walk_with_exception() -> usize {
    // SAFETY: the script holds the GIL; both have these types in every Python.
    unsafe {
        let symbol = |name: &CStr| libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr());
        let set: extern "C" fn(*mut c_void, *const c_char) = std::mem::transmute(symbol(c"PyErr_SetString"));
        set(*symbol(c"PyExc_KeyError").cast(), c"kept".as_ptr());
    }
    walk(PUBLIC, &mut CheckedStack::with_capacity(64)).len
}

/// # Safety
/// `pairs` has room for all frames.
unsafe fn copy(stack: &CheckedStack, walked: SourceWalkResult, pairs: *mut [u64; 2]) -> CtypesWalkResult {
    for index in 0..walked.len {
        // SAFETY: the caller vouches for the room.
        unsafe { pairs.add(index).write([stack.frames[index].to_bits(), stack.activations[index].0]) };
    }
    CtypesWalkResult::new(walked.len, walked.stop)
}

/// Walks the frames of the thread with that identity; none if there is no such thread.
///
/// # Safety
/// `pairs` has room for `capacity` of them. The script holds the GIL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cpython_tests_source_walk_thread(
    thread: u64,
    pairs: *mut [u64; 2],
    capacity: usize,
) -> CtypesWalkResult {
    let mut stack = CheckedStack::with_capacity(capacity);
    let states = source().thread_states();
    let state: Option<ThreadStatePointer> = states.iter().find(|(ident, _)| *ident == thread).map(|(_, state)| *state);
    // SAFETY: the script holds the GIL since the states were listed.
    let walked =
        state.map_or_else(SourceWalkResult::default, |state| unsafe { source().walk_thread(state, &mut stack.frames) });
    // SAFETY: the caller vouches for the room.
    unsafe { copy(&stack, walked, pairs) }
}

/// Returns the id of a code object that the script holds; 0 for none.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_code_id(code: u64) -> u64 {
    // SAFETY: the script holds a reference, and the GIL.
    unsafe { source().code_id(CodePointer::new(code)) }.map_or(0, |id| id.get().into())
}

/// Returns how many threads can be walked.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_thread_count() -> u64 {
    source().thread_states().len() as u64
}

/// Walks in every direct way. Returns null if all write the same, and it matches the addresses of the frames; else a
/// description of the difference.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_differing_walks() -> *const c_char {
    // A first walk finds the depth, because clearing buffers for the deepest stack takes longer than the walks.
    let is_sufficient = |capacity: &usize| walk(PLAIN, &mut CheckedStack::with_capacity(*capacity)).len < *capacity;
    let capacity = [128, 1024].into_iter().find(is_sufficient).unwrap_or(DEPTH);
    let mut stack = CheckedStack::with_capacity(capacity);
    let walked = walk(PLAIN, &mut stack);
    stack.truncate(walked.len);
    let mut faults = String::new();
    for kind in [REPLAYING, REPLAYING, INTERRUPTED] {
        let mut other = CheckedStack::with_capacity(capacity);
        let again = walk(kind, &mut other);
        other.truncate(again.len);
        if (again, &other) != (walked, &stack) {
            let at = other.frames.iter().zip(&stack.frames).position(|(other, frame)| other != frame);
            let _ = writeln!(faults, "walk {kind}: {again:?} instead of {walked:?}, first at {at:?}");
        }
    }
    let mut raw = vec![PythonFrame::default(); capacity];
    let raw_len = Interpreter::find().expect("it is supported").walk(&mut raw).len;
    let is_same = |(index, raw): (usize, &PythonFrame)| {
        stack.activations[index].0 == raw.activation
            && matches!(stack.frames[index].kind(), RawFrameKind::Python { instruction, entered_from_native, .. }
                if instruction == raw.instruction.min(RawFrame::MAX_INSTRUCTION) && entered_from_native == raw.is_entry)
    };
    if raw_len != walked.len || !raw[..raw_len].iter().enumerate().all(is_same) {
        let _ = writeln!(faults, "{raw_len} raw frames, {} with ids, or they differ", walked.len);
    }
    if faults.is_empty() { null() } else { lasting(&faults) }
}

/// Returns how many frames this thread has reused from earlier walks.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_replayed() -> u64 {
    with_memory(|memory| PythonSource::replayed(memory))
}

/// Returns name, qualified name, file name and position, one per line; null if the source does not know the frame.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_locate(frame: u64) -> *const c_char {
    let location = RawFrame::from_bits(frame).and_then(|frame| source().locate(frame));
    location.map_or(null(), |location| {
        let qualname = location.qualname.as_deref().unwrap_or("-");
        let position = location.position;
        let numbers = [position.line, position.end_line, position.column, position.end_column];
        let numbers = numbers.map(|number| number.map_or(-1, i64::from));
        lasting(&format!("{}\n{qualname}\n{}\n{numbers:?}", location.name, location.filename))
    })
}

/// Returns the statistics of the source in one line.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_stats() -> *const c_char {
    let stats = source().stats();
    lasting(&format!(
        "{} {} {} {} {} {} {} {} {}",
        stats.codes,
        stats.live_codes,
        stats.deaths,
        stats.code_bytes,
        stats.minor,
        stats.decoded_codes,
        stats.death_watch,
        stats.reader,
        stats.fallback_reason.unwrap_or_default(),
    ))
}

//! Interpreters and code generators of the host: registered, asked, removed.
#![expect(clippy::expect_used, reason = "a test that cannot do its work must fail")]
#![expect(clippy::cast_possible_truncation, reason = "small numbers")]

#[path = "common/interpreter.rs"]
mod interpreter;

use std::ffi::{CStr, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use interpreter::{Interpreter, interpret};
use stackweave::stackweave_status::{
    self, STACKWEAVE_BUFFER_TOO_SMALL, STACKWEAVE_BUSY, STACKWEAVE_OK, STACKWEAVE_STOPPED, STACKWEAVE_TOO_MANY,
    STACKWEAVE_UNKNOWN_HANDLE,
};
use stackweave::{
    STACKWEAVE_NO_STACK, STACKWEAVE_SCRIPT, stackweave_capture, stackweave_frame, stackweave_free_string,
    stackweave_locations, stackweave_locations_add, stackweave_register_source, stackweave_remove_source,
    stackweave_request, stackweave_resolve, stackweave_resolve_json, stackweave_resolve_json_into, stackweave_source,
    stackweave_stack, stackweave_walk,
};

/// Sources are the process's, so tests that run in one process take turns.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn capture(flags: u32) -> stackweave_stack {
    let request = stackweave_request { size: size_of::<stackweave_request>(), flags, skip: 0, limit: 0 };
    let mut stack = STACKWEAVE_NO_STACK;
    // SAFETY: locals.
    let status = unsafe { stackweave_capture(&raw const request, &raw mut stack, ptr::null_mut()) };
    assert_eq!(status, STACKWEAVE_OK);
    stack
}

fn register(source: &stackweave_source) -> u64 {
    let mut handle = 0;
    // SAFETY: its callbacks never go away.
    assert_eq!(unsafe { stackweave_register_source(source, &raw mut handle) }, STACKWEAVE_OK);
    assert_ne!(handle, 0);
    handle
}

fn json(stack: stackweave_stack) -> String {
    let mut text = ptr::null_mut();
    // SAFETY: locals; the text is copied before it is freed.
    unsafe {
        assert_eq!(stackweave_resolve_json(&raw const stack, 1, &raw mut text), STACKWEAVE_OK);
        let copy = CStr::from_ptr(text).to_str().expect("UTF-8").to_owned();
        assert_eq!(stackweave_free_string(text), STACKWEAVE_OK);
        copy
    }
}

#[test]
fn a_source_is_asked_until_it_is_removed() {
    let _turn = alone();
    let interpreter = Interpreter::new("toy.calc", stackweave_locations_add);
    let handle = register(&interpreter.source());
    let stack = interpret(7, || interpret(8, || capture(STACKWEAVE_SCRIPT)));
    let object = |word: u32| {
        format!(
            r#"{{"name":"word {word}","filename":"toy.calc","line":{word},"kind":"script","column":2,"inlined":false}}"#
        )
    };
    assert_eq!(json(stack), format!("[[{},{}]]", object(8), object(7)));
    let again = interpret(7, || interpret(8, || capture(STACKWEAVE_SCRIPT)));
    assert_eq!(stack, again);
    assert_eq!(stackweave_remove_source(handle), STACKWEAVE_OK);
    assert_eq!(json(interpret(7, || capture(STACKWEAVE_SCRIPT))), "[[]]");
    let unnamed = r#"{"name":"<unknown>","filename":"","line":0,"kind":"script","inlined":false}"#;
    assert_eq!(json(stack), format!("[[{unnamed},{unnamed}]]"), "no callback runs any more");
    assert_eq!(stackweave_remove_source(handle), STACKWEAVE_UNKNOWN_HANDLE);
}

#[test]
fn a_buffer_is_filled_or_its_length_told() {
    let _turn = alone();
    let interpreter = Interpreter::new("toy.calc", stackweave_locations_add);
    let handle = register(&interpreter.source());
    let stack = interpret(1, || capture(STACKWEAVE_SCRIPT));
    let whole = json(stack);
    let mut buffer = vec![b'x'; whole.len() + 2];
    for capacity in [0, 1, whole.len(), whole.len() + 1] {
        buffer.fill(b'x');
        let mut length = 0;
        // SAFETY: the buffer is longer than `capacity`.
        let status = unsafe {
            stackweave_resolve_json_into(&raw const stack, 1, buffer.as_mut_ptr().cast(), capacity, &raw mut length)
        };
        assert_eq!(length, whole.len());
        let fits = capacity > whole.len();
        assert_eq!(status, if fits { STACKWEAVE_OK } else { STACKWEAVE_BUFFER_TOO_SMALL });
        let written = if fits { whole.as_bytes() } else { b"" };
        let expected = [written, if capacity == 0 { b"" } else { b"\0" }].concat();
        assert_eq!(buffer[..expected.len()], expected);
        assert!(buffer[expected.len()..].iter().all(|byte| *byte == b'x'), "written beyond");
    }
    assert_eq!(stackweave_remove_source(handle), STACKWEAVE_OK);
}

/// Stops at the second frame.
unsafe extern "C" fn stop_at_second(
    data: *mut c_void,
    stack: usize,
    frame: usize,
    named: *const stackweave_frame,
) -> c_int {
    // SAFETY: the count that the test passes; a frame that is valid during the call.
    let (count, named) = unsafe { (&mut *data.cast::<u32>(), &*named) };
    assert_eq!((stack, frame), (0, *count as usize));
    assert_eq!((named.size, named.column, named.is_inlined), (size_of::<stackweave_frame>(), 3, false));
    *count += 1;
    c_int::from(*count == 2)
}

#[test]
fn a_callback_may_stop() {
    let _turn = alone();
    let interpreter = Interpreter::new("toy.calc", stackweave_locations_add);
    let handle = register(&interpreter.source());
    let stack = interpret(1, || interpret(2, || interpret(3, || capture(STACKWEAVE_SCRIPT))));
    let mut count = 0_u32;
    // SAFETY: the callback gets the count it expects.
    let status = unsafe { stackweave_resolve(&raw const stack, 1, Some(stop_at_second), (&raw mut count).cast()) };
    assert_eq!((status, count), (STACKWEAVE_STOPPED, 2));
    assert_eq!(stackweave_remove_source(handle), STACKWEAVE_OK);
}

/// A source whose data is gone when it is removed.
struct Mortal {
    is_alive: AtomicBool,
    walks: AtomicU32,
    locates: AtomicU32,
}

unsafe extern "C" fn mortal_walk(data: *mut c_void, walk: *mut stackweave_walk) -> usize {
    // SAFETY: the mortal of the test; a walk with room for one frame.
    unsafe {
        let mortal = &*data.cast::<Mortal>();
        assert!(mortal.is_alive.load(Ordering::SeqCst));
        (*walk).words.write(5);
        (*walk).activations.write(0);
        thread::yield_now();
        assert!(mortal.is_alive.load(Ordering::SeqCst), "removed while it was asked for frames");
        mortal.walks.fetch_add(1, Ordering::Relaxed);
    }
    1
}

unsafe extern "C" fn mortal_locate(data: *mut c_void, _word: u64, _place: *mut stackweave_locations) {
    // SAFETY: the mortal of the test.
    let mortal = unsafe { &*data.cast::<Mortal>() };
    assert!(mortal.is_alive.load(Ordering::SeqCst));
    thread::yield_now();
    assert!(mortal.is_alive.load(Ordering::SeqCst), "removed while it was asked for names");
    mortal.locates.fetch_add(1, Ordering::Relaxed);
}

#[test]
fn removing_waits_for_threads_that_ask() {
    let _turn = alone();
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    json(capture(STACKWEAVE_SCRIPT));
                }
            });
        }
        for _ in 0..40 {
            let mortal = Mortal { is_alive: AtomicBool::new(true), walks: 0.into(), locates: 0.into() };
            let handle = register(&stackweave_source {
                size: size_of::<stackweave_source>(),
                data: (&raw const mortal).cast_mut().cast(),
                walk: Some(mortal_walk),
                locate: Some(mortal_locate),
            });
            while mortal.locates.load(Ordering::Relaxed) < 3 {
                thread::yield_now();
            }
            assert_eq!(stackweave_remove_source(handle), STACKWEAVE_OK);
            mortal.is_alive.store(false, Ordering::SeqCst);
            assert!(mortal.walks.load(Ordering::Relaxed) > 0);
        }
        is_done.store(true, Ordering::Relaxed);
    });
}

static OWN_HANDLE: Mutex<u64> = Mutex::new(0);
static REFUSED: AtomicBool = AtomicBool::new(false);

unsafe extern "C" fn no_frames(_data: *mut c_void, walk: *mut stackweave_walk) -> usize {
    // SAFETY: a walk with room for a frame.
    unsafe {
        (*walk).words.write(1);
        (*walk).activations.write(0);
    }
    1
}

unsafe extern "C" fn removes_itself(_data: *mut c_void, _word: u64, _place: *mut stackweave_locations) {
    let handle = *OWN_HANDLE.lock().expect("not poisoned");
    REFUSED.store(stackweave_remove_source(handle) == STACKWEAVE_BUSY, Ordering::SeqCst);
}

#[test]
fn a_callback_cannot_remove_itself() {
    let _turn = alone();
    let handle = register(&stackweave_source {
        size: size_of::<stackweave_source>(),
        data: ptr::null_mut(),
        walk: Some(no_frames),
        locate: Some(removes_itself),
    });
    *OWN_HANDLE.lock().expect("not poisoned") = handle;
    json(capture(STACKWEAVE_SCRIPT));
    assert!(REFUSED.load(Ordering::SeqCst));
    assert_eq!(stackweave_remove_source(handle), STACKWEAVE_OK);
}

unsafe extern "C" fn too_many_frames(_data: *mut c_void, walk: *mut stackweave_walk) -> usize {
    // SAFETY: a walk with room for `capacity` frames.
    unsafe {
        for index in 0..(*walk).capacity {
            (*walk).words.add(index).write(u64::MAX);
            (*walk).activations.add(index).write(0);
        }
        (*walk).capacity + 1_000_000
    }
}

unsafe extern "C" fn knows_nothing(_data: *mut c_void, _word: u64, _place: *mut stackweave_locations) {}

#[test]
fn what_a_source_says_of_too_many_frames_is_not_believed() {
    let _turn = alone();
    let handle = register(&stackweave_source {
        size: size_of::<stackweave_source>(),
        data: ptr::null_mut(),
        walk: Some(too_many_frames),
        locate: Some(knows_nothing),
    });
    let request =
        stackweave_request { size: size_of::<stackweave_request>(), flags: STACKWEAVE_SCRIPT, skip: 0, limit: 0 };
    let (mut stack, mut stop) = (STACKWEAVE_NO_STACK, stackweave::stackweave_stop::STACKWEAVE_WHOLE);
    // SAFETY: locals.
    let status = unsafe { stackweave_capture(&raw const request, &raw mut stack, &raw mut stop) };
    assert_eq!(status, STACKWEAVE_OK);
    assert_eq!(stop, stackweave::stackweave_stop::STACKWEAVE_STOP_SOURCE_DEPTH_LIMIT);
    assert_eq!(stackweave_remove_source(handle), STACKWEAVE_OK);
}

#[test]
fn numbers_of_sources_come_to_an_end() {
    const NAME: &str = "numbers_of_sources_come_to_an_end";
    let _turn = alone();
    if stackweave_testkit::child::role().is_none() {
        // The numbers are the process's for good.
        let executable = stackweave_testkit::child::own_executable();
        let output =
            stackweave_testkit::child::run(&mut stackweave_testkit::child::command(&executable, NAME, "child"));
        assert!(output.status.success(), "{}", stackweave_testkit::child::text(&output));
        return;
    }
    let interpreter = Interpreter::new("toy.calc", stackweave_locations_add);
    let status = |handle: &mut u64| -> stackweave_status {
        // SAFETY: its callbacks never go away.
        unsafe { stackweave_register_source(&raw const *Box::leak(Box::new(interpreter.source())), handle) }
    };
    for _ in 0..256 {
        let mut handle = 0;
        assert_eq!(status(&mut handle), STACKWEAVE_OK);
        assert_eq!(stackweave_remove_source(handle), STACKWEAVE_OK);
    }
    assert_eq!(status(&mut 0), STACKWEAVE_TOO_MANY);
}

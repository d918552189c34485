//! Frame sources of the host: registration, queries and removal.
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
    STACKWEAVE_CAPTURE_SCRIPT, STACKWEAVE_NO_STACK, stackweave_add_location, stackweave_capture,
    stackweave_capture_request, stackweave_frame, stackweave_frame_source, stackweave_free_string,
    stackweave_location_list, stackweave_register_frame_source, stackweave_remove_frame_source, stackweave_resolve,
    stackweave_resolve_json, stackweave_resolve_json_into, stackweave_source_walk, stackweave_stack,
};

/// Serializes the tests of one process, because frame sources belong to the process.
fn lock_sources() -> MutexGuard<'static, ()> {
    static SOURCES: Mutex<()> = Mutex::new(());
    SOURCES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn capture(flags: u32) -> stackweave_stack {
    let request =
        stackweave_capture_request { size: size_of::<stackweave_capture_request>(), flags, skip: 0, limit: 0 };
    let mut stack = STACKWEAVE_NO_STACK;
    // SAFETY: locals.
    let status = unsafe { stackweave_capture(&raw const request, &raw mut stack, ptr::null_mut()) };
    assert_eq!(status, STACKWEAVE_OK);
    stack
}

fn register(source: &stackweave_frame_source) -> u64 {
    let mut handle = 0;
    // SAFETY: its callbacks are never removed.
    assert_eq!(unsafe { stackweave_register_frame_source(source, &raw mut handle) }, STACKWEAVE_OK);
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
fn a_source_is_queried_until_it_is_removed() {
    let _lock = lock_sources();
    let interpreter = Interpreter::new("toy.calc", stackweave_add_location);
    let handle = register(&interpreter.source());
    let stack = interpret(7, || interpret(8, || capture(STACKWEAVE_CAPTURE_SCRIPT)));
    let object = |word: u32| {
        format!(
            r#"{{"name":"word {word}","filename":"toy.calc","line":{word},"kind":"script","column":2,"inlined":false}}"#
        )
    };
    assert_eq!(json(stack), format!("[[{},{}]]", object(8), object(7)));
    let again = interpret(7, || interpret(8, || capture(STACKWEAVE_CAPTURE_SCRIPT)));
    assert_eq!(stack, again);
    assert_eq!(stackweave_remove_frame_source(handle), STACKWEAVE_OK);
    assert_eq!(json(interpret(7, || capture(STACKWEAVE_CAPTURE_SCRIPT))), "[[]]");
    let unnamed = r#"{"name":"<unknown>","filename":"","line":0,"kind":"script","inlined":false}"#;
    assert_eq!(json(stack), format!("[[{unnamed},{unnamed}]]"), "no callback runs after the removal");
    assert_eq!(stackweave_remove_frame_source(handle), STACKWEAVE_UNKNOWN_HANDLE);
}

#[test]
fn a_buffer_is_filled_or_the_required_length_is_returned() {
    let _lock = lock_sources();
    let interpreter = Interpreter::new("toy.calc", stackweave_add_location);
    let handle = register(&interpreter.source());
    let stack = interpret(1, || capture(STACKWEAVE_CAPTURE_SCRIPT));
    let complete = json(stack);
    let mut buffer = vec![b'x'; complete.len() + 2];
    for capacity in [0, 1, complete.len(), complete.len() + 1] {
        buffer.fill(b'x');
        let mut length = 0;
        // SAFETY: the buffer is longer than `capacity`.
        let status = unsafe {
            stackweave_resolve_json_into(&raw const stack, 1, buffer.as_mut_ptr().cast(), capacity, &raw mut length)
        };
        assert_eq!(length, complete.len());
        let fits = capacity > complete.len();
        assert_eq!(status, if fits { STACKWEAVE_OK } else { STACKWEAVE_BUFFER_TOO_SMALL });
        let written = if fits { complete.as_bytes() } else { b"" };
        let expected = [written, if capacity == 0 { b"" } else { b"\0" }].concat();
        assert_eq!(buffer[..expected.len()], expected);
        assert!(buffer[expected.len()..].iter().all(|byte| *byte == b'x'), "written beyond");
    }
    assert_eq!(stackweave_remove_frame_source(handle), STACKWEAVE_OK);
}

/// Requests to stop at the second frame.
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
fn a_callback_can_stop_a_resolve_call() {
    let _lock = lock_sources();
    let interpreter = Interpreter::new("toy.calc", stackweave_add_location);
    let handle = register(&interpreter.source());
    let stack = interpret(1, || interpret(2, || interpret(3, || capture(STACKWEAVE_CAPTURE_SCRIPT))));
    let mut count = 0_u32;
    // SAFETY: the data is the count that the callback expects.
    let status = unsafe { stackweave_resolve(&raw const stack, 1, Some(stop_at_second), (&raw mut count).cast()) };
    assert_eq!((status, count), (STACKWEAVE_STOPPED, 2));
    assert_eq!(stackweave_remove_frame_source(handle), STACKWEAVE_OK);
}

/// A source whose data is freed after its removal.
struct TemporarySource {
    is_alive: AtomicBool,
    walks: AtomicU32,
    locates: AtomicU32,
}

unsafe extern "C" fn temporary_walk(data: *mut c_void, walk: *mut stackweave_source_walk) -> usize {
    // SAFETY: the source of the test; a walk with room for one frame.
    unsafe {
        let source = &*data.cast::<TemporarySource>();
        assert!(source.is_alive.load(Ordering::SeqCst));
        (*walk).words.write(5);
        (*walk).activations.write(0);
        thread::yield_now();
        assert!(source.is_alive.load(Ordering::SeqCst), "removed during a walk");
        source.walks.fetch_add(1, Ordering::Relaxed);
    }
    1
}

unsafe extern "C" fn temporary_locate(data: *mut c_void, _word: u64, _locations: *mut stackweave_location_list) {
    // SAFETY: the source of the test.
    let source = unsafe { &*data.cast::<TemporarySource>() };
    assert!(source.is_alive.load(Ordering::SeqCst));
    thread::yield_now();
    assert!(source.is_alive.load(Ordering::SeqCst), "removed during a query for a name");
    source.locates.fetch_add(1, Ordering::Relaxed);
}

#[test]
fn removal_waits_for_threads_in_callbacks() {
    let _lock = lock_sources();
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    json(capture(STACKWEAVE_CAPTURE_SCRIPT));
                }
            });
        }
        for _ in 0..40 {
            let source = TemporarySource { is_alive: AtomicBool::new(true), walks: 0.into(), locates: 0.into() };
            let handle = register(&stackweave_frame_source {
                size: size_of::<stackweave_frame_source>(),
                data: (&raw const source).cast_mut().cast(),
                walk: Some(temporary_walk),
                locate: Some(temporary_locate),
            });
            while source.locates.load(Ordering::Relaxed) < 3 {
                thread::yield_now();
            }
            assert_eq!(stackweave_remove_frame_source(handle), STACKWEAVE_OK);
            source.is_alive.store(false, Ordering::SeqCst);
            assert!(source.walks.load(Ordering::Relaxed) > 0);
        }
        is_done.store(true, Ordering::Relaxed);
    });
}

static OWN_HANDLE: Mutex<u64> = Mutex::new(0);
static REFUSED: AtomicBool = AtomicBool::new(false);

unsafe extern "C" fn one_frame(_data: *mut c_void, walk: *mut stackweave_source_walk) -> usize {
    // SAFETY: a walk with room for a frame.
    unsafe {
        (*walk).words.write(1);
        (*walk).activations.write(0);
    }
    1
}

unsafe extern "C" fn removes_itself(_data: *mut c_void, _word: u64, _locations: *mut stackweave_location_list) {
    let handle = *OWN_HANDLE.lock().expect("not poisoned");
    REFUSED.store(stackweave_remove_frame_source(handle) == STACKWEAVE_BUSY, Ordering::SeqCst);
}

#[test]
fn a_callback_cannot_remove_itself() {
    let _lock = lock_sources();
    let handle = register(&stackweave_frame_source {
        size: size_of::<stackweave_frame_source>(),
        data: ptr::null_mut(),
        walk: Some(one_frame),
        locate: Some(removes_itself),
    });
    *OWN_HANDLE.lock().expect("not poisoned") = handle;
    json(capture(STACKWEAVE_CAPTURE_SCRIPT));
    assert!(REFUSED.load(Ordering::SeqCst));
    assert_eq!(stackweave_remove_frame_source(handle), STACKWEAVE_OK);
}

unsafe extern "C" fn too_many_frames(_data: *mut c_void, walk: *mut stackweave_source_walk) -> usize {
    // SAFETY: a walk with room for `capacity` frames.
    unsafe {
        for index in 0..(*walk).capacity {
            (*walk).words.add(index).write(u64::MAX);
            (*walk).activations.add(index).write(0);
        }
        (*walk).capacity + 1_000_000
    }
}

unsafe extern "C" fn knows_nothing(_data: *mut c_void, _word: u64, _locations: *mut stackweave_location_list) {}

#[test]
fn a_source_that_reports_too_many_frames_is_cut() {
    let _lock = lock_sources();
    let handle = register(&stackweave_frame_source {
        size: size_of::<stackweave_frame_source>(),
        data: ptr::null_mut(),
        walk: Some(too_many_frames),
        locate: Some(knows_nothing),
    });
    let request = stackweave_capture_request {
        size: size_of::<stackweave_capture_request>(),
        flags: STACKWEAVE_CAPTURE_SCRIPT,
        skip: 0,
        limit: 0,
    };
    let (mut stack, mut stop) = (STACKWEAVE_NO_STACK, stackweave::stackweave_stop_reason::STACKWEAVE_STOP_NONE);
    // SAFETY: locals.
    let status = unsafe { stackweave_capture(&raw const request, &raw mut stack, &raw mut stop) };
    assert_eq!(status, STACKWEAVE_OK);
    assert_eq!(stop, stackweave::stackweave_stop_reason::STACKWEAVE_STOP_SOURCE_DEPTH_LIMIT);
    assert_eq!(stackweave_remove_frame_source(handle), STACKWEAVE_OK);
}

#[test]
fn a_process_can_register_256_sources_in_its_lifetime() {
    const NAME: &str = "a_process_can_register_256_sources_in_its_lifetime";
    let _lock = lock_sources();
    if stackweave_testkit::child::role().is_none() {
        // Run in a child process, because the numbers of sources are never reused.
        let executable = stackweave_testkit::child::own_executable();
        let output =
            stackweave_testkit::child::run(&mut stackweave_testkit::child::command(&executable, NAME, "child"));
        assert!(output.status.success(), "{}", stackweave_testkit::child::text(&output));
        return;
    }
    let interpreter = Interpreter::new("toy.calc", stackweave_add_location);
    let status = |handle: &mut u64| -> stackweave_status {
        // SAFETY: its callbacks are never removed.
        unsafe { stackweave_register_frame_source(&raw const *Box::leak(Box::new(interpreter.source())), handle) }
    };
    for _ in 0..256 {
        let mut handle = 0;
        assert_eq!(status(&mut handle), STACKWEAVE_OK);
        assert_eq!(stackweave_remove_frame_source(handle), STACKWEAVE_OK);
    }
    assert_eq!(status(&mut 0), STACKWEAVE_TOO_MANY);
}

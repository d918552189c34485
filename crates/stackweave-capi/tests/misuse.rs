//! Invalid calls return errors, and have no other effect.
#![expect(clippy::expect_used, reason = "a test that cannot do its work must fail")]

use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use stackweave::stackweave_status::{
    STACKWEAVE_BAD_ARGUMENT, STACKWEAVE_BUFFER_TOO_SMALL, STACKWEAVE_NO_PYTHON, STACKWEAVE_OK,
    STACKWEAVE_UNKNOWN_HANDLE, STACKWEAVE_UNKNOWN_STACK,
};
use stackweave::*;
use stackweave_testkit::child;
use stackweave_testkit::counting_allocator::{CountingAllocator, requests};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn capture() -> stackweave_stack {
    let mut stack = STACKWEAVE_NO_STACK;
    // SAFETY: a null request requests all frames; the output is a local.
    assert_eq!(unsafe { stackweave_capture(ptr::null(), &raw mut stack, ptr::null_mut()) }, STACKWEAVE_OK);
    stack
}

fn last_error() -> String {
    // SAFETY: the string of this thread.
    unsafe { CStr::from_ptr(stackweave_last_error()) }.to_str().expect("UTF-8").to_owned()
}

fn request(size: usize, flags: u32) -> stackweave_capture_request {
    stackweave_capture_request { size, flags, skip: 0, limit: 0 }
}

#[test]
fn null_pointers_are_rejected() {
    let stack = capture();
    // SAFETY: the functions allow null for these arguments.
    unsafe {
        assert_eq!(stackweave_capture(ptr::null(), ptr::null_mut(), ptr::null_mut()), STACKWEAVE_BAD_ARGUMENT);
        let mut out = 0;
        let without_context = stackweave_capture_from_context(ptr::null(), ptr::null(), &raw mut out, ptr::null_mut());
        assert_eq!(without_context, STACKWEAVE_BAD_ARGUMENT);
        assert_eq!(stackweave_get_frame_count(stack, ptr::null_mut()), STACKWEAVE_BAD_ARGUMENT);
        assert_eq!(stackweave_get_raw_frames(stack, ptr::null_mut(), 4, ptr::null_mut()), STACKWEAVE_BAD_ARGUMENT);
        assert_eq!(stackweave_resolve(&raw const stack, 1, None, ptr::null_mut()), STACKWEAVE_BAD_ARGUMENT);
        assert_eq!(last_error(), "callback is null");
        assert_eq!(stackweave_resolve_json(&raw const stack, 1, ptr::null_mut()), STACKWEAVE_BAD_ARGUMENT);
        let mut text = ptr::null_mut();
        assert_eq!(stackweave_resolve_json(ptr::null(), 1, &raw mut text), STACKWEAVE_BAD_ARGUMENT);
        assert_eq!(last_error(), "stacks is null");
        let mut length = 0;
        let without_buffer = stackweave_resolve_json_into(&raw const stack, 1, ptr::null_mut(), 5, &raw mut length);
        assert_eq!(without_buffer, STACKWEAVE_BAD_ARGUMENT);
        assert_eq!(stackweave_register_frame_source(ptr::null(), ptr::null_mut()), STACKWEAVE_BAD_ARGUMENT);
        assert_eq!(stackweave_register_extra_frames(ptr::null(), ptr::null_mut()), STACKWEAVE_BAD_ARGUMENT);
        assert_eq!(stackweave_add_location(ptr::null_mut(), ptr::null()), STACKWEAVE_BAD_ARGUMENT);
        assert_eq!(stackweave_get_stats(ptr::null_mut()), STACKWEAVE_BAD_ARGUMENT);
    }
}

#[test]
fn invalid_requests_are_rejected() {
    let valid_size = size_of::<stackweave_capture_request>();
    for (size, flags) in [(0, 7), (valid_size - 1, 7), (valid_size, 0), (valid_size, 8), (valid_size, u32::MAX)] {
        let (request, mut stack) = (request(size, flags), STACKWEAVE_NO_STACK);
        // SAFETY: the size is at most the true size.
        let status = unsafe { stackweave_capture(&raw const request, &raw mut stack, ptr::null_mut()) };
        assert_eq!((status, stack), (STACKWEAVE_BAD_ARGUMENT, STACKWEAVE_NO_STACK), "{size} {flags}");
    }
    let mut stats = stackweave_stats { size: 3, ..stackweave_stats::default() };
    // SAFETY: the size is at most the true size.
    assert_eq!(unsafe { stackweave_get_stats(&raw mut stats) }, STACKWEAVE_BAD_ARGUMENT);
}

#[test]
fn foreign_stacks_and_handles_are_rejected() {
    let stack = capture();
    assert_eq!(stackweave_retain(stack), STACKWEAVE_OK);
    // Repeated releases have no effect on other references.
    for _ in 0..5 {
        assert_eq!(stackweave_release(stack), STACKWEAVE_OK);
    }
    for foreign in [STACKWEAVE_NO_STACK, 1, stack + (1 << 30), stack ^ (1 << 40), u64::MAX] {
        let mut count = 0;
        assert_eq!(stackweave_retain(foreign), STACKWEAVE_UNKNOWN_STACK, "{foreign:#x}");
        assert_eq!(stackweave_release(foreign), STACKWEAVE_UNKNOWN_STACK);
        // SAFETY: the outputs are locals, as long as the calls say.
        unsafe {
            assert_eq!(stackweave_get_frame_count(foreign, &raw mut count), STACKWEAVE_UNKNOWN_STACK);
            let mut len = 0;
            let raw = stackweave_get_raw_frames(foreign, ptr::null_mut(), 0, &raw mut len);
            assert_eq!(raw, STACKWEAVE_UNKNOWN_STACK);
            let mut text = ptr::null_mut();
            let stacks = [stack, foreign];
            assert_eq!(stackweave_resolve_json(stacks.as_ptr(), 2, &raw mut text), STACKWEAVE_UNKNOWN_STACK);
            assert!(text.is_null());
        }
        assert_eq!(last_error(), format!("stack 1, {foreign:#x}, is unknown"));
        assert_eq!(stackweave_remove_frame_source(foreign), STACKWEAVE_UNKNOWN_HANDLE);
        assert_eq!(stackweave_remove_extra_frames(foreign), STACKWEAVE_UNKNOWN_HANDLE);
    }
}

#[test]
fn a_process_without_python_has_none() {
    assert_eq!(stackweave_enable_python(), STACKWEAVE_NO_PYTHON);
    assert_eq!(last_error(), "no CPython is loaded in this process");
    assert_eq!(stackweave_disable_python(), STACKWEAVE_OK);
}

#[test]
fn raw_frames_are_those_of_the_stack() {
    let stack = capture();
    let (mut count, mut len) = (0, 0);
    let empty = stackweave_raw_frame {
        word: 0,
        position: 0,
        kind: stackweave_frame_kind::STACKWEAVE_FRAME_EXTRA,
        is_exact: true,
    };
    let mut frames = vec![empty; 512];
    // SAFETY: the outputs are as long as the calls say.
    unsafe {
        assert_eq!(stackweave_get_frame_count(stack, &raw mut count), STACKWEAVE_OK);
        let status = stackweave_get_raw_frames(stack, frames.as_mut_ptr(), frames.len(), &raw mut len);
        assert_eq!((status, len), (STACKWEAVE_OK, count as usize));
        let mut two = vec![empty; 3];
        let status = stackweave_get_raw_frames(stack, two.as_mut_ptr(), 2, &raw mut len);
        assert_eq!((status, len), (STACKWEAVE_BUFFER_TOO_SMALL, count as usize));
        assert_eq!((two[0], two[1], two[2]), (frames[0], frames[1], empty));
    }
    for frame in &frames[..len] {
        assert_eq!(frame.kind, stackweave_frame_kind::STACKWEAVE_FRAME_NATIVE);
        assert_eq!((frame.word, frame.is_exact), (frame.position, false));
    }
}

#[test]
fn warm_calls_do_not_allocate() {
    let (request, mut out) =
        (request(size_of::<stackweave_capture_request>(), STACKWEAVE_CAPTURE_ALL), STACKWEAVE_NO_STACK);
    let mut count = 0;
    assert_eq!(stackweave_prepare_thread(), STACKWEAVE_OK);
    let mut round = || {
        // SAFETY: locals.
        unsafe {
            assert_eq!(stackweave_capture(&raw const request, &raw mut out, ptr::null_mut()), STACKWEAVE_OK);
            assert_eq!(stackweave_get_frame_count(out, &raw mut count), STACKWEAVE_OK);
            assert_eq!(stackweave_capture(ptr::null(), ptr::null_mut(), ptr::null_mut()), STACKWEAVE_BAD_ARGUMENT);
        }
        assert_eq!(stackweave_release(out), STACKWEAVE_OK);
        assert_eq!(stackweave_release(3), STACKWEAVE_UNKNOWN_STACK);
    };
    round();
    let before = requests();
    (0..1000).for_each(|_| round());
    assert_eq!(requests(), before);
}

unsafe extern "C" fn no_frames_behind(_: *mut c_void, _: *const i8, _: u32, _: *mut stackweave_location_list) {}

/// Makes the calls that a forked child may make, where the threads of its parent are missing. Returns whether they succeed.
fn use_library(inherited: stackweave_stack) -> bool {
    let own = capture();
    let mut text = ptr::null_mut();
    // SAFETY: locals, and callbacks that do nothing.
    unsafe {
        let stacks = [inherited, own];
        if stackweave_resolve_json(stacks.as_ptr(), 2, &raw mut text) != STACKWEAVE_OK {
            return false;
        }
        let has_frames = CStr::from_ptr(text).to_bytes().starts_with(b"[[{\"name\":");
        let extra = stackweave_extra_frames {
            size: size_of::<stackweave_extra_frames>(),
            data: ptr::null_mut(),
            frames_behind: Some(no_frames_behind),
        };
        let mut handle = 0;
        let registered = stackweave_register_extra_frames(&raw const extra, &raw mut handle);
        has_frames
            && stackweave_free_string(text) == STACKWEAVE_OK
            && registered == STACKWEAVE_OK
            && stackweave_remove_extra_frames(handle) == STACKWEAVE_OK
            && stackweave_release(inherited) == STACKWEAVE_OK
    }
}

/// Runs in a process that resolves only exported names, because each child resolves names again.
#[test]
fn a_forked_child_can_use_the_library() {
    const NAME: &str = "a_forked_child_can_use_the_library";
    if child::role().is_none() {
        let mut command = child::command(&child::own_executable(), NAME, "parent");
        let output = child::run_for(command.env("STACKWEAVE_SYMBOLIZE_MODE", "dladdr"), 300);
        assert!(output.status.success(), "{}", child::text(&output));
        return;
    }
    let is_done = AtomicBool::new(false);
    let inherited = capture();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    assert!(use_library(inherited));
                }
            });
        }
        let _stop_threads = StopThreads(&is_done);
        for round in 0..60 {
            // SAFETY: the child only calls the library and exits.
            let forked = unsafe { libc::fork() };
            if forked == 0 {
                // SAFETY: the alarm ends a child that hangs.
                unsafe {
                    libc::alarm(60);
                    libc::_exit(i32::from(!use_library(inherited)));
                }
            }
            let mut status = 0;
            // SAFETY: the child of this process.
            assert_eq!(unsafe { libc::waitpid(forked, &raw mut status, 0) }, forked);
            assert_eq!(status, 0, "round {round}: {status:#x}");
        }
    });
}

/// Stops the other threads, even if the test fails.
struct StopThreads<'a>(&'a AtomicBool);

impl Drop for StopThreads<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

//! What must not be done returns an error, and harms nobody.
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
    // SAFETY: no request is everything; the output is a local.
    assert_eq!(unsafe { stackweave_capture(ptr::null(), &raw mut stack, ptr::null_mut()) }, STACKWEAVE_OK);
    stack
}

fn last_error() -> String {
    // SAFETY: this thread's text.
    unsafe { CStr::from_ptr(stackweave_last_error()) }.to_str().expect("UTF-8").to_owned()
}

fn request(size: usize, flags: u32) -> stackweave_request {
    stackweave_request { size, flags, skip: 0, limit: 0 }
}

#[test]
fn null_pointers_are_refused() {
    let stack = capture();
    // SAFETY: every function says that these may be null.
    unsafe {
        assert_eq!(stackweave_capture(ptr::null(), ptr::null_mut(), ptr::null_mut()), STACKWEAVE_BAD_ARGUMENT);
        let mut out = 0;
        let from_nothing = stackweave_capture_from_context(ptr::null(), ptr::null(), &raw mut out, ptr::null_mut());
        assert_eq!(from_nothing, STACKWEAVE_BAD_ARGUMENT);
        assert_eq!(stackweave_frame_count(stack, ptr::null_mut()), STACKWEAVE_BAD_ARGUMENT);
        assert_eq!(stackweave_raw_frames(stack, ptr::null_mut(), 4, ptr::null_mut()), STACKWEAVE_BAD_ARGUMENT);
        assert_eq!(stackweave_resolve(&raw const stack, 1, None, ptr::null_mut()), STACKWEAVE_BAD_ARGUMENT);
        assert_eq!(last_error(), "callback is null");
        assert_eq!(stackweave_resolve_json(&raw const stack, 1, ptr::null_mut()), STACKWEAVE_BAD_ARGUMENT);
        let mut text = ptr::null_mut();
        assert_eq!(stackweave_resolve_json(ptr::null(), 1, &raw mut text), STACKWEAVE_BAD_ARGUMENT);
        assert_eq!(last_error(), "stacks is null");
        let mut length = 0;
        let into_nothing = stackweave_resolve_json_into(&raw const stack, 1, ptr::null_mut(), 5, &raw mut length);
        assert_eq!(into_nothing, STACKWEAVE_BAD_ARGUMENT);
        assert_eq!(stackweave_register_source(ptr::null(), ptr::null_mut()), STACKWEAVE_BAD_ARGUMENT);
        assert_eq!(stackweave_register_extra_frames(ptr::null(), ptr::null_mut()), STACKWEAVE_BAD_ARGUMENT);
        assert_eq!(stackweave_locations_add(ptr::null_mut(), ptr::null()), STACKWEAVE_BAD_ARGUMENT);
        assert_eq!(stackweave_get_stats(ptr::null_mut()), STACKWEAVE_BAD_ARGUMENT);
    }
}

#[test]
fn bad_requests_are_refused() {
    let whole = size_of::<stackweave_request>();
    for (size, flags) in [(0, 7), (whole - 1, 7), (whole, 0), (whole, 8), (whole, u32::MAX)] {
        let (request, mut stack) = (request(size, flags), STACKWEAVE_NO_STACK);
        // SAFETY: the size is at most true.
        let status = unsafe { stackweave_capture(&raw const request, &raw mut stack, ptr::null_mut()) };
        assert_eq!((status, stack), (STACKWEAVE_BAD_ARGUMENT, STACKWEAVE_NO_STACK), "{size} {flags}");
    }
    let mut stats = stackweave_stats { size: 3, ..stackweave_stats::default() };
    // SAFETY: the size is at most true.
    assert_eq!(unsafe { stackweave_get_stats(&raw mut stats) }, STACKWEAVE_BAD_ARGUMENT);
}

#[test]
fn foreign_stacks_and_handles_are_refused() {
    let stack = capture();
    assert_eq!(stackweave_retain(stack), STACKWEAVE_OK);
    // As often as one likes: there is nothing that a release too many could take from anybody.
    for _ in 0..5 {
        assert_eq!(stackweave_release(stack), STACKWEAVE_OK);
    }
    for foreign in [STACKWEAVE_NO_STACK, 1, stack + (1 << 30), stack ^ (1 << 40), u64::MAX] {
        let mut count = 0;
        assert_eq!(stackweave_retain(foreign), STACKWEAVE_UNKNOWN_STACK, "{foreign:#x}");
        assert_eq!(stackweave_release(foreign), STACKWEAVE_UNKNOWN_STACK);
        // SAFETY: the outputs are locals, as long as the calls say.
        unsafe {
            assert_eq!(stackweave_frame_count(foreign, &raw mut count), STACKWEAVE_UNKNOWN_STACK);
            let mut len = 0;
            let raw = stackweave_raw_frames(foreign, ptr::null_mut(), 0, &raw mut len);
            assert_eq!(raw, STACKWEAVE_UNKNOWN_STACK);
            let mut text = ptr::null_mut();
            let stacks = [stack, foreign];
            assert_eq!(stackweave_resolve_json(stacks.as_ptr(), 2, &raw mut text), STACKWEAVE_UNKNOWN_STACK);
            assert!(text.is_null());
        }
        assert_eq!(last_error(), format!("stack 1, {foreign:#x}, is not known"));
        assert_eq!(stackweave_remove_source(foreign), STACKWEAVE_UNKNOWN_HANDLE);
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
    let empty =
        stackweave_raw_frame { word: 0, place: 0, kind: stackweave_kind::STACKWEAVE_KIND_EXTRA, is_exact: true };
    let mut frames = vec![empty; 512];
    // SAFETY: the outputs are as long as the calls say.
    unsafe {
        assert_eq!(stackweave_frame_count(stack, &raw mut count), STACKWEAVE_OK);
        let status = stackweave_raw_frames(stack, frames.as_mut_ptr(), frames.len(), &raw mut len);
        assert_eq!((status, len), (STACKWEAVE_OK, count as usize));
        let mut two = vec![empty; 3];
        let status = stackweave_raw_frames(stack, two.as_mut_ptr(), 2, &raw mut len);
        assert_eq!((status, len), (STACKWEAVE_BUFFER_TOO_SMALL, count as usize));
        assert_eq!((two[0], two[1], two[2]), (frames[0], frames[1], empty));
    }
    for frame in &frames[..len] {
        assert_eq!(frame.kind, stackweave_kind::STACKWEAVE_KIND_NATIVE);
        assert_eq!((frame.word, frame.is_exact), (frame.place, false));
    }
}

#[test]
fn warm_calls_do_not_allocate() {
    let (request, mut out) = (request(size_of::<stackweave_request>(), STACKWEAVE_ALL), STACKWEAVE_NO_STACK);
    let mut count = 0;
    assert_eq!(stackweave_prepare(), STACKWEAVE_OK);
    let mut round = || {
        // SAFETY: locals.
        unsafe {
            assert_eq!(stackweave_capture(&raw const request, &raw mut out, ptr::null_mut()), STACKWEAVE_OK);
            assert_eq!(stackweave_frame_count(out, &raw mut count), STACKWEAVE_OK);
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

unsafe extern "C" fn no_frames_behind(_: *mut c_void, _: *const i8, _: u32, _: *mut stackweave_locations) {}

/// All that a forked child may want to do, while the threads that its parent had are not there.
fn live_on(inherited: stackweave_stack) -> bool {
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

/// In a process that looks no further than exported names: each child begins anew with that.
#[test]
fn a_forked_child_goes_on() {
    const NAME: &str = "a_forked_child_goes_on";
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
                    assert!(live_on(inherited));
                }
            });
        }
        let _at_the_end = Done(&is_done);
        for round in 0..60 {
            // SAFETY: the child only calls the library, and ends.
            let forked = unsafe { libc::fork() };
            if forked == 0 {
                // SAFETY: a child that waits for ever is ended by the system.
                unsafe {
                    libc::alarm(60);
                    libc::_exit(i32::from(!live_on(inherited)));
                }
            }
            let mut status = 0;
            // SAFETY: our own child.
            assert_eq!(unsafe { libc::waitpid(forked, &raw mut status, 0) }, forked);
            assert_eq!(status, 0, "round {round}: {status:#x}");
        }
    });
}

/// Ends the other threads, also when the test fails.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

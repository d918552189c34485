//! Allocations and frees for the script `allocations.py`, which loads this library into Python.
//!
//! memray intercepts the calls to the C library. Ours is called for each allocation and free, and captures the stack at
//! an allocation.

use std::ffi::{CStr, CString, c_char, c_uint, c_void};
use std::path::Path;
use std::ptr;
use std::sync::{Mutex, PoisonError};

use stackweave_capture::{CaptureRequest, capture};
use stackweave_recording::Recorder;

use super::calls;

/// The number of blocks that are live at a time.
const LIVE: usize = 1024;
const SMALLEST: usize = 16;

/// The blocks of one thread.
#[derive(Debug)]
pub(super) struct Churn {
    blocks: [*mut c_void; LIVE],
    state: u64,
    /// The parts of each stack to capture; `None` to capture nothing.
    request: Option<CaptureRequest>,
    recorder: Option<Recorder>,
}

impl Churn {
    /// Replaces `count` blocks by new ones.
    fn run(&mut self, count: usize) {
        for _ in 0..count {
            self.state = self.state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            let place = (self.state >> 54) as usize;
            // The sizes go up to 2 KiB and a little more.
            let size = (SMALLEST << (self.state >> 40 & 7)) + (self.state >> 32 & 15) as usize;
            self.free(place);
            self.allocate(place, size);
        }
    }

    fn allocate(&mut self, place: usize, size: usize) {
        // SAFETY: any size is allowed.
        let block = unsafe { libc::malloc(size) };
        self.blocks[place] = block;
        if let Some(request) = &self.request {
            let stack = capture(request).stack;
            if let Some(recorder) = &self.recorder {
                recorder.allocate(block.addr() as u64, size as u64, stack);
            }
        }
    }

    fn free(&mut self, place: usize) {
        let block = self.blocks[place];
        if !block.is_null() {
            if let Some(recorder) = &self.recorder {
                recorder.free(block.addr() as u64);
            }
            // SAFETY: `allocate` stored the block, and it is removed here.
            unsafe { libc::free(block) };
            self.blocks[place] = ptr::null_mut();
        }
    }
}

static RECORDER: Mutex<Option<Recorder>> = Mutex::new(None);

fn recorder() -> Option<Recorder> {
    RECORDER.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Starts a recording. Returns null, or why it failed. The reason is never freed: the process reads it, and then ends.
#[unsafe(no_mangle)]
unsafe extern "C" fn stackweave_bench_recorder_start(path: *const c_char) -> *const c_char {
    // SAFETY: the caller passes a C string.
    let path = unsafe { CStr::from_ptr(path) }.to_string_lossy();
    match calls::start(Path::new(&*path)) {
        Ok(recorder) => {
            *RECORDER.lock().unwrap_or_else(PoisonError::into_inner) = Some(recorder);
            ptr::null()
        }
        Err(error) => reason(&error.to_string()),
    }
}

/// Completes the recording. Returns null, or what went wrong.
#[unsafe(no_mangle)]
extern "C" fn stackweave_bench_recorder_stop() -> *const c_char {
    let Some(recorder) = recorder() else { return reason("there is no recorder") };
    calls::stop(&recorder).map_or_else(|error| reason(&error.to_string()), |()| ptr::null())
}

fn reason(why: &str) -> *const c_char {
    CString::new(why).unwrap_or_default().into_raw().cast_const()
}

/// Returns a thread's blocks, of which there are none yet. `parts` says what is captured, as
/// `library.py` numbers it, and recorded if there is a recorder; 0 for nothing.
#[unsafe(no_mangle)]
extern "C" fn stackweave_bench_churn_new(parts: c_uint) -> *mut c_void {
    let request =
        CaptureRequest { python: parts & 1 != 0, native: parts & 2 != 0, script: false, ..CaptureRequest::default() };
    let request = (parts != 0).then_some(request);
    let recorder = recorder().filter(|_| request.is_some());
    Box::into_raw(Box::new(Churn { blocks: [ptr::null_mut(); LIVE], state: 1, request, recorder })).cast()
}

/// Makes `count` allocations, and as many frees except for the blocks that stay live.
#[unsafe(no_mangle)]
unsafe extern "C" fn stackweave_bench_churn(churn: *mut c_void, count: usize) {
    // SAFETY: the caller passes a result of `stackweave_bench_churn_new`, from one thread at a time.
    unsafe { &mut *churn.cast::<Churn>() }.run(count);
}

/// Drops the table of live blocks without freeing them, so that the recording ends with live blocks.
#[unsafe(no_mangle)]
unsafe extern "C" fn stackweave_bench_churn_end(churn: *mut c_void) {
    // SAFETY: as above, and the caller does not use the pointer again.
    drop(unsafe { Box::from_raw(churn.cast::<Churn>()) });
}

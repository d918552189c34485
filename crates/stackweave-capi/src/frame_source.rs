//! Interpreters of the host, which add their frames to captured stacks.
//!
//! Hot file, except for the registration: no allocation and no lock outside the host's callbacks.

use std::ffi::c_void;
use std::sync::Arc;

use stackweave_capture::{FrameSource, RawFrame, RegisteredSource, SourceStop};
use stackweave_core::{RawFrameKind, SourceKind, SourceLocation, SourceWalk, SourceWalkResult};

use crate::boundary::{CallError, call};
use crate::callback_gate::{self, CallbackGate};
use crate::handle_table::HandleTable;
use crate::location::{collect, stackweave_location_list};
use crate::sized_struct::{self, SizedStruct};
use crate::status::stackweave_status::{
    self, STACKWEAVE_BAD_ARGUMENT, STACKWEAVE_BUSY, STACKWEAVE_TOO_MANY, STACKWEAVE_UNKNOWN_HANDLE,
};

/// The buffers of one call of a frame source's `walk`.
#[derive(Debug)]
#[repr(C)]
pub struct stackweave_source_walk {
    /// The size of this structure in the library's version, in bytes.
    pub size: usize,
    /// Receives the frames, innermost first. A word has 53 bits, and identifies a position in the interpreter's code:
    /// equal words are the same position.
    pub words: *mut u64,
    /// Receives, for each word, an address in the native frame that runs the frame, such as the address of a local variable
    /// of the interpreter's loop. The frame is placed just inside that native frame. The addresses increase outward. If an
    /// address is unknown, it is 0: the frame then follows the previous one, and the first frame is the innermost of all.
    pub activations: *mut u64,
    /// The number of frames that fit.
    pub capacity: usize,
    /// Memory of this source on this thread, `memory_words` long. It is zero at first, and then has the content that the last
    /// walk wrote. Use it only as a hint: the memory of a thread that has ended is reused for another thread.
    pub memory: *mut u64,
    /// The length of `memory`; may be 0.
    pub memory_words: usize,
    /// Whether the capture runs in a signal handler, which may have interrupted the interpreter at any point.
    pub in_signal_handler: bool,
    /// Set this if frames are missing.
    pub is_cut: bool,
}

/// An interpreter of the host. Both callbacks may be called on any thread, and by several threads at once. They must not
/// throw or `longjmp`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct stackweave_frame_source {
    /// The size of this structure, in bytes.
    pub size: usize,
    /// Passed to the callbacks.
    pub data: *mut c_void,
    /// Writes the frames of the calling thread and returns their number. Called in every capture: inside allocators, with
    /// any lock held, in signal handlers. So it must not take locks or allocate, unless it knows that this is safe.
    pub walk: Option<unsafe extern "C" fn(data: *mut c_void, walk: *mut stackweave_source_walk) -> usize>,
    /// Adds the location of a word with stackweave_add_location; adds none if the word is unknown. Called when stacks are
    /// resolved, with no lock of the library held.
    pub locate: Option<unsafe extern "C" fn(data: *mut c_void, word: u64, locations: *mut stackweave_location_list)>,
}

// SAFETY: numbers, pointers and optional functions, for which zeros are valid; the size comes first.
unsafe impl SizedStruct for stackweave_frame_source {
    const MIN_SIZE: usize = size_of::<Self>();
}

struct HostFrameSource {
    callbacks: stackweave_frame_source,
    /// Guards `locate`. The registration guards `walk`.
    gate: CallbackGate,
}

// SAFETY: the documentation of the callbacks requires that they may be called with their data on any thread.
unsafe impl Send for HostFrameSource {}
// SAFETY: it also requires that several threads may call them at once.
unsafe impl Sync for HostFrameSource {}

impl FrameSource for HostFrameSource {
    fn kind(&self) -> SourceKind {
        SourceKind::Script
    }

    fn walk(&self, walk: SourceWalk<'_>) -> SourceWalkResult {
        let Some(callback) = self.callbacks.walk else { return SourceWalkResult::default() };
        let capacity = walk.frames.len().min(walk.activations.len());
        let mut host_walk = stackweave_source_walk {
            size: size_of::<stackweave_source_walk>(),
            words: walk.frames.as_mut_ptr().cast(),
            activations: walk.activations.as_mut_ptr().cast(),
            capacity,
            memory: walk.memory.as_mut_ptr(),
            memory_words: walk.memory.len(),
            in_signal_handler: walk.in_signal_handler,
            is_cut: false,
        };
        // SAFETY: the host guarantees its callback. Both buffers are words in C, and have the length that is passed.
        let written = unsafe { callback(self.callbacks.data, &raw mut host_walk) };
        let len = written.min(capacity);
        for frame in &mut walk.frames[..len] {
            *frame = RawFrame::script(walk.source, frame.to_bits());
        }
        let is_cut = host_walk.is_cut || written > capacity;
        let stop = if is_cut { SourceStop::DepthLimit } else { SourceStop::EndOfStack };
        SourceWalkResult { len, stop, ..SourceWalkResult::default() }
    }

    fn locate(&self, frame: RawFrame) -> Option<SourceLocation> {
        let RawFrameKind::Script { word, .. } = frame.kind() else { return None };
        let callback = self.callbacks.locate?;
        let _permit = self.gate.enter()?;
        // SAFETY: the host guarantees its callback until the gate is closed.
        collect(|locations| unsafe { callback(self.callbacks.data, word, locations) }).into_iter().next()
    }
}

static SOURCES: HandleTable<(RegisteredSource, Arc<HostFrameSource>), 256> = HandleTable::new();

/// Registers an interpreter, whose frames are in all later captures that request STACKWEAVE_CAPTURE_SCRIPT. `handle` receives
/// the handle for stackweave_remove_frame_source, which is never 0. A process can register 256 in its lifetime.
///
/// # Safety
/// `source` is null or valid, and its callbacks may be called until it is removed; `handle` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stackweave_register_frame_source(
    source: *const stackweave_frame_source,
    handle: *mut u64,
) -> stackweave_status {
    call(|| {
        let bad = |message: &'static str| CallError::new(STACKWEAVE_BAD_ARGUMENT, message);
        // SAFETY: guaranteed by the caller.
        let callbacks =
            unsafe { sized_struct::read(source) }.ok_or_else(|| bad("source is null, or its size is wrong"))?;
        if handle.is_null() || callbacks.walk.is_none() || callbacks.locate.is_none() {
            return Err(bad("handle, walk or locate is null"));
        }
        let too_many = || CallError::new(STACKWEAVE_TOO_MANY, "256 frame sources have been registered in this process");
        let source = Arc::new(HostFrameSource { callbacks, gate: CallbackGate::closed() });
        source.gate.open();
        let registered = stackweave_capture::register_source(Arc::clone(&source) as _).ok_or_else(too_many)?;
        let handle_of_source = SOURCES.insert((registered, source)).map_err(|_| too_many())?;
        // SAFETY: not null; the caller guarantees the rest.
        unsafe { handle.write(handle_of_source) };
        Ok(())
    })
}

/// Removes an interpreter. When this returns, its callbacks are not running and will not be called again. Its frames in
/// stacks that were captured before, but not yet resolved, have no names.
///
/// It waits for other threads that are in the callbacks, so it must not be called with a lock held that the callbacks take,
/// in a callback, or in a signal handler.
#[unsafe(no_mangle)]
pub extern "C" fn stackweave_remove_frame_source(handle: u64) -> stackweave_status {
    call(|| {
        if callback_gate::is_inside_callback() {
            return Err(CallError::new(STACKWEAVE_BUSY, "must not be called in a callback"));
        }
        let unknown = || CallError::new(STACKWEAVE_UNKNOWN_HANDLE, "no frame source has this handle");
        let (registered, source) = SOURCES.remove(handle).ok_or_else(unknown)?;
        drop(registered);
        source.gate.close();
        Ok(())
    })
}

//! Interpreters of the host that add frames.
//!
//! Hot file, but for registration: no allocation, no lock; what a host's callback does is its own.

use std::ffi::c_void;
use std::sync::Arc;

use stackweave_capture::{FrameSource, RawFrame, RegisteredSource, SourceStop};
use stackweave_core::{RawFrameKind, SourceKind, SourceLocation, SourceWalk, SourceWalked};

use crate::border::{Fault, call};
use crate::gate::{self, Gate};
use crate::growing::{self, Growing};
use crate::handles::Handles;
use crate::location::{collect, stackweave_locations};
use crate::status::stackweave_status::{
    self, STACKWEAVE_BAD_ARGUMENT, STACKWEAVE_BUSY, STACKWEAVE_TOO_MANY, STACKWEAVE_UNKNOWN_HANDLE,
};

/// What a source gets for one walk.
#[derive(Debug)]
#[repr(C)]
pub struct stackweave_walk {
    /// The size of this structure, in bytes, in the library's version.
    pub size: usize,
    /// Where the frames go, innermost first: what the source calls the place in its code, in 53 bits. Equal words are the
    /// same place.
    pub words: *mut u64,
    /// As long: where on the C stack each frame runs, an address in the native frame that runs it, such as that of a local
    /// variable of the interpreter's loop. The frame then stands just inside that native frame. Outward they grow. 0 where
    /// it is not known: the frame then follows the one before it; the first is innermost of all.
    pub activations: *mut u64,
    /// How many frames there is room for.
    pub capacity: usize,
    /// The source's own on this thread, `memory_words` long: zeros at first, then what the last walk left. A guess, not a
    /// promise: the memory of a thread that has ended is handed on to another.
    pub memory: *mut u64,
    /// May be 0.
    pub memory_words: usize,
    /// Whether the capture runs in a signal handler, which may have interrupted the interpreter anywhere.
    pub in_signal_handler: bool,
    /// To be set if frames are missing.
    pub is_cut: bool,
}

/// An interpreter of the host. Both callbacks may be called on any thread, several at once. They must not throw or
/// jump out.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct stackweave_source {
    /// The size of this structure, in bytes.
    pub size: usize,
    /// Passed to the callbacks.
    pub data: *mut c_void,
    /// Writes the frames of the calling thread and returns how many. Called inside every capture: inside allocators, with
    /// anybody's locks held, in signal handlers. So it takes no lock and allocates nothing, unless it knows that it may.
    pub walk: Option<unsafe extern "C" fn(data: *mut c_void, walk: *mut stackweave_walk) -> usize>,
    /// Adds the place that a word stands for, by stackweave_locations_add; adds none if it does not know it. Called when
    /// stacks are resolved, with no lock of the library held.
    pub locate: Option<unsafe extern "C" fn(data: *mut c_void, word: u64, place: *mut stackweave_locations)>,
}

// SAFETY: numbers, pointers and optional functions, the size first; zeros are valid in all of them.
unsafe impl Growing for stackweave_source {
    const FIRST: usize = size_of::<Self>();
}

struct Source {
    callbacks: stackweave_source,
    /// In front of `locate`. Whether `walk` is called, the registration decides.
    gate: Gate,
}

// SAFETY: the callbacks may be called with their data on any thread, as their documentation demands.
unsafe impl Send for Source {}
// SAFETY: as above, several at once.
unsafe impl Sync for Source {}

impl FrameSource for Source {
    fn kind(&self) -> SourceKind {
        SourceKind::Script
    }

    fn walk(&self, walk: SourceWalk<'_>) -> SourceWalked {
        let Some(callback) = self.callbacks.walk else { return SourceWalked::default() };
        let capacity = walk.frames.len().min(walk.activations.len());
        let mut asked = stackweave_walk {
            size: size_of::<stackweave_walk>(),
            words: walk.frames.as_mut_ptr().cast(),
            activations: walk.activations.as_mut_ptr().cast(),
            capacity,
            memory: walk.memory.as_mut_ptr(),
            memory_words: walk.memory.len(),
            in_signal_handler: walk.in_signal_handler,
            is_cut: false,
        };
        // SAFETY: the host vouches for its callback. Both slices are of words in C's sense, as long as it is told.
        let written = unsafe { callback(self.callbacks.data, &raw mut asked) };
        let len = written.min(capacity);
        for frame in &mut walk.frames[..len] {
            *frame = RawFrame::script(walk.source, frame.to_bits());
        }
        let is_cut = asked.is_cut || written > capacity;
        let stop = if is_cut { SourceStop::DepthLimit } else { SourceStop::EndOfStack };
        SourceWalked { len, stop, ..SourceWalked::default() }
    }

    fn locate(&self, frame: RawFrame) -> Option<SourceLocation> {
        let RawFrameKind::Script { word, .. } = frame.kind() else { return None };
        let callback = self.callbacks.locate?;
        let _pass = self.gate.enter()?;
        // SAFETY: the host vouches for its callback until the gate is closed.
        collect(|place| unsafe { callback(self.callbacks.data, word, place) }).into_iter().next()
    }
}

static SOURCES: Handles<(RegisteredSource, Arc<Source>), 256> = Handles::new();

/// Adds an interpreter, whose frames are in every capture that asks for STACKWEAVE_SCRIPT from now on. `handle`, to
/// remove it by, is never 0. 256 can be added in the life of a process.
///
/// # Safety
/// `source` is null or valid, and its callbacks may be called until it is removed; `handle` is null or can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stackweave_register_source(
    source: *const stackweave_source,
    handle: *mut u64,
) -> stackweave_status {
    call(|| {
        let bad = |text: &'static str| Fault::new(STACKWEAVE_BAD_ARGUMENT, text);
        // SAFETY: the caller vouches for it.
        let callbacks = unsafe { growing::read(source) }.ok_or_else(|| bad("source is null or of a wrong size"))?;
        if handle.is_null() || callbacks.walk.is_none() || callbacks.locate.is_none() {
            return Err(bad("handle, walk or locate is null"));
        }
        let too_many = || Fault::new(STACKWEAVE_TOO_MANY, "256 sources have been registered in this process");
        let source = Arc::new(Source { callbacks, gate: Gate::closed() });
        source.gate.open();
        let registered = stackweave_capture::register_source(Arc::clone(&source) as _).ok_or_else(too_many)?;
        let given = SOURCES.insert((registered, source)).map_err(|_| too_many())?;
        // SAFETY: not null, and the caller vouches for it.
        unsafe { handle.write(given) };
        Ok(())
    })
}

/// Removes an interpreter. When this returns, neither of its callbacks runs or will run any more; its frames in
/// stacks that were captured before, and not resolved yet, have no names.
///
/// It waits for captures of other threads that are asking the source, so it must not be called with a lock held that the
/// callbacks take, nor in a callback, nor in a signal handler.
#[unsafe(no_mangle)]
pub extern "C" fn stackweave_remove_source(handle: u64) -> stackweave_status {
    call(|| {
        if gate::inside() {
            return Err(Fault::new(STACKWEAVE_BUSY, "not from inside a callback"));
        }
        let unknown = || Fault::new(STACKWEAVE_UNKNOWN_HANDLE, "no source has this handle");
        let (registered, source) = SOURCES.take(handle).ok_or_else(unknown)?;
        drop(registered);
        source.gate.close();
        Ok(())
    })
}

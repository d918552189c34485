//! The registered sources of frames.
//!
//! A source keeps its number forever, because stacks outlive it. After it is removed, it is no longer called for
//! frames, but still for the names of frames that it wrote.

use core::{fmt, mem};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use stackweave_core::{
    FrameSource, RawFrame, RawFrameKind, SourceKind, SourceLocation, SourceStop, SourceWalkResult, StackPointer,
};
use stackweave_unwind::ThreadMemory;

use crate::buffers::{CaptureBuffers, DEPTH};
use crate::request::CaptureRequest;
use crate::weave::merge_sources;

const MOST: usize = 256;

struct FrameSourceSlot {
    source: OnceLock<Arc<dyn FrameSource>>,
    is_active: AtomicBool,
}

static SLOTS: [FrameSourceSlot; MOST] =
    [const { FrameSourceSlot { source: OnceLock::new(), is_active: AtomicBool::new(false) } }; MOST];
/// Number of registered sources.
static GIVEN: AtomicUsize = AtomicUsize::new(0);
/// The number of the active or last Python source, plus one.
static PYTHON: AtomicUsize = AtomicUsize::new(0);
/// Number of other active sources.
static SCRIPTS: AtomicUsize = AtomicUsize::new(0);

/// A registered source. It is called for its frames in every capture, until this is dropped.
///
/// Dropping waits until no capture of another thread is calling it. So it must not be dropped while a lock is held
/// that the source takes in its walk, such as the GIL, nor in a signal handler.
#[derive(Debug)]
#[must_use = "dropping it removes the source"]
pub struct RegisteredSource {
    number: usize,
}

/// Registers a source of frames. `None` if 256 have been registered, or if it is a second one for Python.
pub fn register_source(source: Arc<dyn FrameSource>) -> Option<RegisteredSource> {
    let kind = source.kind();
    let number = GIVEN.fetch_update(Ordering::AcqRel, Ordering::Acquire, |given| (given < MOST).then_some(given + 1));
    let number = number.ok()?;
    let slot = &SLOTS[number];
    if kind == SourceKind::Python {
        let vacant = |now: usize| (now == 0 || !SLOTS[now - 1].is_active.load(Ordering::Acquire)).then_some(number + 1);
        slot.is_active.store(true, Ordering::Release);
        let _ = slot.source.set(source);
        if PYTHON.fetch_update(Ordering::AcqRel, Ordering::Acquire, vacant).is_err() {
            slot.is_active.store(false, Ordering::Release);
            return None;
        }
    } else {
        let _ = slot.source.set(source);
        slot.is_active.store(true, Ordering::Release);
        SCRIPTS.fetch_add(1, Ordering::AcqRel);
    }
    Some(RegisteredSource { number })
}

impl Drop for RegisteredSource {
    fn drop(&mut self) {
        let slot = &SLOTS[self.number];
        slot.is_active.store(false, Ordering::SeqCst);
        if slot.source.get().is_some_and(|source| source.kind() == SourceKind::Script) {
            SCRIPTS.fetch_sub(1, Ordering::AcqRel);
        }
        ThreadMemory::wait_for_others();
    }
}

/// Describes a source's frame or a label; `None` for native frames, and for frames that the source does not know.
pub fn locate(frame: RawFrame) -> Option<SourceLocation> {
    if let RawFrameKind::Label(_) = frame.kind() {
        return stackweave_store::locate_label(frame);
    }
    SLOTS[number_of(frame)?].source.get()?.locate(frame)
}

/// Writes a description of the frame on one line: the address of a native one, the source's description of
/// another. Allocates nothing and takes no lock: async-signal-safe if the sources keep the contract of
/// [`FrameSource::write`].
pub fn write_frame(frame: RawFrame, out: &mut dyn fmt::Write) -> fmt::Result {
    match number_of(frame).and_then(|number| SLOTS[number].source.get()) {
        Some(source) => source.write(frame, out),
        None => match frame.kind() {
            RawFrameKind::Native(address) => write!(out, "{:#x}", address.address()),
            _ => write!(out, "{frame:?}"),
        },
    }
}

/// Writes the parts of a frame for a program to read, and returns whether its source knows them:
/// [`FrameSource::write_parts`].
pub fn write_parts(frame: RawFrame, out: &mut dyn fmt::Write) -> Result<bool, fmt::Error> {
    match number_of(frame).and_then(|number| SLOTS[number].source.get()) {
        Some(source) => source.write_parts(frame, out),
        None => Ok(false),
    }
}

/// Returns the number of the source that has written a frame.
fn number_of(frame: RawFrame) -> Option<usize> {
    match frame.kind() {
        RawFrameKind::Native(_) | RawFrameKind::Label(_) => None,
        RawFrameKind::Python { .. } => PYTHON.load(Ordering::Acquire).checked_sub(1),
        RawFrameKind::Script { source, .. } => Some(source.into()),
    }
}

/// The result of the walks of all sources.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WalkedSources {
    /// Number of frames.
    pub(crate) len: usize,
    /// The first reason other than the end of a stack.
    pub(crate) stop: SourceStop,
    /// Whether the frames are in the output of the weave, and not in `CaptureBuffers::frames`.
    pub(crate) is_woven: bool,
    /// The hash of the frames and their activations, if native frames are requested, outside of signal handlers.
    pub(crate) hash: u64,
}

/// Calls the sources that the request includes, for at most `capacity` frames of each.
#[inline(always)]
pub(crate) fn walk(
    request: &CaptureRequest,
    own: &mut CaptureBuffers,
    capacity: usize,
    in_signal_handler: bool,
) -> WalkedSources {
    let has_scripts = request.script && SCRIPTS.load(Ordering::Acquire) != 0;
    let mut walked = WalkedSources { is_woven: !request.native && !has_scripts, ..WalkedSources::default() };
    if request.python
        && let Some(number) = PYTHON.load(Ordering::Acquire).checked_sub(1)
        && let Some(source) = active(number)
    {
        // A signal handler may jump out of the walk, of which the source then remembers a part.
        let last = mem::take(&mut own.python_hash);
        let mut result = source.walk(own.for_python(capacity, walked.is_woven, in_signal_handler));
        result.len = result.len.min(capacity);
        (walked.len, walked.stop) = (result.len, result.stop);
        if in_signal_handler {
            own.python_hash = last;
        } else {
            walked.hash = hash_of_python(request, own, last, result);
        }
    }
    if has_scripts {
        walk_scripts(own, capacity, in_signal_handler, &mut walked);
        if request.native && !in_signal_handler {
            walked.hash = hash(&own.frames[..walked.len], &own.activations[..walked.len]);
        }
    }
    walked
}

/// Returns the hash of Python's frames, if native frames are requested. It is that of the last walk if the frames are
/// unchanged.
#[inline(always)]
fn hash_of_python(
    request: &CaptureRequest,
    own: &mut CaptureBuffers,
    last: (usize, u64),
    result: SourceWalkResult,
) -> u64 {
    let (last_len, last_hash) = last;
    if result.is_unchanged && last_len == result.len && last_hash != 0 {
        own.python_hash = last;
        return last_hash;
    }
    let hash = if request.native { hash(&own.frames[..result.len], &own.activations[..result.len]).max(1) } else { 0 };
    let is_complete = result.stop == SourceStop::EndOfStack;
    own.python_hash = (result.len, if is_complete { hash } else { 0 });
    hash
}

/// Returns the hash of frames and their activations.
#[inline(always)]
fn hash(frames: &[RawFrame], activations: &[StackPointer]) -> u64 {
    const LANES: usize = 4;
    let mix = |(frame, activation): (&RawFrame, &StackPointer)| {
        let activation = activation.0.wrapping_mul(0xd6e8_feb8_6659_fd93).rotate_left(32);
        let word = frame.to_bits().wrapping_mul(0xe703_7ed1_a0b4_28db) ^ activation;
        word ^ word >> 32
    };
    let add = |hash: u64, word: u64| hash.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(word);
    // Several at a time, so that they do not wait for each other.
    let (frame_groups, frame_rest) = frames.as_chunks::<LANES>();
    let (activation_groups, activation_rest) = activations.as_chunks::<LANES>();
    let mut lanes = [0; LANES];
    for (frames, activations) in frame_groups.iter().zip(activation_groups) {
        for (lane, pair) in lanes.iter_mut().zip(frames.iter().zip(activations)) {
            *lane = add(*lane, mix(pair));
        }
    }
    let inner = lanes.into_iter().fold(0, |hash, lane| add(hash, lane ^ lane >> 32));
    frame_rest.iter().zip(activation_rest).fold(inner, |hash, pair| add(hash, mix(pair)))
}

#[cold]
#[inline(never)]
fn walk_scripts(own: &mut CaptureBuffers, capacity: usize, in_signal_handler: bool, walked: &mut WalkedSources) {
    for number in 0..GIVEN.load(Ordering::Acquire) {
        let Some(source) = active(number).filter(|source| source.kind() == SourceKind::Script) else { continue };
        let middle = walked.len;
        let capacity = capacity.min(DEPTH - middle);
        let result = source.walk(own.for_script(middle..middle + capacity, number as u8, in_signal_handler));
        walked.len += result.len.min(capacity);
        if walked.stop == SourceStop::EndOfStack {
            walked.stop = result.stop;
        }
        let (frames, activations) = (&mut own.frames[..walked.len], &mut own.activations[..walked.len]);
        merge_sources(frames, activations, middle, result.inside);
    }
}

#[inline(always)]
fn active(number: usize) -> Option<&'static dyn FrameSource> {
    let slot = &SLOTS[number];
    if slot.is_active.load(Ordering::Acquire) { slot.source.get().map(|source| &**source) } else { None }
}

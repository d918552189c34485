//! Spans of the program's, and garbage collections: they lie on shadow stacks among the calls.

use stackweave_core::{Call, RawFrame};
use stackweave_cpython::PythonSource;
use stackweave_cpython::calls::{CallFrame, FrameAt};
use stackweave_store::label;

use crate::blocks::{self, Block};
use crate::entry::{Entry, Form, INSIDE, Status, call_of_label};
use crate::observer::here;
use crate::session::{self, Session};
use crate::sink::{Sink, What};

/// Frames that a walk has found, as those of events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walked<'a>(&'a [FrameAt]);

impl<'a> Walked<'a> {
    /// The first of them, if there is one.
    pub(crate) fn first(frames: &'a [FrameAt]) -> Option<Self> {
        (!frames.is_empty()).then_some(Self(frames))
    }
}

impl CallFrame for Walked<'_> {
    fn address(self) -> u64 {
        self.0[0].address
    }

    fn code(self) -> u64 {
        self.0[0].code
    }

    fn caller(self) -> Option<Self> {
        Self::first(&self.0[1..])
    }

    fn unit(self) -> u32 {
        self.0[0].unit
    }

    fn locals(self) -> u64 {
        0
    }
}

/// The frames of the calling thread.
///
/// # Safety
/// The GIL is held.
pub(crate) unsafe fn frames_here(source: &PythonSource) -> Vec<FrameAt> {
    let mut frames = Vec::new();
    // SAFETY: passed on to the caller.
    unsafe { source.visit_frames(|frame| frames.push(frame)) };
    frames
}

/// Brings the shadow stack of the calling thread up to date.
///
/// # Safety
/// The GIL is held.
unsafe fn be_here(block: &Block, session: &Session) {
    // SAFETY: passed on to the caller.
    let frames = unsafe { frames_here(session.source) };
    session.on(block, |engine| {
        engine.be_at(Walked::first(&frames));
        // Of what the innermost frame has called, only what has called us is left; it is over when we return.
        while block.thread.shadow.top().form == Form::Native {
            block.thread.end(engine.pen, engine.pen.sink.now(), What::Return);
        }
    });
}

/// A span of the program's begins, in the recording that is traced; `record` writes it.
///
/// # Safety
/// The GIL is held, and a trace runs or is paused.
pub unsafe fn begin_span(frame: RawFrame, record: impl FnOnce()) {
    // SAFETY: passed on to the caller.
    let Some((block, session)) = (unsafe { here() }) else {
        if let Some(block) = blocks::of_this_thread() {
            block.thread.unrecorded.set(block.thread.unrecorded.get() + 1);
        }
        return;
    };
    // SAFETY: passed on to the caller.
    unsafe { be_here(block, session) };
    let top = *block.thread.shadow.top();
    let call = call_of_label(frame).map(Call::to_bits);
    let entry = Entry { key: top.key | INSIDE, call: call.unwrap_or(0), form: Form::Span, ..top };
    if call.is_none() {
        return block.thread.shadow.push(Entry { status: Status::Hidden, ..entry });
    }
    session.on(block, |engine| block.thread.begin_by(engine.pen, entry, record));
}

/// The span that began last on this thread ends; `record` writes that, unless it began during a pause.
///
/// # Safety
/// The GIL is held, and a trace runs or is paused.
pub unsafe fn end_span(record: impl FnOnce()) {
    // SAFETY: passed on to the caller.
    let Some((block, session)) = (unsafe { here() }) else {
        if let Some(block) = blocks::of_this_thread() {
            let unrecorded = &block.thread.unrecorded;
            match unrecorded.get() {
                0 => drop(block.thread.kept.borrow_mut().pop()),
                spans => unrecorded.set(spans - 1),
            }
        }
        return;
    };
    // SAFETY: passed on to the caller.
    unsafe { be_here(block, session) };
    session.on(block, |engine| {
        block.thread.end_span(engine.pen, engine.pen.sink.now(), Form::Span, record);
    });
}

/// Something is about to be recorded by the calling thread that is no span: what is open around it is written first.
///
/// # Safety
/// The GIL is held, and a trace runs or is paused.
pub unsafe fn write_open() {
    // SAFETY: passed on to the caller.
    if let Some((block, session)) = unsafe { here() } {
        session.on(block, |engine| block.thread.write_pending(engine.pen));
    }
}

/// A garbage collection begins on the calling thread.
///
/// # Safety
/// The GIL is held.
pub unsafe fn start_collection(generation: u64) {
    // SAFETY: passed on to the caller.
    let Some((block, session)) = (unsafe { here() }) else { return };
    let Some(frame) = label("garbage collection", "", 0) else { return };
    let Some(call) = call_of_label(frame) else { return };
    // SAFETY: passed on to the caller.
    let frames = unsafe { frames_here(session.source) };
    let shadow = &block.thread.shadow;
    // A collection may come when a function has a frame already, but its begin is not told yet.
    let is_near = shadow.is_followed() && frames.iter().take(2).any(|frame| frame.address == shadow.top().frame());
    if !is_near {
        session.on(block, |engine| engine.be_at(Walked::first(&frames)));
    }
    let top = *shadow.top();
    let entry = Entry { key: top.key | INSIDE, call: call.to_bits(), form: Form::Collection, ..top };
    session.on(block, |engine| {
        let sink = engine.pen.sink;
        let record = || sink.record(sink.now(), What::Collection, &[frame.to_bits(), generation]);
        block.thread.begin_by(engine.pen, entry, record);
    });
}

/// It ends.
///
/// # Safety
/// The GIL is held.
pub unsafe fn end_collection(collected: u64, uncollectable: u64) {
    // SAFETY: passed on to the caller.
    let Some((block, session)) = (unsafe { here() }) else { return };
    session.on(block, |engine| {
        let sink = engine.pen.sink;
        let ticks = sink.now();
        let record = || sink.record(ticks, What::CollectionEnd, &[collected, uncollectable]);
        block.thread.end_span(engine.pen, ticks, Form::Collection, record);
    });
}

/// Whether a trace runs or is paused.
///
/// # Safety
/// The GIL is held.
pub unsafe fn is_tracing() -> bool {
    // SAFETY: passed on to the caller.
    unsafe { session::current() }.is_some()
}

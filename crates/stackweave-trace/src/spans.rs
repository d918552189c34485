//! Spans of the program, and garbage collections: they are on shadow stacks among the calls.

use stackweave_core::{Call, RawFrame};
use stackweave_cpython::PythonSource;
use stackweave_cpython::calls::{CallFrame, StackFrame};
use stackweave_store::label;

use crate::observer::current_thread;
use crate::session::{self, TraceSession};
use crate::shadow_entry::{EntryKind, EntryStatus, INSIDE, ShadowEntry, call_of_label};
use crate::sink::{Sink, TraceEvent};
use crate::traced_threads::{self, TracedThread};

/// The frames of a walk, as frames of events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WalkedStack<'a>(&'a [StackFrame]);

impl<'a> WalkedStack<'a> {
    /// Returns the first frame, if there is one.
    pub(crate) fn first(frames: &'a [StackFrame]) -> Option<Self> {
        (!frames.is_empty()).then_some(Self(frames))
    }
}

impl CallFrame for WalkedStack<'_> {
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

/// Returns the frames of the calling thread.
///
/// # Safety
/// The GIL is held.
pub(crate) unsafe fn frames_here(source: &PythonSource) -> Vec<StackFrame> {
    let mut frames = Vec::new();
    // SAFETY: passed on to the caller.
    unsafe { source.visit_frames(|frame| frames.push(frame)) };
    frames
}

/// Updates the shadow stack of the calling thread.
///
/// # Safety
/// The GIL is held.
unsafe fn update_stack(thread: &TracedThread, session: &TraceSession) {
    // SAFETY: passed on to the caller.
    let frames = unsafe { frames_here(session.source) };
    session.on(thread, |engine| {
        engine.align_to(WalkedStack::first(&frames));
        // Of the native callees of the innermost frame, only our own caller is left; its entry is not needed for the
        // span.
        while thread.stack.shadow.top().kind == EntryKind::Native {
            thread.stack.end(engine.writer, engine.writer.sink.now(), TraceEvent::Return);
        }
    });
}

/// Begins a span of the program in the traced recording; `record` writes it.
///
/// # Safety
/// The GIL is held, and a trace is running or paused.
pub unsafe fn begin_span(frame: RawFrame, record: impl FnOnce()) {
    // SAFETY: passed on to the caller.
    let Some((thread, session)) = (unsafe { current_thread() }) else {
        if let Some(thread) = traced_threads::current() {
            thread.stack.spans_during_pause.set(thread.stack.spans_during_pause.get() + 1);
        }
        return;
    };
    // SAFETY: passed on to the caller.
    unsafe { update_stack(thread, session) };
    let top = *thread.stack.shadow.top();
    let call = call_of_label(frame).map(Call::to_bits);
    let entry = ShadowEntry { key: top.key | INSIDE, call: call.unwrap_or(0), kind: EntryKind::Span, ..top };
    if call.is_none() {
        return thread.stack.shadow.push(ShadowEntry { status: EntryStatus::Hidden, ..entry });
    }
    session.on(thread, |engine| thread.stack.begin_recorded(engine.writer, entry, record));
}

/// Ends the span that began last on this thread; `record` writes that, unless it began during a pause.
///
/// # Safety
/// The GIL is held, and a trace is running or paused.
pub unsafe fn end_span(record: impl FnOnce()) {
    // SAFETY: passed on to the caller.
    let Some((thread, session)) = (unsafe { current_thread() }) else {
        if let Some(thread) = traced_threads::current() {
            let unrecorded = &thread.stack.spans_during_pause;
            match unrecorded.get() {
                0 => drop(thread.stack.paused_spans.borrow_mut().pop()),
                spans => unrecorded.set(spans - 1),
            }
        }
        return;
    };
    // SAFETY: passed on to the caller.
    unsafe { update_stack(thread, session) };
    session.on(thread, |engine| {
        thread.stack.end_span(engine.writer, engine.writer.sink.now(), EntryKind::Span, record);
    });
}

/// Writes the pending calls around an event that the calling thread is about to record, and that is not a span.
///
/// # Safety
/// The GIL is held, and a trace is running or paused.
pub unsafe fn write_open() {
    // SAFETY: passed on to the caller.
    if let Some((thread, session)) = unsafe { current_thread() } {
        session.on(thread, |engine| thread.stack.write_pending(engine.writer));
    }
}

/// Begins a garbage collection on the calling thread.
///
/// # Safety
/// The GIL is held.
pub unsafe fn start_collection(generation: u64) {
    // SAFETY: passed on to the caller.
    let Some((thread, session)) = (unsafe { current_thread() }) else { return };
    let Some(frame) = label("garbage collection", "", 0) else { return };
    let Some(call) = call_of_label(frame) else { return };
    // SAFETY: passed on to the caller.
    let frames = unsafe { frames_here(session.source) };
    let shadow = &thread.stack.shadow;
    // A collection may start when a function already has a frame, but before the event of its start.
    let is_near = shadow.is_followed() && frames.iter().take(2).any(|frame| frame.address == shadow.top().frame());
    if !is_near {
        session.on(thread, |engine| engine.align_to(WalkedStack::first(&frames)));
    }
    let top = *shadow.top();
    let entry = ShadowEntry { key: top.key | INSIDE, call: call.to_bits(), kind: EntryKind::Collection, ..top };
    session.on(thread, |engine| {
        let sink = engine.writer.sink;
        let record = || sink.record(sink.now(), TraceEvent::Collection, &[frame.to_bits(), generation]);
        thread.stack.begin_recorded(engine.writer, entry, record);
    });
}

/// Ends a garbage collection.
///
/// # Safety
/// The GIL is held.
pub unsafe fn end_collection(collected: u64, uncollectable: u64) {
    // SAFETY: passed on to the caller.
    let Some((thread, session)) = (unsafe { current_thread() }) else { return };
    session.on(thread, |engine| {
        let sink = engine.writer.sink;
        let ticks = sink.now();
        let record = || sink.record(ticks, TraceEvent::CollectionEnd, &[collected, uncollectable]);
        thread.stack.end_span(engine.writer, ticks, EntryKind::Collection, record);
    });
}

/// Returns whether a trace is running or paused.
///
/// # Safety
/// The GIL is held.
pub unsafe fn is_tracing() -> bool {
    // SAFETY: passed on to the caller.
    unsafe { session::current() }.is_some()
}

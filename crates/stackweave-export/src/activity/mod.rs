//! The events of threads in the order of time, with matched starts and ends, cut to the selected time.
//!
//! Profiles and all formats of events treat spans in the same way: ends without a start are left out. A span that is
//! open where events of its thread were lost ends there, unless a later event states that it is still open. The times
//! of a thread never decrease.

mod details;
mod kinds;
mod named_process;
mod objects;
mod visit;

use std::rc::Rc;

use stackweave_recording::events::{MemoryEvent, Usage};

pub(crate) use details::Details;
pub(crate) use kinds::{EventKinds, label_text};
pub(crate) use named_process::{NamedProcess, NamedThread};
pub(crate) use visit::{AllKinds, Visit, all_kinds, visit, visit_process, visit_thread};

/// A span of a thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Span {
    /// The number of its frame in the recording.
    pub(crate) frame: u32,
    /// The number of the stack at its start; 0 if none was recorded.
    pub(crate) stack: u32,
    /// The number of the frame that called it; 0 if unknown.
    pub(crate) caller: u32,
    pub(crate) began: u64,
    /// Whether it is a call. A span that was open before the first event of its thread is not.
    pub(crate) is_call: bool,
    /// The generator or coroutine, if the span is a part of its run.
    pub(crate) object: Option<SuspendedObject>,
    pub(crate) details: Details,
    /// The details of its end.
    pub(crate) at_end: Details,
    /// Whether its start was reported.
    is_reported: bool,
}

impl Span {
    /// Sets the name of its task, if there is one.
    fn set_task(&mut self, name: Option<&str>) {
        if let Some(name) = name {
            self.details = self.details.with_text("task", name);
        }
    }

    /// Returns the details of its start and its end.
    pub(crate) fn all_details(&self) -> Details {
        self.details.and(&self.at_end)
    }

    /// Returns whether it failed, according to the details of its end.
    pub(crate) fn has_failed(&self) -> bool {
        self.at_end.as_str().is_some_and(|details| details.contains(r#""failed":true"#))
    }
}

/// A generator or a coroutine, which runs in several spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SuspendedObject {
    pub(crate) address: u64,
    /// A number that all of its spans share, and no other ones.
    pub(crate) flow: u64,
    /// Whether the span with this value is the first one that was reported.
    pub(crate) is_first: bool,
}

/// The way in which a span ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpanEnding {
    /// Its end was recorded, or is after the selected time.
    Ended,
    /// Its end was not recorded.
    Unfinished,
}

/// An event of a thread. Times are in nanoseconds since the first process began to record.
#[derive(Debug)]
pub(crate) struct ThreadEvent<'e> {
    /// The index of the process.
    pub(crate) process: usize,
    /// The number of the thread in its process.
    pub(crate) thread: u32,
    pub(crate) time: u64,
    /// The open spans of the thread, outermost first, without the one that begins or ends now.
    pub(crate) around: &'e [Span],
    pub(crate) content: EventContent<'e>,
}

#[derive(Debug)]
pub(crate) enum EventContent<'e> {
    Begin(&'e Span),
    End(&'e Span, SpanEnding),
    Instant {
        frame: u32,
        stack: u32,
        details: Details,
    },
    Counter {
        frame: u32,
        value: f64,
    },
    Sample {
        stack: u32,
        weight: i64,
        details: Details,
    },
    /// The allocator with this name allocates memory.
    Allocate {
        memory: MemoryEvent,
        /// The frame of the thread's tag; 0 if it has none.
        tag: u32,
        allocator: Rc<str>,
        details: Details,
    },
    Free {
        memory: MemoryEvent,
        name: Rc<str>,
    },
    /// The thread's last free, at this address, failed.
    Keep {
        address: u64,
    },
    /// The thread has the tag of this frame from now on; 0 for none.
    Tag {
        frame: u32,
    },
    /// Figures of a snapshot.
    Usage {
        name: Rc<str>,
        usage: Usage,
        details: Details,
    },
}

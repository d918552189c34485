//! What happened, thread by thread, the earliest first: begins and ends matched, and cut to the time that is asked for.
//!
//! A profile and every format that shows events say the same about spans: ends that match nothing are left out, what is
//! open where events of its thread were lost ends there unless it is told to be open still, and times of a thread never
//! go back.

mod details;
mod kinds;
mod live;
mod named;
mod objects;
mod visit;

use std::rc::Rc;

use stackweave_recording::events::MemoryEvent;

pub(crate) use details::Details;
pub(crate) use kinds::{Kinds, text_of};
pub(crate) use live::{LiveMemory, LiveRange};
pub(crate) use named::{NamedProcess, NamedThread};
pub(crate) use visit::{visit, visit_process, visit_thread};

/// Something that a thread has begun.
#[derive(Clone, Debug, Default)]
pub(crate) struct Span {
    /// The number of its frame in the recording.
    pub(crate) frame: u32,
    /// The stack that it began on; 0 if that was not recorded.
    pub(crate) stack: u32,
    /// The number of the frame that called it; 0 if that is not known.
    pub(crate) caller: u32,
    pub(crate) began: u64,
    /// Whether it is a call: not if it was open before anything was heard of it.
    pub(crate) is_call: bool,
    /// What of it is the same in all spans of a generator.
    pub(crate) object: Option<Object>,
    pub(crate) details: Details,
    /// What its end has said.
    pub(crate) at_end: Details,
    /// Whether its begin was told.
    is_told: bool,
}

impl Span {
    /// It belongs to a task of this name, if there is one.
    fn name_task(&mut self, name: Option<&str>) {
        if let Some(name) = name {
            self.details = self.details.with_text("task", name);
        }
    }

    /// What is said about it, once it is over.
    pub(crate) fn all_details(&self) -> Details {
        self.details.and(&self.at_end)
    }

    /// Whether its end says that it has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.at_end.as_str().is_some_and(|said| said.contains(r#""failed":true"#))
    }
}

/// What runs in pieces: a generator, a coroutine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) address: u64,
    /// One number for all of its spans, and for those of no other.
    pub(crate) flow: u64,
    /// Whether none of its spans was told before.
    pub(crate) is_first: bool,
}

/// Why a span is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It ended, or goes on behind the time that was asked for.
    Ended,
    /// Nobody saw its end.
    Unfinished,
}

/// Something that happened on a thread. Times are nanoseconds since the first process began to record.
#[derive(Debug)]
pub(crate) struct ThreadEvent<'e> {
    /// The place of the process among all.
    pub(crate) process: usize,
    /// The number of the thread in its process.
    pub(crate) thread: u32,
    pub(crate) time: u64,
    /// What the thread had begun, outermost first, without what begins or ends now.
    pub(crate) around: &'e [Span],
    pub(crate) content: EventContent<'e>,
}

#[derive(Debug)]
pub(crate) enum EventContent<'e> {
    Begin(&'e Span),
    End(&'e Span, Ending),
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
    /// Memory is allocated by the allocator of this name.
    Allocate {
        memory: MemoryEvent,
        /// The frame of the tag that the thread has; 0 if it has none.
        tag: u32,
        allocator: Rc<str>,
        details: Details,
    },
    Free {
        memory: MemoryEvent,
        name: Rc<str>,
    },
    /// What the thread freed last, at this address, is not freed after all.
    Keep {
        address: u64,
    },
    /// The thread has this tag from now on; 0: none.
    Tag {
        frame: u32,
    },
    /// Figures of a snapshot, of the memory that this stack has allocated.
    Usage {
        name: Rc<str>,
        frame: u32,
        stack: u32,
        details: Details,
    },
}

//! Events without a duration.

use stackweave_core::{EventKind, Field};

use super::declare::family;
use super::fields::{ADDRESS, COUNT, DEVICE, FREE_BYTES, POOL, SIZE, STREAM};
use super::layout::{EventLayout, is_called_as};
use super::{DEMOTED, HOST_ANNOTATE, HOST_OUT_OF_MEMORY, HOST_SNAPSHOT, TRACE_NOTE, UNMATCHED_POP};

family! { "Instants" {
    /// An event of the program.
    INSTANT = "instant": Instant(FRAME, STACK);
    /// An event of the program, with details.
    INSTANT_WITH = "instant-with": Instant(FRAME, STACK, DETAILS);
} }

/// An event without a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instant {
    /// The number of the frame that names it.
    pub frame: u32,
    /// The number of the stack; 0 if none was recorded.
    pub stack: u32,
    /// Its subject.
    pub about: InstantSubject,
}

/// The subject of an instant, where its kind determines one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstantSubject {
    /// The program's own.
    Anything,
    /// A phase ended where nothing was open.
    UnmatchedPop,
    /// The tracer stopped recording the calls of a function.
    Demoted,
    /// A note of the tracer.
    TraceNote {
        /// The number of times that it applies.
        count: u64,
    },
    /// The program requested a snapshot of a host allocator.
    HostSnapshot {
        /// The device.
        device: i64,
        /// The number of bytes in use.
        size: u64,
    },
    /// A host has no memory for a request.
    OutOfMemory(OutOfMemory),
    /// The program annotated a block.
    Annotation {
        /// The device.
        device: i64,
        /// The address of the block.
        address: u64,
    },
}

/// A request that failed because the host has no memory for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// The device.
    pub device: i64,
    /// The number of requested bytes.
    pub size: u64,
    /// The stream of the request.
    pub stream: u64,
    /// The pool of the request.
    pub pool: u64,
    /// The number of free bytes of the device.
    pub free: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InstantForm {
    Anything,
    UnmatchedPop,
    Demoted,
    TraceNote,
    HostSnapshot,
    OutOfMemory,
    Annotation,
}

pub(super) fn form(kind: &EventKind) -> InstantForm {
    let known = [
        (&UNMATCHED_POP, InstantForm::UnmatchedPop),
        (&DEMOTED, InstantForm::Demoted),
        (&TRACE_NOTE, InstantForm::TraceNote),
        (&HOST_SNAPSHOT, InstantForm::HostSnapshot),
        (&HOST_OUT_OF_MEMORY, InstantForm::OutOfMemory),
        (&HOST_ANNOTATE, InstantForm::Annotation),
    ];
    let found = known.into_iter().find(|(known, _)| is_called_as(kind, known));
    found.map_or(InstantForm::Anything, |(_, form)| form)
}

pub(super) const fn named_fields(form: InstantForm) -> &'static [Field] {
    match form {
        InstantForm::Anything | InstantForm::UnmatchedPop | InstantForm::Demoted => &[],
        InstantForm::TraceNote => const { &[COUNT] },
        InstantForm::HostSnapshot => const { &[DEVICE, SIZE] },
        InstantForm::OutOfMemory => const { &[DEVICE, SIZE, STREAM, POOL, FREE_BYTES] },
        InstantForm::Annotation => const { &[DEVICE, ADDRESS] },
    }
}

impl Instant {
    #[inline]
    pub(super) fn decode(layout: &EventLayout, form: InstantForm, words: &[u64]) -> Self {
        let about = if form == InstantForm::Anything { InstantSubject::Anything } else { about(layout, form, words) };
        Self { frame: layout.frame.number(words), stack: layout.stack.number(words), about }
    }
}

fn about(layout: &EventLayout, form: InstantForm, words: &[u64]) -> InstantSubject {
    let [first, second, third, fourth, fifth, ..] = layout.named;
    match form {
        InstantForm::Anything => InstantSubject::Anything,
        InstantForm::UnmatchedPop => InstantSubject::UnmatchedPop,
        InstantForm::Demoted => InstantSubject::Demoted,
        InstantForm::TraceNote => InstantSubject::TraceNote { count: first.word(words) },
        InstantForm::HostSnapshot => {
            InstantSubject::HostSnapshot { device: first.device(words), size: second.word(words) }
        }
        InstantForm::OutOfMemory => InstantSubject::OutOfMemory(OutOfMemory {
            device: first.device(words),
            size: second.word(words),
            stream: third.word(words),
            pool: fourth.word(words),
            free: fifth.word(words),
        }),
        InstantForm::Annotation => {
            InstantSubject::Annotation { device: first.device(words), address: second.word(words) }
        }
    }
}

//! What happens and takes no time.

use stackweave_core::{EventKind, Field};

use super::declare::family;
use super::fields::{ADDRESS, COUNT, DEVICE, FREE_BYTES, POOL, SIZE, STREAM};
use super::layout::{Layout, is_called_as};
use super::{DEMOTED, HOST_ANNOTATE, HOST_OUT_OF_MEMORY, HOST_SNAPSHOT, TRACE_NOTE, UNMATCHED_POP};

family! { "Instants" {
    /// Something happens.
    INSTANT = "instant": Instant(FRAME, STACK);
    /// Something happens, and the program says more about it.
    INSTANT_WITH = "instant-with": Instant(FRAME, STACK, DETAILS);
} }

/// Something that happens and takes no time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instant {
    /// What it is called: the number of a frame.
    pub frame: u32,
    /// The stack that it happens on; 0 if none was recorded.
    pub stack: u32,
    /// What it is about.
    pub about: About,
}

/// What an instant is about, where its kind says that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// Only the program knows.
    Anything,
    /// A phase ended where nothing was open.
    UnmatchedPop,
    /// The calls of a function are not recorded any more.
    Demoted,
    /// Something happened to the tracer.
    TraceNote {
        /// How often.
        count: u64,
    },
    /// The program has requested an account of a host.
    HostSnapshot {
        /// The device.
        device: i64,
        /// How many bytes are in use.
        size: u64,
    },
    /// There is no memory for a request.
    OutOfMemory(OutOfMemory),
    /// The program says something about a block.
    Annotation {
        /// The device.
        device: i64,
        /// The address of the block.
        address: u64,
    },
}

/// A request that there is no memory for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// The device.
    pub device: i64,
    /// How many bytes are requested.
    pub size: u64,
    /// The stream that they are requested for.
    pub stream: u64,
    /// The pool that they are requested of.
    pub pool: u64,
    /// How many bytes the device has free.
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
    pub(super) fn decode(layout: &Layout, form: InstantForm, words: &[u64]) -> Self {
        let about = if form == InstantForm::Anything { About::Anything } else { about(layout, form, words) };
        Self { frame: layout.frame.number(words), stack: layout.stack.number(words), about }
    }
}

fn about(layout: &Layout, form: InstantForm, words: &[u64]) -> About {
    let [first, second, third, fourth, fifth, ..] = layout.named;
    match form {
        InstantForm::Anything => About::Anything,
        InstantForm::UnmatchedPop => About::UnmatchedPop,
        InstantForm::Demoted => About::Demoted,
        InstantForm::TraceNote => About::TraceNote { count: first.word(words) },
        InstantForm::HostSnapshot => About::HostSnapshot { device: first.device(words), size: second.word(words) },
        InstantForm::OutOfMemory => About::OutOfMemory(OutOfMemory {
            device: first.device(words),
            size: second.word(words),
            stream: third.word(words),
            pool: fourth.word(words),
            free: fifth.word(words),
        }),
        InstantForm::Annotation => About::Annotation { device: first.device(words), address: second.word(words) },
    }
}

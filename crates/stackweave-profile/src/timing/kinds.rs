//! What an event tells about phases, by its kind.

use stackweave_core::{EventKind, FieldType};
use stackweave_recording::events;
use stackweave_recording::file::{Dictionary, RawEvent, number_of};

use crate::aggregate::{Kinds, Seen};

/// What an event tells about the phases of its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told<'a> {
    Begin(Begun<'a>),
    /// `frame` is open, with `depth` around it; nothing is if it is 0.
    Open {
        frame: u32,
        depth: u64,
    },
    End {
        how: Ending,
        details: &'a [u8],
    },
    /// An end came where nothing was open.
    UnmatchedPop {
        frame: u32,
        stack: u32,
    },
    /// Something that has nothing to do with phases.
    Other,
}

/// A phase that begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Begun<'a> {
    pub(super) frame: u32,
    pub(super) is_run: bool,
    /// Its bytecode count and inline depth.
    pub(super) code: Option<(u64, u64)>,
    pub(super) details: &'a [u8],
}

/// How a phase has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Done,
    Failed,
    LeftOpen,
    /// The recording has no end of it.
    Unfinished,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Special {
    Code,
    Run,
    Failed,
    LeftOpen,
    UnmatchedPop,
}

/// What to do with the events of each kind, by number.
#[derive(Debug)]
pub(super) struct TimingKinds {
    kinds: Kinds,
    special: Box<[Option<Special>; 256]>,
}

impl TimingKinds {
    pub(super) fn of(dictionary: &Dictionary) -> Self {
        let known = [
            (events::BEGIN_CODE, Special::Code),
            (events::BEGIN_RUN, Special::Run),
            (events::END_FAILED, Special::Failed),
            (events::END_LEFT_OPEN, Special::LeftOpen),
            (events::UNMATCHED_POP, Special::UnmatchedPop),
        ];
        let mut special = Box::new([None; 256]);
        for (number, kind) in dictionary.kinds() {
            let found = known.iter().find(|(known, _)| known.name == kind.name && known.role == kind.role);
            special[usize::from(number)] = found.filter(|(known, _)| has_fields(kind, known)).map(|(_, what)| *what);
        }
        Self { kinds: Kinds::of(dictionary), special }
    }

    pub(super) fn tell<'a>(&self, event: &RawEvent<'a>) -> Told<'a> {
        let special = self.special[usize::from(event.kind)];
        let details = event.bytes.unwrap_or_default();
        let word = |place: usize| event.words.get(place).copied().unwrap_or(0);
        let number = |place: usize| number_of(word(place));
        match self.kinds.see(event) {
            Seen::Begin { frame } => Told::Begin(Begun {
                frame,
                is_run: special == Some(Special::Run),
                code: (special == Some(Special::Code)).then(|| (word(1), word(2))),
                details,
            }),
            Seen::Open { frame, depth } => Told::Open { frame, depth },
            Seen::End => {
                let how = match special {
                    Some(Special::Failed) => Ending::Failed,
                    Some(Special::LeftOpen) => Ending::LeftOpen,
                    _ => Ending::Done,
                };
                Told::End { how, details }
            }
            Seen::Nothing if special == Some(Special::UnmatchedPop) => {
                Told::UnmatchedPop { frame: number(0), stack: number(1) }
            }
            Seen::Sample { .. } | Seen::Nothing => Told::Other,
        }
    }
}

/// Whether a kind has the fields of the known one in their places; later versions may have more behind them.
fn has_fields(kind: &EventKind, known: &EventKind) -> bool {
    let types = |kind: &EventKind| kind.fields.iter().map(|field| field.of).collect::<Vec<FieldType>>();
    types(kind).starts_with(&types(known))
}

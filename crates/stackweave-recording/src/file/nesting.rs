//! What events do to what their thread has open, so that this is still known when the events themselves are dropped.

use stackweave_core::{EventKind, Field, FieldType, Role};

use super::transpose::LaneEvent;
use crate::events;
use crate::events::fields::{DEPTH, FRAME};
use crate::read::{Ended, OpenStack};

/// Something that is open: the word of its frame or of its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenWord {
    /// The word, as in the process that records.
    pub word: u64,
    /// Whether it is a call.
    pub is_call: bool,
}

/// What is open in a thread, as a recorder tells it again, if it is known by the word of a call or of a frame.
pub fn open_kind(is_call: bool) -> EventKind {
    if is_call { events::OPEN } else { EventKind { fields: vec![FRAME, DEPTH].into(), ..events::OPEN } }
}

/// What events of one kind do.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Doing {
    #[default]
    Nothing,
    Begin {
        place: usize,
        is_call: bool,
    },
    End,
    Open {
        place: usize,
        is_call: bool,
        depth: Option<usize>,
    },
}

impl Doing {
    pub(super) fn of(kind: &EventKind) -> Self {
        let is_frame = |field: &Field| matches!(field.of, FieldType::Frame | FieldType::Call);
        let place = kind.fields.iter().position(is_frame);
        let is_call = place.is_some_and(|place| kind.fields[place].of == FieldType::Call);
        match (kind.role, place) {
            (Role::End, _) => Self::End,
            (Role::Begin | Role::Resume, place) => Self::Begin { place: place.unwrap_or(usize::MAX), is_call },
            (Role::Open, Some(place)) => Self::Open { place, is_call, depth: kind.position_of(FieldType::Unsigned) },
            _ => Self::Nothing,
        }
    }
}

/// What some events of one thread do, one after another, without what they both begin and end.
#[derive(Clone, Debug, Default)]
pub struct Nesting {
    steps: Vec<Step>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    End(u64),
    Begin(OpenWord),
    /// A word of 0 is nothing.
    Open(OpenWord, u64),
    /// Something that is no open, and so ends a run of opens.
    Other,
}

impl Nesting {
    #[inline]
    pub(super) fn add(&mut self, doing: Doing, event: &LaneEvent<'_>) {
        let word = |place: usize| event.fields.get(place).copied().unwrap_or(0);
        match (doing, self.steps.last_mut()) {
            (Doing::Begin { place, is_call }, _) => {
                self.steps.push(Step::Begin(OpenWord { word: word(place), is_call }));
            }
            (Doing::End, Some(Step::Begin(_))) => drop(self.steps.pop()),
            (Doing::End, Some(Step::End(count))) => *count += 1,
            (Doing::End, _) => self.steps.push(Step::End(1)),
            (Doing::Open { place, is_call, depth }, _) => {
                let open = OpenWord { word: word(place), is_call };
                self.steps.push(Step::Open(open, depth.map_or(0, word)));
            }
            (Doing::Nothing, Some(Step::Open(..))) => self.steps.push(Step::Other),
            (Doing::Nothing, _) => {}
        }
    }

    /// Does the same to what was open before these events.
    pub fn apply(&self, open: &mut OpenStack<OpenWord>) {
        for step in &self.steps {
            if !matches!(step, Step::Open(..)) {
                end_beyond(open);
            }
            match *step {
                Step::End(count) => {
                    // Behind the first that ends nothing there is nothing.
                    let _ = (0..count).find(|_| open.end() == Ended::Nothing);
                }
                Step::Begin(what) => open.begin(what),
                Step::Open(what, depth) => apply_open(open, what, depth),
                Step::Other => {}
            }
        }
    }
}

fn apply_open(open: &mut OpenStack<OpenWord>, what: OpenWord, depth: u64) {
    if !open.goes_on(depth) {
        end_beyond(open);
    }
    if what.word == 0 {
        open.open_nothing(depth);
        end_beyond(open);
    } else if open.open(depth, |known| *known == what) {
        end_beyond(open);
        open.begin_open(depth, what);
    }
}

fn end_beyond(open: &mut OpenStack<OpenWord>) {
    while open.take_beyond().is_some() {}
}

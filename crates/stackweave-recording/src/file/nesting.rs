//! The effect of events on the open spans of their thread. It survives when the events themselves are dropped.

use stackweave_core::{EventKind, Field, FieldType, Role};

use super::transpose::LaneEvent;
use crate::events;
use crate::events::fields::{DEPTH, FRAME};
use crate::read::{Ended, OpenStack};

/// An open span, as the word of its frame or of its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenWord {
    /// The word, as in the process that records.
    pub word: u64,
    /// Whether it is a call.
    pub is_call: bool,
}

/// Returns the kind of events that record a span as open again, for the word of a call or of a frame.
pub fn open_kind(is_call: bool) -> EventKind {
    if is_call { events::OPEN } else { EventKind { fields: vec![FRAME, DEPTH].into(), ..events::OPEN } }
}

/// The effect of events of one kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum NestingEffect {
    #[default]
    Nothing,
    Begin {
        index: usize,
        is_call: bool,
    },
    End,
    Open {
        index: usize,
        is_call: bool,
        depth: Option<usize>,
    },
}

impl NestingEffect {
    pub(super) fn of(kind: &EventKind) -> Self {
        let is_frame = |field: &Field| matches!(field.field_type, FieldType::Frame | FieldType::Call);
        let index = kind.fields.iter().position(is_frame);
        let is_call = index.is_some_and(|index| kind.fields[index].field_type == FieldType::Call);
        match (kind.role, index) {
            (Role::End, _) => Self::End,
            (Role::Begin | Role::Resume, index) => Self::Begin { index: index.unwrap_or(usize::MAX), is_call },
            (Role::Open, Some(index)) => Self::Open { index, is_call, depth: kind.position_of(FieldType::Unsigned) },
            _ => Self::Nothing,
        }
    }
}

/// The effect of a sequence of events of one thread, without spans that begin and end inside it.
#[derive(Clone, Debug, Default)]
pub struct Nesting {
    steps: Vec<NestingStep>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NestingStep {
    End(u64),
    Begin(OpenWord),
    /// A word of 0 means that nothing is open.
    Open(OpenWord, u64),
    /// Any other event, which ends a run of opens.
    Other,
}

impl Nesting {
    #[inline]
    pub(super) fn add(&mut self, effect: NestingEffect, event: &LaneEvent<'_>) {
        let word = |index: usize| event.fields.get(index).copied().unwrap_or(0);
        match (effect, self.steps.last_mut()) {
            (NestingEffect::Begin { index, is_call }, _) => {
                self.steps.push(NestingStep::Begin(OpenWord { word: word(index), is_call }));
            }
            (NestingEffect::End, Some(NestingStep::Begin(_))) => drop(self.steps.pop()),
            (NestingEffect::End, Some(NestingStep::End(count))) => *count += 1,
            (NestingEffect::End, _) => self.steps.push(NestingStep::End(1)),
            (NestingEffect::Open { index, is_call, depth }, _) => {
                let open = OpenWord { word: word(index), is_call };
                self.steps.push(NestingStep::Open(open, depth.map_or(0, word)));
            }
            (NestingEffect::Nothing, Some(NestingStep::Open(..))) => self.steps.push(NestingStep::Other),
            (NestingEffect::Nothing, _) => {}
        }
    }

    /// Applies the effect to the spans that were open before these events.
    pub fn apply(&self, open: &mut OpenStack<OpenWord>) {
        for step in &self.steps {
            if !matches!(step, NestingStep::Open(..)) {
                end_beyond(open);
            }
            match *step {
                NestingStep::End(count) => {
                    // Once an end finds nothing open, the others do, too.
                    let _ = (0..count).find(|_| open.end() == Ended::Nothing);
                }
                NestingStep::Begin(span) => open.begin(span),
                NestingStep::Open(span, depth) => apply_open(open, span, depth),
                NestingStep::Other => {}
            }
        }
    }
}

fn apply_open(open: &mut OpenStack<OpenWord>, span: OpenWord, depth: u64) {
    if !open.goes_on(depth) {
        end_beyond(open);
    }
    if span.word == 0 {
        open.open_nothing(depth);
        end_beyond(open);
    } else if open.open(depth, |known| *known == span) {
        end_beyond(open);
        open.begin_open(depth, span);
    }
}

fn end_beyond(open: &mut OpenStack<OpenWord>) {
    while open.take_beyond().is_some() {}
}

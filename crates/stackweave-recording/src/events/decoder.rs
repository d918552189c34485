//! Decoding of raw events to typed ones.
//!
//! Hot file: an event costs one look-up by the number of its kind; it does not allocate, and compares no names.

use stackweave_core::Role;

use super::layout::{EventLayout, Form};
use super::{Begin, Counter, Event, HostState, Instant, MemoryEvent, ObjectName, OpenSpan, Sample, SpanEnd, Usage};
use crate::file::{Dictionary, RawEvent};

/// Decodes the events of one section, by the declarations of its kinds.
#[derive(Debug)]
pub struct Decoder(Box<[Option<EventLayout>; 256]>);

impl Decoder {
    /// Returns a decoder for the kinds of a section, without those that are declared later.
    pub fn of(dictionary: &Dictionary) -> Self {
        let mut layouts = Box::new([None; 256]);
        for (number, kind) in dictionary.kinds() {
            layouts[usize::from(number)] = Some(EventLayout::of(kind));
        }
        Self(layouts)
    }

    /// Returns the layout of a kind; `None` if its declaration was lost.
    pub fn layout(&self, kind: u8) -> Option<&EventLayout> {
        self.0[usize::from(kind)].as_ref()
    }

    /// Returns whether a kind of this role is declared.
    pub fn has_role(&self, role: Role) -> bool {
        self.0.iter().flatten().any(|layout| layout.role() == role)
    }

    /// Returns whether any kind is declared that allocates counted memory.
    pub fn has_memory(&self) -> bool {
        let allocates = |layout: &EventLayout| {
            layout.role() == Role::Allocate || layout.heap_change() == Some(super::HeapChange::Map)
        };
        self.0.iter().flatten().any(allocates)
    }

    /// Returns whether any kind is declared that concerns the memory of a device.
    pub fn has_devices(&self) -> bool {
        self.0.iter().flatten().any(EventLayout::is_of_device)
    }

    /// Returns the meaning of an event of the section.
    #[inline]
    pub fn decode<'a>(&self, event: &RawEvent<'a>) -> Event<'a> {
        let Some(layout) = &self.0[usize::from(event.kind)] else { return Event::Other };
        let words = event.words;
        match layout.form {
            Form::Begin | Form::BeginCode | Form::BeginRun | Form::Resume => Event::Begin(Begin::decode(layout, event)),
            Form::Open => Event::Open(OpenSpan::decode(layout, words)),
            Form::End(ending) => Event::End(SpanEnd { ending, details: event.bytes.unwrap_or_default() }),
            Form::Name => {
                Event::Name(ObjectName { frame: layout.frame.number(words), object: layout.address.word(words) })
            }
            Form::Instant(form) => Event::Instant(Instant::decode(layout, form, words)),
            Form::Counter => Event::Counter(Counter::decode(layout, words)),
            Form::Sample => Event::Sample(Sample::decode(layout, words)),
            Form::Allocate(host) => Event::Allocate(MemoryEvent::decode(layout, host, event)),
            Form::Free(host) => Event::Free(MemoryEvent::decode(layout, host, event)),
            Form::Complete(host) => Event::Complete(MemoryEvent::decode(layout, host, event)),
            Form::Keep => Event::Keep { address: layout.address.word(words) },
            Form::Tag => Event::Tag { frame: layout.frame.number(words) },
            Form::ListingState | Form::SegmentState | Form::BlockState | Form::OtherState => {
                Event::State(HostState::decode(layout, words))
            }
            Form::Usage(row) => Event::Usage(Usage::decode(layout, row, words)),
        }
    }
}

//! The events of a process, and what their kinds say beside what they mean.

use std::rc::Rc;

use serde_json::{Map, Value};
use stackweave_core::{EventKind, FieldType};
use stackweave_recording::ProcessRecording;
use stackweave_recording::events::{Decoder, Ending, Event, Layout};
use stackweave_recording::file::{Dictionary, RawEvent, number_of};

use crate::activity::details::Details;

/// The kinds of a process, by number.
#[derive(Debug)]
pub(crate) struct Kinds {
    decoder: Decoder,
    kinds: Vec<Option<Kind>>,
}

#[derive(Debug)]
struct Kind {
    name: Rc<str>,
    /// The fields that the role says nothing about: their places, names and types.
    details: Vec<(usize, String, FieldType)>,
}

impl Kinds {
    pub(crate) fn of(process: &ProcessRecording) -> Self {
        let decoder = Decoder::of(process.dictionary());
        let mut kinds: Vec<Option<Kind>> = (0..256).map(|_| None).collect();
        for (number, kind) in process.dictionary().kinds() {
            kinds[usize::from(number)] = decoder.layout(number).map(|layout| Kind::of(kind, layout));
        }
        Self { decoder, kinds }
    }

    #[inline]
    pub(crate) fn decode<'a>(&self, event: &RawEvent<'a>) -> Event<'a> {
        self.decoder.decode(event)
    }

    /// Returns what a kind is called.
    pub(crate) fn name(&self, kind: u8) -> Rc<str> {
        self.kinds[usize::from(kind)].as_ref().map_or_else(|| "".into(), |kind| Rc::clone(&kind.name))
    }

    /// Returns what an event says beside what every event of its role does.
    pub(crate) fn details(&self, raw: &RawEvent<'_>, event: &Event<'_>, process: &ProcessRecording) -> Details {
        let Some(kind) = &self.kinds[usize::from(raw.kind)] else { return Details::default() };
        let mark = mark(event);
        if kind.details.is_empty() && raw.bytes.is_none() && mark.is_none() {
            return Details::default();
        }
        let mut fields = Map::new();
        fields.extend(mark.map(|mark| (mark.to_owned(), true.into())));
        for (place, name, of) in &kind.details {
            let Some(word) = raw.words.get(*place).copied() else { continue };
            let value = match of {
                FieldType::Signed => word.cast_signed().into(),
                FieldType::Float => f64::from_bits(word).into(),
                FieldType::Address => format!("{word:#x}").into(),
                FieldType::Ticks => process.timeline().nanoseconds(word).into(),
                FieldType::Frame => text_of(process.dictionary(), number_of(word)).into(),
                _ => Value::from(word),
            };
            fields.insert(name.clone(), value);
        }
        Details::new(fields, raw.bytes)
    }
}

impl Kind {
    fn of(kind: &EventKind, layout: &Layout) -> Self {
        let words = kind.fields.iter().take(kind.words()).enumerate();
        let details = words.filter(|(place, _)| !layout.is_of_role(*place));
        let details = details.map(|(place, field)| (place, field.name.to_string(), field.field_type)).collect();
        Self { name: kind.name.as_ref().into(), details }
    }
}

/// What an event says of a phase, beside its role.
const fn mark(event: &Event<'_>) -> Option<&'static str> {
    match event {
        Event::Begin(begin) if begin.is_run => Some("run"),
        Event::End(end) => match end.ending {
            Ending::Failed => Some("failed"),
            Ending::LeftOpen => Some("left_open"),
            Ending::Done => None,
        },
        _ => None,
    }
}

/// What a label says.
pub(crate) fn text_of(dictionary: &Dictionary, frame: u32) -> Option<&str> {
    dictionary.names(frame).first().and_then(|name| dictionary.string(name.name))
}

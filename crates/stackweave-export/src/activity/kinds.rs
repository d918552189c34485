//! Decodes the events of a process, with the fields that only their kinds have.

use std::rc::Rc;

use serde_json::{Map, Value};
use stackweave_core::{EventKind, FieldType};
use stackweave_recording::ProcessRecording;
use stackweave_recording::events::{Decoder, Ending, Event, EventLayout};
use stackweave_recording::file::{Dictionary, RawEvent, number_of};

use crate::activity::details::Details;

/// The kinds of a process, by number.
#[derive(Debug)]
pub(crate) struct EventKinds {
    decoder: Decoder,
    kinds: Vec<Option<KindFields>>,
}

/// The name of a kind and its additional fields.
#[derive(Debug)]
struct KindFields {
    name: Rc<str>,
    /// The indexes, names and types of the fields that the role does not define.
    details: Vec<(usize, String, FieldType)>,
}

impl EventKinds {
    pub(crate) fn of(process: &ProcessRecording) -> Self {
        let decoder = Decoder::of(process.dictionary());
        let mut kinds: Vec<Option<KindFields>> = (0..256).map(|_| None).collect();
        for (number, kind) in process.dictionary().kinds() {
            kinds[usize::from(number)] = decoder.layout(number).map(|layout| KindFields::of(kind, layout));
        }
        Self { decoder, kinds }
    }

    #[inline]
    pub(crate) fn decode<'a>(&self, event: &RawEvent<'a>) -> Event<'a> {
        self.decoder.decode(event)
    }

    /// Returns the name of a kind.
    pub(crate) fn name(&self, kind: u8) -> Rc<str> {
        self.kinds[usize::from(kind)].as_ref().map_or_else(|| "".into(), |kind| Rc::clone(&kind.name))
    }

    /// Returns the details of an event: the fields that its role does not define.
    pub(crate) fn details(&self, raw: &RawEvent<'_>, event: &Event<'_>, process: &ProcessRecording) -> Details {
        let Some(kind) = &self.kinds[usize::from(raw.kind)] else { return Details::default() };
        let phase_detail = phase_detail(event);
        if kind.details.is_empty() && raw.bytes.is_none() && phase_detail.is_none() {
            return Details::default();
        }
        let mut fields = Map::new();
        fields.extend(phase_detail.map(|name| (name.to_owned(), true.into())));
        for (index, name, field_type) in &kind.details {
            let Some(word) = raw.words.get(*index).copied() else { continue };
            let value = match field_type {
                FieldType::Signed => word.cast_signed().into(),
                FieldType::Float => f64::from_bits(word).into(),
                FieldType::Address => format!("{word:#x}").into(),
                FieldType::Ticks => process.timeline().nanoseconds(word).into(),
                FieldType::Frame => label_text(process.dictionary(), number_of(word)).into(),
                _ => Value::from(word),
            };
            fields.insert(name.clone(), value);
        }
        Details::new(fields, raw.bytes)
    }
}

impl KindFields {
    fn of(kind: &EventKind, layout: &EventLayout) -> Self {
        let words = kind.fields.iter().take(kind.words()).enumerate();
        let details = words.filter(|(index, _)| !layout.is_of_role(*index));
        let details = details.map(|(index, field)| (index, field.name.to_string(), field.field_type)).collect();
        Self { name: kind.name.as_ref().into(), details }
    }
}

/// Returns the name of the detail that an event of a phase has in addition.
const fn phase_detail(event: &Event<'_>) -> Option<&'static str> {
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

/// Returns the text of a label.
pub(crate) fn label_text(dictionary: &Dictionary, frame: u32) -> Option<&str> {
    dictionary.names(frame).first().and_then(|name| dictionary.string(name.name))
}

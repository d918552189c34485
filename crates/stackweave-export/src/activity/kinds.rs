//! What an event of some kind says, by the roles that recordings declare.

use std::rc::Rc;

use serde_json::{Map, Value};
use stackweave_core::{EventKind, FieldType, Role};
use stackweave_recording::ProcessRecording;
use stackweave_recording::events;
use stackweave_recording::file::{Dictionary, RawEvent, number_of};

use crate::activity::details::Details;
use crate::activity::host::{HostKind, Told};
use crate::activity::memory::{Given, Held, Taken};

/// The kinds of a process, by number.
#[derive(Debug)]
pub(crate) struct Kinds(Vec<Option<Kind>>);

/// Where the values of a kind are; `None` for what it has not.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) role: Role,
    pub(crate) name: Rc<str>,
    frame: Option<usize>,
    /// The frame that calls the first one.
    caller: Option<usize>,
    stack: Option<usize>,
    address: Option<usize>,
    value: Option<(usize, FieldType)>,
    /// Whose memory it is about, if it is not the process's own.
    device: Option<usize>,
    stream: Option<usize>,
    pool: Option<usize>,
    /// What the allocator of a host tells with it.
    host: Option<HostKind>,
    /// What its name says of a phase, beside its role.
    mark: Option<&'static str>,
    /// The fields that have no place of their own.
    others: Vec<(usize, String, FieldType)>,
}

impl Kinds {
    pub(crate) fn of(process: &ProcessRecording) -> Self {
        let mut kinds: Vec<Option<Kind>> = (0..256).map(|_| None).collect();
        for (number, kind) in process.dictionary().kinds() {
            kinds[usize::from(number)] = Some(Kind::of(kind));
        }
        Self(kinds)
    }

    pub(crate) fn get(&self, number: u8) -> Option<&Kind> {
        self.0[usize::from(number)].as_ref()
    }
}

impl Kind {
    fn of(kind: &EventKind) -> Self {
        let field = |name: &str| kind.fields.iter().position(|field| field.name == name);
        let first = |types: &[FieldType]| types.iter().find_map(|of| Some((kind.position_of(*of)?, *of)));
        let value = match kind.role {
            Role::Counter => first(&[FieldType::Float, FieldType::Signed, FieldType::Unsigned]),
            Role::Sample => first(&[FieldType::Signed, FieldType::Unsigned]),
            Role::Allocate | Role::Map | Role::Unmap | Role::Open => first(&[FieldType::Unsigned]),
            // Old recordings have a stream in its place.
            Role::Free => field("size").map(|place| (place, FieldType::Unsigned)),
            _ => None,
        };
        let place = |of| kind.position_of(of);
        let is_memory = matches!(kind.role, Role::Allocate | Role::Free | Role::Map | Role::Unmap);
        let named = |name: &str| field(name).filter(|_| is_memory);
        let mut found = Self {
            role: kind.role,
            name: kind.name.as_ref().into(),
            frame: place(FieldType::Frame),
            caller: kind.fields.iter().position(|field| field.of == FieldType::Frame && field.name == "caller"),
            stack: place(FieldType::Stack),
            // Where something happens is a detail of it.
            address: place(FieldType::Address).filter(|_| kind.role != Role::Instant),
            value,
            device: named("device"),
            stream: named("stream"),
            pool: named("pool"),
            host: HostKind::of(kind),
            mark: mark(kind),
            others: Vec::new(),
        };
        if found.caller == found.frame {
            found.caller = None;
        }
        let value = value.map(|(place, _)| place);
        let own = [found.frame, found.caller, found.stack, found.address, value];
        let own = own.into_iter().chain([found.device, found.stream, found.pool]).collect::<Vec<_>>();
        let words = kind.fields.iter().take(kind.words()).enumerate();
        let others = words.filter(|(place, _)| !own.contains(&Some(*place)));
        found.others = others.map(|(place, field)| (place, field.name.to_string(), field.of)).collect();
        found
    }

    pub(crate) fn frame(&self, event: &RawEvent<'_>) -> u32 {
        number(event, self.frame)
    }

    pub(crate) fn caller(&self, event: &RawEvent<'_>) -> u32 {
        number(event, self.caller)
    }

    pub(crate) fn stack(&self, event: &RawEvent<'_>) -> u32 {
        number(event, self.stack)
    }

    pub(crate) fn address(&self, event: &RawEvent<'_>) -> u64 {
        word(event, self.address).unwrap_or(0)
    }

    /// The weight of a sample, the size of a block, or how many are open around what is open.
    pub(crate) fn count(&self, event: &RawEvent<'_>) -> Option<u64> {
        word(event, self.value.map(|(place, _)| place))
    }

    /// Memory that is taken, by a thread with this tag.
    pub(crate) fn taken(&self, event: &RawEvent<'_>, tag: u32) -> Taken {
        Taken {
            address: self.address(event),
            size: self.count(event).unwrap_or(0),
            stack: self.stack(event),
            tag,
            held: self.held(event),
            stream: word(event, self.stream).unwrap_or(0),
            pool: word(event, self.pool).unwrap_or(0),
        }
    }

    /// Memory that is given back.
    pub(crate) fn given(&self, event: &RawEvent<'_>) -> Given {
        Given {
            address: self.address(event),
            size: self.count(event).unwrap_or(0),
            stack: self.stack(event),
            held: self.held(event),
        }
    }

    /// What the allocator of a host tells, if the kind is one of those.
    pub(crate) fn told(&self, event: &RawEvent<'_>) -> Option<Told> {
        Some(self.host.as_ref()?.told(event))
    }

    fn held(&self, event: &RawEvent<'_>) -> Held {
        let device = word(event, self.device).map(u64::cast_signed);
        match (self.role, device) {
            (Role::Map | Role::Unmap, Some(device)) => Held::Segment(device),
            (Role::Map | Role::Unmap, None) => Held::Mapping,
            (_, device) => Held::Block(device.unwrap_or(EventKind::OWN_DEVICE)),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "counters are drawn")]
    pub(crate) fn quantity(&self, event: &RawEvent<'_>) -> f64 {
        let word = self.count(event).unwrap_or(0);
        match self.value {
            Some((_, FieldType::Float)) => f64::from_bits(word),
            Some((_, FieldType::Signed)) => word.cast_signed() as f64,
            _ => word as f64,
        }
    }

    pub(crate) fn details(&self, event: &RawEvent<'_>, process: &ProcessRecording) -> Details {
        if self.others.is_empty() && event.bytes.is_none() && self.mark.is_none() {
            return Details::default();
        }
        let mut fields = Map::new();
        fields.extend(self.mark.map(|mark| (mark.to_owned(), true.into())));
        for (place, name, of) in &self.others {
            let Some(word) = event.words.get(*place).copied() else { continue };
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
        Details::new(fields, event.bytes)
    }
}

fn mark(kind: &EventKind) -> Option<&'static str> {
    let marks = [(events::BEGIN_RUN, "run"), (events::END_FAILED, "failed"), (events::END_LEFT_OPEN, "left_open")];
    marks.into_iter().find(|(known, _)| known.name == kind.name && known.role == kind.role).map(|(_, mark)| mark)
}

/// What a label says.
pub(crate) fn text_of(dictionary: &Dictionary, frame: u32) -> Option<&str> {
    dictionary.names(frame).first().and_then(|name| dictionary.string(name.name))
}

fn word(event: &RawEvent<'_>, place: Option<usize>) -> Option<u64> {
    event.words.get(place?).copied()
}

fn number(event: &RawEvent<'_>, place: Option<usize>) -> u32 {
    word(event, place).map_or(0, number_of)
}

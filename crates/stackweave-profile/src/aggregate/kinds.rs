//! Which words of an event a profile needs, by its kind.

use stackweave_core::{EventKind, FieldType, Role};
use stackweave_recording::file::{Dictionary, RawEvent, number_of};

/// What to do with the events of each kind, by number.
#[derive(Debug)]
pub struct Kinds(Box<[Kind; 256]>);

/// What a profile sees in an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Something begins.
    Begin {
        /// What, as a number of the section.
        frame: u32,
    },
    /// Something is open that began earlier.
    Open {
        /// What, as a number of the section; 0: nothing is open there.
        frame: u32,
        /// How many are open around it.
        depth: u64,
    },
    /// What began last ends.
    End,
    /// A stack was seen.
    Sample {
        /// Its number in the section; 0 if it is what the thread has begun.
        stack: u32,
        /// How much it counts.
        weight: i64,
    },
    /// What is of no measure, or of memory: [`MemoryKinds`](crate::memory::MemoryKinds) knows that.
    Nothing,
}

/// Where its values are; a place behind all words if it has none.
#[derive(Clone, Copy, Debug)]
struct Kind {
    role: Option<Role>,
    frame: u8,
    stack: u8,
    value: u8,
}

const NOWHERE: u8 = u8::MAX;

impl Kinds {
    /// The kinds of a section.
    pub fn of(dictionary: &Dictionary) -> Self {
        let nothing = Kind { role: None, frame: NOWHERE, stack: NOWHERE, value: NOWHERE };
        let mut kinds = Box::new([nothing; 256]);
        for (number, kind) in dictionary.kinds() {
            kinds[usize::from(number)] = Kind::of(kind);
        }
        Self(kinds)
    }

    /// What an event of that section means.
    pub fn see(&self, event: &RawEvent<'_>) -> Seen {
        let kind = self.0[usize::from(event.kind)];
        let word = |place: u8| event.words.get(usize::from(place)).copied();
        let number = |place: u8| word(place).map_or(0, number_of);
        match kind.role {
            Some(Role::Begin | Role::Resume) => Seen::Begin { frame: number(kind.frame) },
            Some(Role::Open) => Seen::Open { frame: number(kind.frame), depth: word(kind.value).unwrap_or(0) },
            Some(Role::End) => Seen::End,
            Some(Role::Sample) => {
                Seen::Sample { stack: number(kind.stack), weight: word(kind.value).map_or(1, u64::cast_signed) }
            }
            _ => Seen::Nothing,
        }
    }
}

impl Kind {
    fn of(kind: &EventKind) -> Self {
        let place = |of| kind.position_of(of).and_then(|place| u8::try_from(place).ok());
        let value = match kind.role {
            Role::Sample => place(FieldType::Signed).or_else(|| place(FieldType::Unsigned)),
            _ => place(FieldType::Unsigned),
        };
        Self {
            role: Some(kind.role),
            frame: place(FieldType::Frame).unwrap_or(NOWHERE),
            stack: place(FieldType::Stack).unwrap_or(NOWHERE),
            value: value.unwrap_or(NOWHERE),
        }
    }
}

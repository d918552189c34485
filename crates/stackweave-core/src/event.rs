//! What happens in a program, as recorders write it down and exports read it.
//!
//! Kinds of events are declared, not built in: a recording says for each kind what it is called, what it means in a
//! profile ([`Role`]) and which values it carries. So a reader that has never heard of a kind still reads it. The kinds
//! themselves are declared in `events` of `stackweave-recording`.

use core::fmt;
use std::borrow::Cow;

/// What an event of some kind means, whatever it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Role {
    /// Something begins that has its frame as its name, inside what the thread has begun before.
    Begin = 1,
    /// What the thread has begun last, and not ended yet, ends.
    End = 2,
    /// Something happens that takes no time.
    Instant = 3,
    /// A quantity has this value from now on.
    Counter = 4,
    /// A stack was seen, and counts this much.
    Sample = 5,
    /// Memory is taken.
    Allocate = 6,
    /// Memory is given back.
    Free = 7,
    /// Something goes on that was left for a while, as a generator does: like [`Role::Begin`], and counted like it, but of
    /// the object that has begun before.
    Resume = 8,
    /// Something is open that began earlier: before the recording, or before something else ran in its place. Says how many
    /// are open around it. Begins what is not known to be open, and is not counted as a call.
    Open = 9,
    /// An object has this name from now on.
    Name = 10,
    /// Addresses are taken: a range that may be given back in parts, and that takes the place of what was mapped there.
    Map = 11,
    /// A range of addresses is given back, whether it was taken in one piece or not.
    Unmap = 12,
    /// What the thread gave back last was not given back after all: the call has failed.
    Keep = 13,
    /// What the thread does from now on has this tag; frame 0: none.
    Tag = 14,
    /// How much memory a place has used: the sum of events, whether these are in the recording or not.
    Usage = 15,
    /// What was given back at an address may be given out again: an allocator that had to wait for that waits no longer.
    Complete = 16,
    /// A row of an allocator's own account of what it has.
    State = 17,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 17] = [
        Self::Begin,
        Self::End,
        Self::Instant,
        Self::Counter,
        Self::Sample,
        Self::Allocate,
        Self::Free,
        Self::Resume,
        Self::Open,
        Self::Name,
        Self::Map,
        Self::Unmap,
        Self::Keep,
        Self::Tag,
        Self::Usage,
        Self::Complete,
        Self::State,
    ];

    /// The role with this number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|role| *role as u8 == number)
    }

    /// The role in one word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Begin => "begin",
            Self::End => "end",
            Self::Instant => "instant",
            Self::Counter => "counter",
            Self::Sample => "sample",
            Self::Allocate => "allocate",
            Self::Free => "free",
            Self::Resume => "resume",
            Self::Open => "open",
            Self::Name => "name",
            Self::Map => "map",
            Self::Unmap => "unmap",
            Self::Keep => "keep",
            Self::Tag => "tag",
            Self::Usage => "usage",
            Self::Complete => "complete",
            Self::State => "state",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What the word of a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FieldType {
    /// A stack; 0 for none. In the process that records: a [`StackId`](crate::StackId). In a file: its number there.
    Stack = 1,
    /// A frame; 0 for none. In the process that records: the bits of a [`RawFrame`](crate::RawFrame). In a file: its
    /// number there.
    Frame = 2,
    /// A number.
    Unsigned = 3,
    /// A number, as two's complement.
    Signed = 4,
    /// The bits of an `f64`.
    Float = 5,
    /// An address in memory: near the one before it.
    Address = 6,
    /// A length of time, in the ticks of the recording's clock.
    Ticks = 7,
    /// A byte string of any length, the last field of its kind if there is one: a word with its length, then its bytes,
    /// filled up with zeros to whole words.
    Bytes = 8,
    /// A call: what is called, and from where. In the process that records: the bits of a [`Call`](crate::Call). In a file
    /// there are two frames in its place: the one that is called, and the one that calls; so readers never meet it.
    Call = 9,
}

impl FieldType {
    /// Every type.
    pub const ALL: [Self; 9] = [
        Self::Stack,
        Self::Frame,
        Self::Unsigned,
        Self::Signed,
        Self::Float,
        Self::Address,
        Self::Ticks,
        Self::Bytes,
        Self::Call,
    ];

    /// The type with this number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|field| *field as u8 == number)
    }

    /// The type in one word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stack => "stack",
            Self::Frame => "frame",
            Self::Unsigned => "unsigned",
            Self::Signed => "signed",
            Self::Float => "float",
            Self::Address => "address",
            Self::Ticks => "ticks",
            Self::Bytes => "bytes",
            Self::Call => "call",
        }
    }
}

/// One value of an event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Field {
    /// What it is called.
    pub name: Cow<'static, str>,
    /// What it holds.
    pub of: FieldType,
}

impl Field {
    /// A field of this name and type.
    pub const fn new(name: &'static str, of: FieldType) -> Self {
        Self { name: Cow::Borrowed(name), of }
    }
}

/// A kind of events.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EventKind {
    /// What it is called.
    pub name: Cow<'static, str>,
    /// What it means.
    pub role: Role,
    /// Its values, in their order; at most [`EventKind::MAX_FIELDS`]. Only the last may be [`FieldType::Bytes`].
    pub fields: Cow<'static, [Field]>,
}

impl EventKind {
    /// The most fields a kind may have.
    pub const MAX_FIELDS: usize = 16;

    /// The device that stands for the process's own memory.
    pub const OWN_DEVICE: i64 = -1;

    /// Returns a kind of this name, role and fields.
    pub const fn new(name: &'static str, role: Role, fields: &'static [Field]) -> Self {
        Self { name: Cow::Borrowed(name), role, fields: Cow::Borrowed(fields) }
    }

    /// How many words its values take, without a [`FieldType::Bytes`] at the end.
    pub fn words(&self) -> usize {
        self.fields.len() - usize::from(self.has_bytes())
    }

    /// Whether its last value is a byte string.
    pub fn has_bytes(&self) -> bool {
        self.fields.last().is_some_and(|field| field.of == FieldType::Bytes)
    }

    /// Where the first field of this type is.
    pub fn position_of(&self, of: FieldType) -> Option<usize> {
        self.fields.iter().position(|field| field.of == of)
    }

    /// Whether it keeps to the rules for fields.
    pub fn is_sound(&self) -> bool {
        let early = &self.fields[..self.words().min(self.fields.len())];
        self.fields.len() <= Self::MAX_FIELDS && early.iter().all(|field| field.of != FieldType::Bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        assert!(Role::ALL.iter().all(|role| Role::from_number(*role as u8) == Some(*role)));
        assert!(FieldType::ALL.iter().all(|of| FieldType::from_number(*of as u8) == Some(*of)));
        assert_eq!((Role::from_number(0), FieldType::from_number(10)), (None, None));
    }

    const FRAME: Field = Field::new("frame", FieldType::Frame);
    const DETAILS: Field = Field::new("details", FieldType::Bytes);

    #[test]
    fn words_do_not_count_the_bytes_at_the_end() {
        let with = EventKind::new("with", Role::Begin, const { &[FRAME, DETAILS] });
        let end = EventKind::new("end", Role::End, &[]);
        assert_eq!((with.words(), end.words()), (1, 0));
        assert!(with.has_bytes() && !end.has_bytes());
        assert_eq!(with.position_of(FieldType::Bytes), Some(1));
        assert!(with.is_sound() && end.is_sound());
    }

    #[test]
    fn bytes_stand_at_the_end_only() {
        let early = EventKind { name: "early".into(), role: Role::Instant, fields: vec![DETAILS, FRAME].into() };
        assert!(!early.is_sound());
        let many = EventKind { name: "many".into(), role: Role::Instant, fields: vec![FRAME; 17].into() };
        assert!(!many.is_sound());
    }
}

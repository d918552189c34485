//! The description of events, as recorders write them and exports read them.
//!
//! Kinds of events are declared, not built in: for each kind, a recording states its name, its meaning in a
//! profile ([`Role`]) and the values of its events. So a reader can read kinds that it does not know. The kinds
//! themselves are declared in `events` of `stackweave-recording`.

use std::borrow::Cow;

words! {
    /// The meaning of a kind of event, independent of its name.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[repr(u8)]
    pub enum Role {
        /// A span begins inside the thread's innermost open span. The event's frame is its name.
        Begin = 1 => "begin",
        /// The thread's innermost open span ends.
        End = 2 => "end",
        /// Something happens that has no duration.
        Instant = 3 => "instant",
        /// A quantity changes to this value.
        Counter = 4 => "counter",
        /// A stack was sampled, with this weight.
        Sample = 5 => "sample",
        /// Memory is allocated.
        Allocate = 6 => "allocate",
        /// Memory is freed.
        Free = 7 => "free",
        /// A span continues that was suspended, as a generator does. Like [`Role::Begin`], and counted like it, but
        /// for an object that has begun before.
        Resume = 8 => "resume",
        /// A span is open that began earlier: before the recording, or before another span ran in its place. The event
        /// has its depth, the number of open spans around it. Begins spans that are not known to be open; is not
        /// counted as a call.
        Open = 9 => "open",
        /// An object receives this name.
        Name = 10 => "name",
        /// A range of addresses is mapped. It may be unmapped in parts, and replaces what was mapped there.
        Map = 11 => "map",
        /// A range of addresses is unmapped, independent of how it was mapped.
        Unmap = 12 => "unmap",
        /// The thread's last free did not happen: the call has failed.
        Keep = 13 => "keep",
        /// The thread's events have this tag from now on; frame 0: none.
        Tag = 14 => "tag",
        /// The memory usage of a call site: a sum of events, whether these are in the recording or not.
        Usage = 15 => "usage",
        /// A freed address may be reused: an allocator that had to wait before reusing it no longer waits.
        Complete = 16 => "complete",
        /// A row of an allocator's description of its own state.
        State = 17 => "state",
    }
}

impl Role {
    /// Returns the role with this number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|role| *role as u8 == number)
    }
}

words! {
    /// The type of a field, which says how to interpret its word.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[repr(u8)]
    pub enum FieldType {
        /// A stack; 0 for none. In the process that records: a [`StackId`](crate::StackId). In a file: its number
        /// there.
        Stack = 1 => "stack",
        /// A frame; 0 for none. In the process that records: the bits of a [`RawFrame`](crate::RawFrame). In a file: its
        /// number there.
        Frame = 2 => "frame",
        /// A number.
        Unsigned = 3 => "unsigned",
        /// A number, as two's complement.
        Signed = 4 => "signed",
        /// The bits of an `f64`.
        Float = 5 => "float",
        /// An address in memory. It is often near the previous event's.
        Address = 6 => "address",
        /// A duration, in ticks of the recording's clock.
        Ticks = 7 => "ticks",
        /// A byte string of any length. Only the last field of a kind may have this type. It is a word with the
        /// length, followed by the bytes, padded with zeros to whole words.
        Bytes = 8 => "bytes",
        /// A call: its callee and call site. In the process that records: the bits of a [`Call`](crate::Call). A file
        /// has two frames instead, the callee and the caller, so that readers never meet this type.
        Call = 9 => "call",
    }
}

impl FieldType {
    /// Returns the type with this number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|field| *field as u8 == number)
    }
}

/// A field of a kind of event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Field {
    /// Its name.
    pub name: Cow<'static, str>,
    /// Its type.
    pub field_type: FieldType,
}

impl Field {
    /// Creates a field with this name and type.
    pub const fn new(name: &'static str, field_type: FieldType) -> Self {
        Self { name: Cow::Borrowed(name), field_type }
    }
}

/// A kind of event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EventKind {
    /// Its name.
    pub name: Cow<'static, str>,
    /// Its meaning.
    pub role: Role,
    /// Its fields, in their order; at most [`EventKind::MAX_FIELDS`]. Only the last may be [`FieldType::Bytes`].
    pub fields: Cow<'static, [Field]>,
}

impl EventKind {
    /// The maximum number of fields of a kind.
    pub const MAX_FIELDS: usize = 16;

    /// The device number that represents the process's own memory.
    pub const OWN_DEVICE: i64 = -1;

    /// Creates a kind with this name, role and fields.
    pub const fn new(name: &'static str, role: Role, fields: &'static [Field]) -> Self {
        Self { name: Cow::Borrowed(name), role, fields: Cow::Borrowed(fields) }
    }

    /// Returns how many words its values occupy, without a [`FieldType::Bytes`] at the end.
    pub fn words(&self) -> usize {
        self.fields.len() - usize::from(self.has_bytes())
    }

    /// Returns whether its last field is a byte string.
    pub fn has_bytes(&self) -> bool {
        self.fields.last().is_some_and(|field| field.field_type == FieldType::Bytes)
    }

    /// Returns the index of the first field of this type.
    pub fn position_of(&self, field_type: FieldType) -> Option<usize> {
        self.fields.iter().position(|field| field.field_type == field_type)
    }

    /// Returns whether its fields follow the rules.
    pub fn is_valid(&self) -> bool {
        let early = &self.fields[..self.words().min(self.fields.len())];
        self.fields.len() <= Self::MAX_FIELDS && early.iter().all(|field| field.field_type != FieldType::Bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_and_types_are_found_by_their_numbers() {
        assert!(Role::ALL.iter().all(|role| Role::from_number(*role as u8) == Some(*role)));
        assert!(FieldType::ALL.iter().all(|field_type| FieldType::from_number(*field_type as u8) == Some(*field_type)));
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
        assert!(with.is_valid() && end.is_valid());
    }

    #[test]
    fn only_the_last_field_may_be_bytes() {
        let early = EventKind { name: "early".into(), role: Role::Instant, fields: vec![DETAILS, FRAME].into() };
        assert!(!early.is_valid());
        let many = EventKind { name: "many".into(), role: Role::Instant, fields: vec![FRAME; 17].into() };
        assert!(!many.is_valid());
    }
}

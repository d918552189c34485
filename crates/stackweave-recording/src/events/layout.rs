//! The positions of values among the words of events.
//!
//! The layout of a kind follows from its role and its declared fields. So unknown kinds are decoded as far as their role
//! allows, and kinds of old files without the fields that they lack.

use stackweave_core::{EventKind, FieldType, Role};

use super::instants::InstantForm;
use super::phases::Ending;
use super::{HostAction, devices, instants, phases, usage};
use crate::file::number_of;

/// The index of a word in an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordIndex(u8);

impl WordIndex {
    /// The index of a field that a kind does not have.
    pub(super) const NONE: Self = Self(u8::MAX);

    /// Returns the word at this index; `None` if there is none.
    #[inline]
    pub fn get(self, words: &[u64]) -> Option<u64> {
        words.get(usize::from(self.0)).copied()
    }

    /// Returns the word at this index; 0 if there is none.
    #[inline]
    pub fn word(self, words: &[u64]) -> u64 {
        self.get(words).unwrap_or(0)
    }

    /// Returns the number of a frame or a stack at this index; 0 if there is none.
    #[inline]
    pub fn number(self, words: &[u64]) -> u32 {
        self.get(words).map_or(0, number_of)
    }

    /// Returns the device at this index; the process's own if there is none.
    #[inline]
    pub(super) fn device(self, words: &[u64]) -> i64 {
        self.get(words).map_or(EventKind::OWN_DEVICE, u64::cast_signed)
    }

    const fn is_none(self) -> bool {
        self.0 == Self::NONE.0
    }
}

/// The decoding of a kind: by its role, and by its name where that is more specific.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Begin,
    BeginCode,
    BeginRun,
    Resume,
    Open,
    End(Ending),
    Name,
    Instant(InstantForm),
    Counter,
    Sample,
    Allocate(Option<HostAction>),
    Free(Option<HostAction>),
    Complete(Option<HostAction>),
    Keep,
    Tag,
    ListingState,
    SegmentState,
    BlockState,
    OtherState,
    Usage(usage::UsageRowKind),
}

/// The effect of an event on the live memory, whatever its kind is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeapChange {
    /// A block is allocated.
    Allocate,
    /// A block is freed.
    Free,
    /// A range of addresses is mapped.
    Map,
    /// A range of addresses is unmapped.
    Unmap,
    /// The memory that the thread freed last is live again.
    Keep,
    /// The thread has another tag.
    Tag,
}

/// The largest number of fields of a kind that are found by their names.
pub(super) const NAMED: usize = 16;

/// The positions of the values of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventLayout {
    pub(super) role: Role,
    pub(super) form: Form,
    pub(super) frame: WordIndex,
    pub(super) caller: WordIndex,
    pub(super) stack: WordIndex,
    pub(super) address: WordIndex,
    pub(super) value: WordIndex,
    pub(super) value_type: FieldType,
    pub(super) device: WordIndex,
    pub(super) stream: WordIndex,
    pub(super) pool: WordIndex,
    pub(super) tag: WordIndex,
    /// The fields that only this form has, in the order that the form defines.
    pub(super) named: [WordIndex; NAMED],
}

impl EventLayout {
    /// Returns the layout of this kind.
    pub fn of(kind: &EventKind) -> Self {
        let first = |of: FieldType| slot(kind.position_of(of));
        let is_memory = matches!(kind.role, Role::Allocate | Role::Free | Role::Map | Role::Unmap | Role::Complete);
        let of_memory = |name, of| if is_memory { named(kind, name, of) } else { WordIndex::NONE };
        let (value, value_type) = value(kind);
        let (frame, caller) = (first(FieldType::Frame), named(kind, "caller", FieldType::Frame));
        Self {
            role: kind.role,
            form: form(kind),
            frame,
            caller: if caller == frame { WordIndex::NONE } else { caller },
            stack: first(FieldType::Stack),
            // The address of an instant is a detail.
            address: if kind.role == Role::Instant { WordIndex::NONE } else { first(FieldType::Address) },
            value,
            value_type,
            device: of_memory("device", FieldType::Signed),
            stream: of_memory("stream", FieldType::Unsigned),
            pool: of_memory("pool", FieldType::Unsigned),
            tag: named(kind, "tag", FieldType::Frame),
            named: named_slots(kind),
        }
    }

    /// Returns the role of the kind.
    pub const fn role(&self) -> Role {
        self.role
    }

    /// Returns whether the role gives the field at this index its meaning: all others are details.
    pub fn is_of_role(&self, index: usize) -> bool {
        let own = [self.frame, self.caller, self.stack, self.address, self.value, self.device, self.stream, self.pool];
        own.into_iter().any(|slot| !slot.is_none() && usize::from(slot.0) == index)
    }

    /// Returns whether events of this kind are blocks that were live when the recording began.
    pub fn is_present(&self) -> bool {
        self.form == Form::Allocate(Some(HostAction::Present))
    }

    /// Returns whether events of this kind concern the memory of a device.
    pub(super) fn is_of_device(&self) -> bool {
        let is_listing = matches!(self.form, Form::ListingState | Form::SegmentState | Form::BlockState);
        is_listing || !self.device.is_none() || self.form == Form::Instant(InstantForm::OutOfMemory)
    }

    /// Returns the effect of events of this kind on the live memory; `None` for none. Segments are not counted.
    pub const fn heap_change(&self) -> Option<HeapChange> {
        match self.role {
            Role::Allocate => Some(HeapChange::Allocate),
            Role::Free => Some(HeapChange::Free),
            Role::Map if self.device.is_none() => Some(HeapChange::Map),
            Role::Unmap if self.device.is_none() => Some(HeapChange::Unmap),
            Role::Keep => Some(HeapChange::Keep),
            Role::Tag => Some(HeapChange::Tag),
            _ => None,
        }
    }

    /// Returns the position of the frame.
    pub const fn frame(&self) -> WordIndex {
        self.frame
    }

    /// Returns the position of the stack.
    pub const fn stack(&self) -> WordIndex {
        self.stack
    }

    /// Returns the position of the address.
    pub const fn address(&self) -> WordIndex {
        self.address
    }

    /// Returns the position of the size.
    pub const fn size(&self) -> WordIndex {
        self.value
    }

    /// Returns the device of an event with these words; the process's own if the kind has no field for it.
    #[inline]
    pub fn device(&self, words: &[u64]) -> i64 {
        self.device.device(words)
    }
}

fn slot(index: Option<usize>) -> WordIndex {
    index.and_then(|index| u8::try_from(index).ok()).map_or(WordIndex::NONE, WordIndex)
}

/// Returns the position of the field with this name and type.
fn named(kind: &EventKind, name: &str, of: FieldType) -> WordIndex {
    slot(kind.fields.iter().position(|field| field.field_type == of && field.name == name))
}

/// Returns the position and type of the role's quantity: a weight, a size, a counter's value, or a depth.
fn value(kind: &EventKind) -> (WordIndex, FieldType) {
    use FieldType::{Float, Signed, Unsigned};
    let types: &[FieldType] = match kind.role {
        Role::Counter => &[Float, Signed, Unsigned],
        Role::Sample => &[Signed, Unsigned],
        Role::Allocate | Role::Map | Role::Unmap | Role::Open => &[Unsigned],
        // In old recordings the first unsigned field is a stream.
        Role::Free | Role::Complete => return (named(kind, "size", Unsigned), Unsigned),
        _ => &[],
    };
    let first = types.iter().find_map(|of| Some((slot(Some(kind.position_of(*of)?)), *of)));
    first.unwrap_or((WordIndex::NONE, Unsigned))
}

fn form(kind: &EventKind) -> Form {
    match kind.role {
        Role::Begin => phases::begin_form(kind),
        Role::Resume => Form::Resume,
        Role::Open => Form::Open,
        Role::End => Form::End(phases::ending(kind)),
        Role::Name => Form::Name,
        Role::Instant => Form::Instant(instants::form(kind)),
        Role::Counter => Form::Counter,
        Role::Sample => Form::Sample,
        Role::Allocate | Role::Map => Form::Allocate(HostAction::of(kind)),
        Role::Free | Role::Unmap => Form::Free(HostAction::of(kind)),
        Role::Complete => Form::Complete(HostAction::of(kind)),
        Role::Keep => Form::Keep,
        Role::Tag => Form::Tag,
        Role::State => devices::state_form(kind),
        Role::Usage => Form::Usage(usage::row(kind)),
    }
}

/// Returns the positions of the fields that kinds of this form have by name.
fn named_slots(kind: &EventKind) -> [WordIndex; NAMED] {
    let fields = match form(kind) {
        Form::BeginCode => phases::CODE_FIELDS,
        Form::Instant(form) => instants::named_fields(form),
        Form::ListingState => devices::LISTING_FIELDS,
        Form::SegmentState | Form::BlockState => devices::ROW_FIELDS,
        Form::Usage(_) => usage::FIELDS,
        _ => &[],
    };
    let mut slots = [WordIndex::NONE; NAMED];
    for (slot, field) in slots.iter_mut().zip(fields) {
        *slot = named(kind, &field.name, field.field_type);
    }
    slots
}

/// Returns whether a kind has the name and role of `known`, whatever its fields are.
pub(super) fn is_called_as(kind: &EventKind, known: &EventKind) -> bool {
    kind.name == known.name && kind.role == known.role
}

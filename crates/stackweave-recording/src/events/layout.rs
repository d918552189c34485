//! Where the values of a kind are among the words of its events.
//!
//! A kind is laid out by its role and by the fields that it declares, so that one that nobody has heard of is understood
//! as far as its role says, and one of an older file without the fields that it lacks.

use stackweave_core::{EventKind, FieldType, Role};

use super::instants::InstantForm;
use super::phases::Ending;
use super::{HostAction, devices, instants, phases, usage};
use crate::file::number_of;

/// The place of a word in an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(u8);

impl Slot {
    /// The place of a field that a kind does not have.
    pub(super) const NONE: Self = Self(u8::MAX);

    /// Returns the word at this place; `None` if there is none.
    #[inline]
    pub fn get(self, words: &[u64]) -> Option<u64> {
        words.get(usize::from(self.0)).copied()
    }

    /// Returns the word at this place; 0 if there is none.
    #[inline]
    pub fn word(self, words: &[u64]) -> u64 {
        self.get(words).unwrap_or(0)
    }

    /// Returns the number of a frame or a stack at this place; 0 if there is none.
    #[inline]
    pub fn number(self, words: &[u64]) -> u32 {
        self.get(words).map_or(0, number_of)
    }

    /// Returns the signed number at this place, as of a device; that of the process if there is none.
    #[inline]
    pub(super) fn device(self, words: &[u64]) -> i64 {
        self.get(words).map_or(EventKind::OWN_DEVICE, u64::cast_signed)
    }

    const fn is_none(self) -> bool {
        self.0 == Self::NONE.0
    }
}

/// How the words of a kind are read: by its role, and by its name where that says more.
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
    AccountState,
    SegmentState,
    BlockState,
    OtherState,
    Usage(usage::Row),
}

/// How an event changes what is live, whatever its kind is called.
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
    /// What the thread freed last is live again.
    Keep,
    /// The thread has another tag.
    Tag,
}

/// So many fields of a kind may have a meaning by their names.
pub(super) const NAMED: usize = 16;

/// Where the values of a kind are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    pub(super) role: Role,
    pub(super) form: Form,
    pub(super) frame: Slot,
    pub(super) caller: Slot,
    pub(super) stack: Slot,
    pub(super) address: Slot,
    pub(super) value: Slot,
    pub(super) value_type: FieldType,
    pub(super) device: Slot,
    pub(super) stream: Slot,
    pub(super) pool: Slot,
    pub(super) tag: Slot,
    /// What only the kinds of one form have, in the order that the form says.
    pub(super) named: [Slot; NAMED],
}

impl Layout {
    /// Returns where the values of this kind are.
    pub fn of(kind: &EventKind) -> Self {
        let first = |of: FieldType| slot(kind.position_of(of));
        let is_memory = matches!(kind.role, Role::Allocate | Role::Free | Role::Map | Role::Unmap | Role::Complete);
        let of_memory = |name, of| if is_memory { named(kind, name, of) } else { Slot::NONE };
        let (value, value_type) = value(kind);
        let (frame, caller) = (first(FieldType::Frame), named(kind, "caller", FieldType::Frame));
        Self {
            role: kind.role,
            form: form(kind),
            frame,
            caller: if caller == frame { Slot::NONE } else { caller },
            stack: first(FieldType::Stack),
            // Where something happens is a detail of it.
            address: if kind.role == Role::Instant { Slot::NONE } else { first(FieldType::Address) },
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

    /// Returns whether the role says what the field at this place means: all others are details.
    pub fn is_of_role(&self, place: usize) -> bool {
        let own = [self.frame, self.caller, self.stack, self.address, self.value, self.device, self.stream, self.pool];
        own.into_iter().any(|slot| !slot.is_none() && usize::from(slot.0) == place)
    }

    /// Returns whether events of this kind are blocks that were live when the recording began.
    pub fn is_present(&self) -> bool {
        self.form == Form::Allocate(Some(HostAction::Present))
    }

    /// Returns whether events of this kind are about the memory of a device.
    pub(super) fn is_of_device(&self) -> bool {
        let is_account = matches!(self.form, Form::AccountState | Form::SegmentState | Form::BlockState);
        is_account || !self.device.is_none() || self.form == Form::Instant(InstantForm::OutOfMemory)
    }

    /// Returns how events of this kind change what is live; `None` if they do not. Segments are not counted.
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

    /// Returns where the frame is.
    pub const fn frame(&self) -> Slot {
        self.frame
    }

    /// Returns where the stack is.
    pub const fn stack(&self) -> Slot {
        self.stack
    }

    /// Returns where the address is.
    pub const fn address(&self) -> Slot {
        self.address
    }

    /// Returns where the size is.
    pub const fn size(&self) -> Slot {
        self.value
    }

    /// Returns the device in these words: that of the process where the kind does not say one.
    #[inline]
    pub fn device(&self, words: &[u64]) -> i64 {
        self.device.device(words)
    }
}

fn slot(place: Option<usize>) -> Slot {
    place.and_then(|place| u8::try_from(place).ok()).map_or(Slot::NONE, Slot)
}

/// The field of this name and type.
fn named(kind: &EventKind, name: &str, of: FieldType) -> Slot {
    slot(kind.fields.iter().position(|field| field.of == of && field.name == name))
}

/// What the role counts: a weight, a size, a quantity, or how many are open around it.
fn value(kind: &EventKind) -> (Slot, FieldType) {
    use FieldType::{Float, Signed, Unsigned};
    let types: &[FieldType] = match kind.role {
        Role::Counter => &[Float, Signed, Unsigned],
        Role::Sample => &[Signed, Unsigned],
        Role::Allocate | Role::Map | Role::Unmap | Role::Open => &[Unsigned],
        // Old recordings have a stream in its place.
        Role::Free | Role::Complete => return (named(kind, "size", Unsigned), Unsigned),
        _ => &[],
    };
    let first = types.iter().find_map(|of| Some((slot(Some(kind.position_of(*of)?)), *of)));
    first.unwrap_or((Slot::NONE, Unsigned))
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

/// The fields that kinds of this form have by their names.
fn named_slots(kind: &EventKind) -> [Slot; NAMED] {
    let fields = match form(kind) {
        Form::BeginCode => phases::CODE_FIELDS,
        Form::Instant(form) => instants::named_fields(form),
        Form::AccountState => devices::ACCOUNT_FIELDS,
        Form::SegmentState | Form::BlockState => devices::ROW_FIELDS,
        Form::Usage(_) => usage::FIELDS,
        _ => &[],
    };
    let mut slots = [Slot::NONE; NAMED];
    for (slot, field) in slots.iter_mut().zip(fields) {
        *slot = named(kind, &field.name, field.of);
    }
    slots
}

/// Returns whether a kind is this one, whatever else it may have.
pub(super) fn is_called_as(kind: &EventKind, known: &EventKind) -> bool {
    kind.name == known.name && kind.role == known.role
}

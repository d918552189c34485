//! What events mean to a ledger, by the numbers of their kinds.
//!
//! Kinds are known by their roles and fields, as readers know them: whoever records an allocation with an address and a size
//! has it in the ledger.

use stackweave_core::{EventKind, FieldType, Role};
use stackweave_recording::KindNumber;

/// What an event does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Allocate,
    Free,
    Map,
    Unmap,
    Keep,
    Tag,
}

/// Where the words of an event are, counted from the first behind its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fields {
    pub(crate) act: Act,
    pub(crate) address: u8,
    pub(crate) size: u8,
    pub(crate) stack: Option<u8>,
    pub(crate) device: Option<u8>,
    /// What takes memory, by the number that its name has in the ledger.
    pub(crate) allocator: u32,
}

/// What is known of a kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    words: u8,
    has_bytes: bool,
    pub(crate) fields: Option<Fields>,
}

impl Shape {
    /// `allocator` is the number of the kind's name.
    pub(crate) fn of(kind: &EventKind, allocator: u32) -> Self {
        let words = u8::try_from(kind.words()).unwrap_or(u8::MAX);
        Self { words, has_bytes: kind.has_bytes(), fields: fields_of(kind, allocator) }
    }
}

fn fields_of(kind: &EventKind, allocator: u32) -> Option<Fields> {
    let named = |name: &str| kind.fields.iter().zip(0..).find(|(field, _)| field.name == name).map(|(_, at)| at);
    let device = named("device");
    let act = match kind.role {
        Role::Allocate => Act::Allocate,
        Role::Free => Act::Free,
        // Where a host's blocks lie is not counted.
        Role::Map if device.is_none() => Act::Map,
        Role::Unmap if device.is_none() => Act::Unmap,
        Role::Keep => Act::Keep,
        Role::Tag => Act::Tag,
        _ => return None,
    };
    let address = if act == Act::Tag {
        kind.position_of(FieldType::Frame).and_then(|at| at.try_into().ok())
    } else {
        named("address")
    };
    let needs_size = matches!(act, Act::Allocate | Act::Map | Act::Unmap);
    let size = if needs_size { named("size")? } else { 0 };
    Some(Fields { act, address: address?, size, stack: named("stack"), device, allocator })
}

/// What is known of each kind, by its number.
#[derive(Debug)]
pub(crate) struct Shapes([Option<Shape>; 256]);

impl Default for Shapes {
    fn default() -> Self {
        Self([None; 256])
    }
}

impl Shapes {
    pub(crate) fn tell(&mut self, number: KindNumber, shape: Shape) {
        self.0[usize::from(number.get())] = Some(shape);
    }

    /// The first event in these words, by its shape and its length; `None` if it is of a kind that was not told of, or not
    /// whole.
    #[inline]
    pub(crate) fn first(&self, words: &[u64]) -> Option<(&Shape, usize)> {
        let head = *words.first()?;
        let shape = self.0[usize::from(head as u8)].as_ref()?;
        let mut length = 1 + usize::from(shape.words);
        if shape.has_bytes {
            length += 1 + usize::try_from(*words.get(length)?).ok()?.div_ceil(size_of::<u64>());
        }
        (length <= words.len()).then_some((shape, length))
    }
}

#[cfg(test)]
mod tests {
    use stackweave_recording::events::{self, Allocator};

    use super::*;

    fn act(kind: &EventKind) -> Option<Act> {
        fields_of(kind, 1).map(|fields| fields.act)
    }

    #[test]
    fn kinds_mean_what_their_roles_say() {
        for allocator in Allocator::ALL {
            let expected = if allocator.is_mapping() { Act::Map } else { Act::Allocate };
            let fields = fields_of(&allocator.kind(), 7).unwrap();
            let wanted = Fields { act: expected, address: 0, size: 1, stack: Some(2), device: None, allocator: 7 };
            assert_eq!(fields, wanted);
        }
        assert_eq!(act(&events::FREE), Some(Act::Free));
        assert_eq!(act(&events::MUNMAP), Some(Act::Unmap));
        assert_eq!(act(&events::KEPT), Some(Act::Keep));
        assert_eq!(act(&events::MEMORY_TAG), Some(Act::Tag));
        assert_eq!(fields_of(&events::HOST_FREE, 1).unwrap().device, Some(3));
        for passed_over in [
            events::SEGMENT,
            events::SEGMENT_UNMAP,
            events::HOST_FREE_COMPLETED,
            events::BLOCK_STATE,
            events::BEGIN,
            events::MEMORY_USAGE,
        ] {
            assert_eq!(act(&passed_over), None);
        }
    }
}

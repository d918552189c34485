//! The kinds of events that a recording has so far, by their numbers, as the recording's writer meets them.
//!
//! The words are those of this process: stacks are ids, and frames are whole words. Where they stand, the layout of the kind
//! says, as for readers: whoever records an allocation with an address and a size has it in the ledger.

use stackweave_core::EventKind;
use stackweave_recording::KindNumber;
use stackweave_recording::events::{HeapChange, Layout};

/// How the events of a kind change the ledgers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fields {
    pub(crate) change: HeapChange,
    /// Where the words are, counted from the first behind the head.
    pub(crate) layout: Layout,
    /// The allocator, by the number that its name has in the ledger.
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
    let layout = Layout::of(kind);
    layout.heap_change().map(|change| Fields { change, layout, allocator })
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
    pub(crate) fn add(&mut self, number: KindNumber, shape: Shape) {
        self.0[usize::from(number.get())] = Some(shape);
    }

    /// The first event in these words, by its shape and its length; `None` if its kind is not known, or it is not
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

    fn change(kind: &EventKind) -> Option<HeapChange> {
        fields_of(kind, 1).map(|fields| fields.change)
    }

    #[test]
    fn kinds_mean_what_their_roles_say() {
        for allocator in Allocator::ALL {
            let expected = if allocator.is_mapping() { HeapChange::Map } else { HeapChange::Allocate };
            let Fields { change, layout, allocator } = fields_of(&allocator.kind(), 7).unwrap();
            assert_eq!((change, allocator), (expected, 7));
            let words = [0x7f00_0000_1000, 64, 5];
            assert_eq!([layout.address(), layout.size(), layout.stack()].map(|slot| slot.word(&words)), words);
            assert_eq!(layout.device(&words), EventKind::OWN_DEVICE);
        }
        assert_eq!(change(&events::FREE), Some(HeapChange::Free));
        assert_eq!(change(&events::MUNMAP), Some(HeapChange::Unmap));
        assert_eq!(change(&events::KEPT), Some(HeapChange::Keep));
        assert_eq!(change(&events::MEMORY_TAG), Some(HeapChange::Tag));
        assert_eq!(fields_of(&events::HOST_FREE, 1).unwrap().layout.device(&[1, 2, 3, 4]), 4);
        for passed_over in [
            events::SEGMENT,
            events::SEGMENT_UNMAP,
            events::HOST_FREE_COMPLETED,
            events::BLOCK_STATE,
            events::BEGIN,
            events::MEMORY_USAGE,
        ] {
            assert_eq!(change(&passed_over), None);
        }
    }
}

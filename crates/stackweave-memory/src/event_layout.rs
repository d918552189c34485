//! Decodes the events of a recording by the numbers of their kinds, as the recording's writer passes them on.
//!
//! Stacks are ids of this process, and frames are whole words. The layout of a kind locates the words, as it does for
//! readers: any recorder that records an allocation with an address and a size enters it in the ledger.

use stackweave_core::EventKind;
use stackweave_recording::KindNumber;
use stackweave_recording::events::{EventLayout, HeapChange};

/// The effect of events of one kind on the ledgers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LedgerFields {
    pub(crate) change: HeapChange,
    /// The positions of the words, counted from the first word after the head.
    pub(crate) layout: EventLayout,
    /// The number of the allocator's name in the ledger.
    pub(crate) allocator: u32,
}

/// The decoded form of one kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KindShape {
    words: u8,
    has_bytes: bool,
    pub(crate) fields: Option<LedgerFields>,
}

impl KindShape {
    /// Decodes `kind`; `allocator` is the number of its name.
    pub(crate) fn of(kind: &EventKind, allocator: u32) -> Self {
        let words = u8::try_from(kind.words()).unwrap_or(u8::MAX);
        Self { words, has_bytes: kind.has_bytes(), fields: fields_of(kind, allocator) }
    }
}

fn fields_of(kind: &EventKind, allocator: u32) -> Option<LedgerFields> {
    let layout = EventLayout::of(kind);
    layout.heap_change().map(|change| LedgerFields { change, layout, allocator })
}

/// The shapes of all kinds, by the kinds' numbers.
#[derive(Debug)]
pub(crate) struct KindShapes([Option<KindShape>; 256]);

impl Default for KindShapes {
    fn default() -> Self {
        Self([None; 256])
    }
}

impl KindShapes {
    pub(crate) fn add(&mut self, number: KindNumber, shape: KindShape) {
        self.0[usize::from(number.get())] = Some(shape);
    }

    /// Returns the shape and the length of the first event in `words`. `None` if its kind is unknown or the event is
    /// incomplete.
    #[inline]
    pub(crate) fn first(&self, words: &[u64]) -> Option<(&KindShape, usize)> {
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
    fn heap_changes_follow_from_the_roles_of_kinds() {
        for allocator in Allocator::ALL {
            let expected = if allocator.is_mapping() { HeapChange::Map } else { HeapChange::Allocate };
            let LedgerFields { change, layout, allocator } = fields_of(&allocator.kind(), 7).unwrap();
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
        for ignored in [
            events::SEGMENT,
            events::SEGMENT_UNMAP,
            events::HOST_FREE_COMPLETED,
            events::BLOCK_STATE,
            events::BEGIN,
            events::MEMORY_USAGE,
        ] {
            assert_eq!(change(&ignored), None);
        }
    }
}

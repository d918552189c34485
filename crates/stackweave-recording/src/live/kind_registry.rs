//! The kinds of events that a recorder has registered.
//!
//! The registry is lock-free, because a forked child continues with its parent's kinds.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::events;
use stackweave_core::EventKind;

use crate::file::call_fields::kind_in_file;

/// A registered kind, for [`Recorder::record`](super::Recorder::record).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KindNumber {
    pub(super) number: u8,
    pub(super) words: u8,
    pub(super) has_bytes: bool,
}

/// A kind whose events have `WORDS` words and no bytes, for [`Recorder::record_fixed`](super::Recorder::record_fixed), which does
/// not check the number of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FixedKind<const WORDS: usize>(pub(super) u8);

impl KindNumber {
    /// Returns the fixed form of the kind, if its events have this many words and no bytes.
    pub fn fixed<const WORDS: usize>(self) -> Option<FixedKind<WORDS>> {
        (usize::from(self.words) == WORDS && !self.has_bytes).then_some(FixedKind(self.number))
    }

    /// Returns its number in events, from 1.
    pub const fn get(self) -> u8 {
        self.number
    }

    /// Returns the handle of a kind with this number.
    pub(super) fn of(number: u8, kind: &EventKind) -> Option<Self> {
        Some(Self { number, words: u8::try_from(kind.words()).ok()?, has_bytes: kind.has_bytes() })
    }

    const fn known(number: u8, words: u8, has_bytes: bool) -> Self {
        Self { number, words, has_bytes }
    }
}

pub(super) const BEGIN: KindNumber = KindNumber::known(1, 1, false);
pub(super) const BEGIN_AT: KindNumber = KindNumber::known(2, 2, false);
pub(super) const BEGIN_WITH: KindNumber = KindNumber::known(3, 2, true);
pub(super) const END: KindNumber = KindNumber::known(4, 0, false);
pub(super) const INSTANT: KindNumber = KindNumber::known(5, 2, false);
pub(super) const INSTANT_WITH: KindNumber = KindNumber::known(6, 2, true);
pub(super) const COUNTER: KindNumber = KindNumber::known(7, 2, false);
pub(super) const SAMPLE: KindNumber = KindNumber::known(8, 2, false);
pub(super) const ALLOCATE: KindNumber = KindNumber::known(9, 3, false);
pub(super) const FREE: KindNumber = KindNumber::known(10, 1, false);

/// The maximum length of the names of a kind and of its fields.
const MAX_NAMES: usize = 4096;

/// The kinds in the order of their numbers. It only grows.
#[derive(Debug)]
pub(super) struct KindRegistry([AtomicPtr<RegisteredKind>; 255]);

/// A kind of a recorder.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RegisteredKind {
    pub(super) kind: EventKind,
    /// Whether its events are written. Otherwise only an observer receives them.
    pub(super) is_written: bool,
}

impl KindRegistry {
    /// Returns a registry with the built-in kinds.
    pub(super) fn new() -> Self {
        let kinds = Self([const { AtomicPtr::new(ptr::null_mut()) }; 255]);
        for kind in events::BUILT_IN {
            kinds.register(kind, true);
        }
        kinds
    }

    /// Returns the number of a kind, and assigns one to a new kind. Returns `None` if it breaks the rules for fields or has two calls,
    /// if its names are too long, or if 255 kinds are registered.
    pub(super) fn register(&self, kind: EventKind, is_written: bool) -> Option<KindNumber> {
        let names = kind.name.len() + kind.fields.iter().map(|field| field.name.len()).sum::<usize>();
        if kind_in_file(&kind).is_none() || names > MAX_NAMES {
            return None;
        }
        let (words, has_bytes) = (u8::try_from(kind.words()).ok()?, kind.has_bytes());
        let new = Box::into_raw(Box::new(RegisteredKind { kind, is_written }));
        for (slot, number) in self.0.iter().zip(1..=u8::MAX) {
            let added = slot.compare_exchange(ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire);
            let Err(known) = added else { return Some(KindNumber { number, words, has_bytes }) };
            // SAFETY: a kind in a slot lives as long as the registry; `new` is in none yet.
            if unsafe { *known == *new } {
                // SAFETY: no other code has it.
                drop(unsafe { Box::from_raw(new) });
                return Some(KindNumber { number, words, has_bytes });
            }
        }
        // SAFETY: as above.
        drop(unsafe { Box::from_raw(new) });
        None
    }

    /// Returns the kinds from index `known` on.
    pub(super) fn since(&self, known: usize) -> impl Iterator<Item = &RegisteredKind> {
        self.0[known.min(self.0.len())..].iter().map_while(|slot| {
            // SAFETY: null, or a kind that stays in the slot.
            unsafe { slot.load(Ordering::Acquire).as_ref() }
        })
    }
}

impl Drop for KindRegistry {
    fn drop(&mut self) {
        for slot in &mut self.0 {
            let kind = *slot.get_mut();
            if !kind.is_null() {
                // SAFETY: from the box in `register`, and in no other slot.
                drop(unsafe { Box::from_raw(kind) });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackweave_core::{Field, FieldType, Role};

    fn kind(name: String) -> EventKind {
        let fields = vec![Field::new("value", FieldType::Unsigned)];
        EventKind { name: name.into(), role: Role::Instant, fields: fields.into() }
    }

    #[test]
    fn built_in_kinds_have_their_fixed_numbers() {
        let kinds = KindRegistry::new();
        let written =
            [BEGIN, BEGIN_AT, BEGIN_WITH, END, INSTANT, INSTANT_WITH, COUNTER, SAMPLE, ALLOCATE, FREE].map(Some);
        assert_eq!(events::BUILT_IN.map(|kind| kinds.register(kind, true)), written);
        assert_eq!(kinds.since(0).count(), 10);
    }

    #[test]
    fn a_new_kind_gets_the_next_number_until_none_is_left() {
        let kinds = KindRegistry::new();
        for number in 11..=255 {
            assert_eq!(kinds.register(kind(number.to_string()), true).map(KindNumber::get), Some(number));
        }
        assert_eq!(kinds.register(kind("one too many".to_owned()), true), None);
        assert_eq!(kinds.register(kind("200".to_owned()), true).map(KindNumber::get), Some(200));
        assert_eq!(kinds.since(254).next().unwrap().kind.name, "255");
    }

    #[test]
    fn an_invalid_kind_is_rejected() {
        let fields = vec![Field::new("early", FieldType::Bytes), Field::new("late", FieldType::Frame)];
        let wrong = EventKind { name: "wrong".into(), role: Role::Instant, fields: fields.into() };
        assert_eq!(KindRegistry::new().register(wrong, true), None);
        assert_eq!(KindRegistry::new().register(kind("long".repeat(2_000)), true), None);
    }
}

//! The kinds of events that a recorder knows.
//!
//! Without a lock, since a forked child goes on with those of its parent.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::events;
use stackweave_core::EventKind;

use crate::file::call_fields::in_file;

/// A kind of a recorder, as [`Recorder::record`](super::Recorder::record) takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KindNumber {
    pub(super) number: u8,
    pub(super) words: u8,
    pub(super) has_bytes: bool,
}

/// A kind whose events have `WORDS` words and no bytes, as [`Recorder::record_fixed`](super::Recorder::record_fixed) takes it:
/// what was checked once is not checked for each event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FixedKind<const WORDS: usize>(pub(super) u8);

impl KindNumber {
    /// The same, if its events have so many words and no bytes.
    pub fn fixed<const WORDS: usize>(self) -> Option<FixedKind<WORDS>> {
        (usize::from(self.words) == WORDS && !self.has_bytes).then_some(FixedKind(self.number))
    }

    /// Its number in events, from 1 on.
    pub const fn get(self) -> u8 {
        self.number
    }

    /// The number that a kind has.
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

/// The most bytes that the names of a kind and of its fields may have.
const MAX_NAMES: usize = 4096;

/// Kinds in the order of their numbers. They only become more.
#[derive(Debug)]
pub(super) struct Kinds([AtomicPtr<Registered>; 255]);

/// A kind that a recorder knows.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Registered {
    pub(super) kind: EventKind,
    /// Whether its events are in the file, and not only told to who observes.
    pub(super) is_written: bool,
}

impl Kinds {
    /// The built-in ones.
    pub(super) fn new() -> Self {
        let kinds = Self([const { AtomicPtr::new(ptr::null_mut()) }; 255]);
        for kind in events::BUILT_IN {
            kinds.register(kind, true);
        }
        kinds
    }

    /// The number of a kind, a new one if it is new. `None` if it breaks the rules for fields or has two calls, if its names are very
    /// long, or 255 are known.
    pub(super) fn register(&self, kind: EventKind, is_written: bool) -> Option<KindNumber> {
        let names = kind.name.len() + kind.fields.iter().map(|field| field.name.len()).sum::<usize>();
        if in_file(&kind).is_none() || names > MAX_NAMES {
            return None;
        }
        let (words, has_bytes) = (u8::try_from(kind.words()).ok()?, kind.has_bytes());
        let mine = Box::into_raw(Box::new(Registered { kind, is_written }));
        for (slot, number) in self.0.iter().zip(1..=u8::MAX) {
            let added = slot.compare_exchange(ptr::null_mut(), mine, Ordering::AcqRel, Ordering::Acquire);
            let Err(known) = added else { return Some(KindNumber { number, words, has_bytes }) };
            // SAFETY: what is in a slot stays there while the kinds live; `mine` is in none yet.
            if unsafe { *known == *mine } {
                // SAFETY: nobody else knows of it.
                drop(unsafe { Box::from_raw(mine) });
                return Some(KindNumber { number, words, has_bytes });
            }
        }
        // SAFETY: as above.
        drop(unsafe { Box::from_raw(mine) });
        None
    }

    /// The kinds from the `known`th on, counted from 0.
    pub(super) fn since(&self, known: usize) -> impl Iterator<Item = &Registered> {
        self.0[known.min(self.0.len())..].iter().map_while(|slot| {
            // SAFETY: null, or a kind that stays there.
            unsafe { slot.load(Ordering::Acquire).as_ref() }
        })
    }
}

impl Drop for Kinds {
    fn drop(&mut self) {
        for slot in &mut self.0 {
            let kind = *slot.get_mut();
            if !kind.is_null() {
                // SAFETY: boxed by `register`, and in no other slot.
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
    fn the_built_in_ones_have_the_numbers_that_are_written_down() {
        let kinds = Kinds::new();
        let written =
            [BEGIN, BEGIN_AT, BEGIN_WITH, END, INSTANT, INSTANT_WITH, COUNTER, SAMPLE, ALLOCATE, FREE].map(Some);
        assert_eq!(events::BUILT_IN.map(|kind| kinds.register(kind, true)), written);
        assert_eq!(kinds.since(0).count(), 10);
    }

    #[test]
    fn a_new_one_gets_the_next_number_until_none_is_left() {
        let kinds = Kinds::new();
        for number in 11..=255 {
            assert_eq!(kinds.register(kind(number.to_string()), true).map(KindNumber::get), Some(number));
        }
        assert_eq!(kinds.register(kind("one too many".to_owned()), true), None);
        assert_eq!(kinds.register(kind("200".to_owned()), true).map(KindNumber::get), Some(200));
        assert_eq!(kinds.since(254).next().unwrap().kind.name, "255");
    }

    #[test]
    fn one_that_breaks_the_rules_is_refused() {
        let fields = vec![Field::new("early", FieldType::Bytes), Field::new("late", FieldType::Frame)];
        let wrong = EventKind { name: "wrong".into(), role: Role::Instant, fields: fields.into() };
        assert_eq!(Kinds::new().register(wrong, true), None);
        assert_eq!(Kinds::new().register(kind("long".repeat(2_000)), true), None);
    }
}

//! Who has taken memory, as numbers.
//!
//! Hot file: allocates only when a place is new, and never gives up on what is known already.

use super::account::Account;
use super::figures::Place;

/// The number of a place in its ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PlaceId(pub(super) u32);

#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub(super) place: Place,
    pub(super) account: Account,
}

/// Places in the order in which they came. The first is no place in particular: that of what could not be told apart, because
/// there was no memory.
#[derive(Debug)]
pub(super) struct Places {
    records: Vec<Record>,
    /// Numbers of records, by hash; 0 where there is none. Half of it stays empty.
    index: Vec<u32>,
    last: (Place, PlaceId),
    pub(super) is_incomplete: bool,
    /// How often it still does without asking for memory, since there was none.
    patience: u32,
}

const FIRST_INDEX: usize = 256;
/// When there was no memory, it is asked for again after so many places.
const PATIENCE: u32 = 1 << 12;

impl Places {
    pub(super) fn new() -> Self {
        let nowhere = Record { place: Place::default(), account: Account::default() };
        let last = (Place::default(), PlaceId(0));
        Self { records: vec![nowhere], index: vec![0; FIRST_INDEX], last, is_incomplete: false, patience: 0 }
    }

    /// The number of a place, a new one if it is new.
    #[inline]
    pub(super) fn intern(&mut self, place: Place) -> PlaceId {
        if place != self.last.0 {
            self.last = (place, self.look_up(place));
        }
        self.last.1
    }

    fn look_up(&mut self, place: Place) -> PlaceId {
        if place == Place::default() {
            return PlaceId(0);
        }
        let mut slot = self.home(place);
        loop {
            match self.index[slot] {
                0 => return self.add(slot, place),
                number if self.records[number as usize].place == place => return PlaceId(number),
                _ => slot = (slot + 1) & (self.index.len() - 1),
            }
        }
    }

    #[cold]
    fn add(&mut self, slot: usize, place: Place) -> PlaceId {
        self.patience = self.patience.saturating_sub(1);
        let number = u32::try_from(self.records.len()).ok().filter(|_| self.patience == 0 && self.has_room());
        let Some(number) = number else {
            self.is_incomplete = true;
            self.patience = if self.patience == 0 { PATIENCE } else { self.patience };
            return PlaceId(0);
        };
        self.records.push(Record { place, account: Account::default() });
        if self.records.len() * 2 > self.index.len() {
            self.grow_index();
        } else {
            self.index[slot] = number;
        }
        PlaceId(number)
    }

    /// Makes room for one more record, and for the index that it needs.
    fn has_room(&mut self) -> bool {
        let index = if (self.records.len() + 1) * 2 > self.index.len() { self.index.len() } else { 0 };
        self.records.try_reserve(1).is_ok() && self.index.try_reserve(index).is_ok()
    }

    fn grow_index(&mut self) {
        let length = self.index.len() * 2;
        self.index.clear();
        self.index.resize(length, 0);
        for (number, place) in (1..).zip(self.records[1..].iter().map(|record| record.place)) {
            let mut slot = self.home(place);
            while self.index[slot] != 0 {
                slot = (slot + 1) & (length - 1);
            }
            self.index[slot] = number;
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "the low bits are wanted")]
    fn home(&self, place: Place) -> usize {
        let halves = [
            u64::from(place.stack) << 32 | u64::from(place.thread),
            u64::from(place.allocator) << 32 | u64::from(place.tag),
        ];
        let product = u128::from(halves[0] ^ 0x9e37_79b9_7f4a_7c15) * u128::from(halves[1] ^ 0xd1b5_4a32_d192_ed03);
        (product as u64 ^ (product >> 64) as u64) as usize & (self.index.len() - 1)
    }

    #[inline]
    pub(super) fn get(&self, place: PlaceId) -> &Record {
        &self.records[place.0 as usize]
    }

    #[inline]
    pub(super) fn account(&mut self, place: PlaceId) -> &mut Account {
        &mut self.records[place.0 as usize].account
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Record> {
        self.records.iter()
    }

    pub(super) fn bytes_used(&self) -> usize {
        self.records.capacity() * size_of::<Record>() + self.index.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(number: u32) -> Place {
        Place { stack: number / 7, thread: number % 7, allocator: number % 3, tag: number / 1000 }
    }

    #[test]
    fn a_place_keeps_its_number() {
        let mut places = Places::new();
        let numbers: Vec<PlaceId> = (0..10_000).map(|number| places.intern(place(number))).collect();
        assert!((0..10_000).all(|number| places.intern(place(number)) == numbers[number as usize]));
        assert!((0..10_000).all(|number| places.get(numbers[number as usize]).place == place(number)));
        assert!(!places.is_incomplete);
    }

    #[test]
    fn no_place_in_particular_is_the_first() {
        let mut places = Places::new();
        assert_eq!(places.intern(place(50)), PlaceId(1));
        assert_eq!(places.intern(Place::default()), PlaceId(0));
    }
}

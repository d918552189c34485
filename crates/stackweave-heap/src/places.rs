//! Where memory was allocated, as numbers.
//!
//! Hot file: allocates only when a place is new, and never gives up on what is known already.

use crate::account::Account;
use crate::figures::Place;
use crate::small_account::SmallAccount;

/// The number of a place in its ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PlaceId(pub(crate) u32);

#[derive(Clone, Copy, Debug)]
struct Record {
    place: Place,
    figures: SmallAccount,
}

/// Places in the order in which they came. The first is no place in particular: that of what could not be kept apart, because
/// there was no memory.
#[derive(Debug)]
pub(crate) struct Places {
    records: Vec<Record>,
    /// Figures that are too large for their record.
    large: Vec<Account>,
    /// Numbers of records, by hash; 0 where there is none. A quarter of it stays empty.
    index: Vec<u32>,
    last: (Place, PlaceId),
    pub(crate) is_incomplete: bool,
    /// How often it still does without requesting memory, since there was none.
    patience: u32,
}

const FIRST_INDEX: usize = 256;
/// When there was no memory, it is requested again after so many places.
const PATIENCE: u32 = 1 << 12;

impl Places {
    pub(crate) fn new() -> Self {
        let nowhere = Record { place: Place::default(), figures: SmallAccount::default() };
        Self {
            records: vec![nowhere],
            large: Vec::new(),
            index: vec![0; FIRST_INDEX],
            last: (Place::default(), PlaceId(0)),
            is_incomplete: false,
            patience: 0,
        }
    }

    /// Returns the number of a place, a new one if it is new.
    #[inline]
    pub(crate) fn intern(&mut self, place: Place) -> PlaceId {
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
        self.records.push(Record { place, figures: SmallAccount::default() });
        if is_crowded(self.records.len(), self.index.len()) {
            self.grow_index();
        } else {
            self.index[slot] = number;
        }
        PlaceId(number)
    }

    /// Makes room for one more record, and for the index that it needs.
    fn has_room(&mut self) -> bool {
        let is_crowded = is_crowded(self.records.len() + 1, self.index.len());
        let index = if is_crowded { self.index.len() } else { 0 };
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
    pub(crate) fn get(&self, place: PlaceId) -> Place {
        self.records[place.0 as usize].place
    }

    /// Changes the figures of a place.
    #[inline]
    pub(crate) fn update(&mut self, place: PlaceId, change: impl FnOnce(&mut Account)) {
        let record = &mut self.records[place.0 as usize];
        match record.figures.get() {
            Err(large) => change(&mut self.large[large]),
            Ok(mut account) => {
                change(&mut account);
                match SmallAccount::of(&account) {
                    Some(small) => record.figures = small,
                    None => self.move_out(place, account),
                }
            }
        }
    }

    #[cold]
    fn move_out(&mut self, place: PlaceId, account: Account) {
        let number = u32::try_from(self.large.len()).ok().filter(|_| self.large.try_reserve(1).is_ok());
        let Some(number) = number else {
            self.is_incomplete = true;
            return;
        };
        self.large.push(account);
        self.records[place.0 as usize].figures = SmallAccount::elsewhere(number);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Place, Account)> {
        let account = |record: &Record| record.figures.get().unwrap_or_else(|large| self.large[large]);
        self.records.iter().map(move |record| (record.place, account(record)))
    }

    pub(crate) fn bytes_used(&self) -> usize {
        let accounts = self.records.capacity() * size_of::<Record>() + self.large.capacity() * size_of::<Account>();
        accounts + self.index.capacity() * size_of::<u32>()
    }
}

/// Whether so many records need a larger index.
fn is_crowded(records: usize, index: usize) -> bool {
    records * 4 > index * 3
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
        assert!((0..10_000).all(|number| places.get(numbers[number as usize]) == place(number)));
        assert!(!places.is_incomplete);
    }

    #[test]
    fn no_place_in_particular_is_the_first() {
        let mut places = Places::new();
        assert_eq!(places.intern(place(50)), PlaceId(1));
        assert_eq!(places.intern(Place::default()), PlaceId(0));
    }

    #[test]
    fn figures_that_grow_large_stay_with_their_place() {
        let mut places = Places::new();
        let ids: Vec<PlaceId> = (1..=3).map(|number| places.intern(place(number))).collect();
        for round in 1..=100_000 {
            places.update(ids[1], |account| account.allocations += 1);
            places.update(ids[round % 2 * 2], |account| account.bytes += 1);
        }
        let figures: Vec<(u64, u64)> = places.iter().map(|(_, account)| (account.allocations, account.bytes)).collect();
        assert_eq!(figures, [(0, 0), (0, 50_000), (100_000, 0), (0, 50_000)]);
        assert_eq!(places.large.len(), 1);
    }
}

//! Values by the numbers of a recording.

use std::collections::HashMap;

/// The vector may be so many times as long as there are values, and has this many places in any case.
const SPREAD: usize = 4;
const FIRST: usize = 1024;

/// The greatest number of a string, module, frame, stack or thread that an event may refer to. Readers use the bit above it for
/// marks of their own.
pub const MAX_NUMBER: u32 = u32::MAX >> 1;

/// Returns the number that a word of an event refers to something by, or 0, which is nothing's, if no number is that large.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "it is compared first")]
pub const fn number_of(word: u64) -> u32 {
    if word <= MAX_NUMBER as u64 { word as u32 } else { 0 }
}

/// A map from numbers of a recording (of frames, stacks, strings, threads) to values, whose size follows the number of its values.
///
/// Numbers that a file gives mostly follow each other, so that a vector is the fast way to look something up. A hostile file
/// gives the number 2^32 - 1 in an event of five bytes: a vector that is resized for it takes gigabytes. Here such a number
/// goes to a hash map. Consumers of recordings use this type wherever a number from a file would be an index.
#[derive(Clone, Debug)]
pub struct NumberMap<T> {
    near: Vec<Option<T>>,
    far: HashMap<u32, T>,
    len: usize,
}

impl<T> Default for NumberMap<T> {
    fn default() -> Self {
        Self { near: Vec::new(), far: HashMap::new(), len: 0 }
    }
}

impl<T> NumberMap<T> {
    /// Returns the value of a number.
    #[inline]
    pub fn get(&self, number: u32) -> Option<&T> {
        match self.near.get(number as usize) {
            Some(Some(value)) => Some(value),
            _ if self.far.is_empty() => None,
            _ => self.far.get(&number),
        }
    }

    /// Sets the value of a number, and returns the one that it had.
    pub fn insert(&mut self, number: u32, value: T) -> Option<T> {
        let place = number as usize;
        let old = if self.far.contains_key(&number) || place >= FIRST.max(self.len.saturating_mul(SPREAD)) {
            self.far.insert(number, value)
        } else {
            if self.near.len() <= place {
                self.near.resize_with(place + 1, || None);
            }
            self.near[place].replace(value)
        };
        self.len += usize::from(old.is_none());
        old
    }

    /// Returns the number of values.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there is no value.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns how many values there is room for in the vector.
    #[cfg(test)]
    fn room(&self) -> usize {
        self.near.capacity()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn words_that_are_no_numbers_refer_to_nothing() {
        assert_eq!([0, 7, 0x7fff_ffff].map(number_of), [0, 7, MAX_NUMBER]);
        assert_eq!([0x8000_0000, 0xffff_ffff, 1 << 32 | 7, u64::MAX].map(number_of), [0; 4]);
    }

    #[test]
    fn numbers_at_the_end_take_no_room() {
        let mut map = NumberMap::default();
        for number in (0..1_000).chain((u32::MAX - 1_000)..=u32::MAX) {
            assert_eq!(map.insert(number, u64::from(number)), None);
        }
        assert_eq!((map.len(), map.get(u32::MAX), map.get(1_000)), (2_001, Some(&u64::from(u32::MAX)), None));
        assert!(map.room() <= 8 * 1_024, "{}", map.room());
    }

    #[test]
    fn it_holds_what_a_plain_map_holds() {
        let (mut map, mut model) = (NumberMap::default(), BTreeMap::new());
        let mut state = 1_u64;
        for step in 0..20_000_u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let number = (state >> 33) as u32 >> (state % 24);
            assert_eq!(map.insert(number, step), model.insert(number, step), "{number}");
        }
        assert!(!map.is_empty() && map.len() == model.len());
        assert!(model.iter().all(|(number, value)| map.get(*number) == Some(value)));
        assert!(map.room() <= SPREAD * 2 * model.len());
    }
}

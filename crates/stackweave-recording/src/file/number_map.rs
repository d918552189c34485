//! A map whose keys are numbers of a recording.

use std::collections::HashMap;

/// The maximum ratio of the vector's length to the number of values, and its minimum length.
const SPREAD: usize = 4;
const FIRST: usize = 1024;

/// The highest number of a string, module, frame, stack or thread that an event may refer to. Readers use the bit above it for
/// their own marks.
pub const MAX_NUMBER: u32 = u32::MAX >> 1;

/// Returns the number in a word of an event; 0, which means none, if the word exceeds all numbers.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the word is compared first")]
pub const fn number_of(word: u64) -> u32 {
    if word <= MAX_NUMBER as u64 { word as u32 } else { 0 }
}

/// A map from numbers of a recording (of frames, stacks, strings, threads) to values, whose memory is proportional to the number of
/// its values.
///
/// The numbers in a file are mostly consecutive, so a vector is the fastest map. But a hostile file can use the number 2^32 - 1 in
/// an event of five bytes, and a vector of that length takes gigabytes. This map keeps such numbers in a hash map. Code that
/// would use a number from a file as an index uses this type instead.
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
        let index = number as usize;
        let old = if self.far.contains_key(&number) || index >= FIRST.max(self.len.saturating_mul(SPREAD)) {
            self.far.insert(number, value)
        } else {
            if self.near.len() <= index {
                self.near.resize_with(index + 1, || None);
            }
            self.near[index].replace(value)
        };
        self.len += usize::from(old.is_none());
        old
    }

    /// Returns all numbers with values, in no particular order.
    pub fn numbers(&self) -> impl Iterator<Item = u32> {
        let near = (0..).zip(&self.near).filter(|(_, value)| value.is_some()).map(|(number, _)| number);
        near.chain(self.far.keys().copied())
    }

    /// Returns the number of values.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there is no value.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the capacity of the vector.
    #[cfg(test)]
    fn capacity(&self) -> usize {
        self.near.capacity()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn words_above_all_numbers_refer_to_nothing() {
        assert_eq!([0, 7, 0x7fff_ffff].map(number_of), [0, 7, MAX_NUMBER]);
        assert_eq!([0x8000_0000, 0xffff_ffff, 1 << 32 | 7, u64::MAX].map(number_of), [0; 4]);
    }

    #[test]
    fn high_numbers_do_not_enlarge_the_vector() {
        let mut map = NumberMap::default();
        for number in (0..1_000).chain((u32::MAX - 1_000)..=u32::MAX) {
            assert_eq!(map.insert(number, u64::from(number)), None);
        }
        assert_eq!((map.len(), map.get(u32::MAX), map.get(1_000)), (2_001, Some(&u64::from(u32::MAX)), None));
        assert!(map.capacity() <= 8 * 1_024, "{}", map.capacity());
    }

    #[test]
    fn it_agrees_with_a_plain_map() {
        let (mut map, mut model) = (NumberMap::default(), BTreeMap::new());
        let mut state = 1_u64;
        for step in 0..20_000_u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let number = (state >> 33) as u32 >> (state % 24);
            assert_eq!(map.insert(number, step), model.insert(number, step), "{number}");
        }
        assert!(!map.is_empty() && map.len() == model.len());
        assert!(model.iter().all(|(number, value)| map.get(*number) == Some(value)));
        let mut numbers: Vec<u32> = map.numbers().collect();
        numbers.sort_unstable();
        assert!(numbers.iter().eq(model.keys()));
        assert!(map.capacity() <= SPREAD * 2 * model.len());
    }
}

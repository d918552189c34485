//! Maps by address, which nobody chooses to be slow.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

pub(in super::super) type AddressMap<V> = HashMap<u64, V, BuildHasherDefault<AddressHasher>>;

/// One multiplication, both halves of which are used: the map looks at the lowest bits and at the highest.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct AddressHasher(u64);

const ODD: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "each half by itself")]
    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word).wrapping_mul(ODD);
        self.0 = product as u64 ^ (product >> 64) as u64;
    }
}

/// So many maps hold the blocks of a process. One that grows is there twice for a moment: with many, that is little.
/// Their number is a power of two.
const PARTS: usize = 64;

/// Very many values by address.
#[derive(Debug)]
pub(super) struct Blocks<V> {
    parts: Vec<AddressMap<V>>,
}

impl<V> Default for Blocks<V> {
    fn default() -> Self {
        Self { parts: (0..PARTS).map(|_| AddressMap::default()).collect() }
    }
}

impl<V> Blocks<V> {
    fn part(&mut self, address: u64) -> &mut AddressMap<V> {
        // Blocks are a multiple of 16 bytes apart, and pages have one size of blocks.
        let bits = (address >> 4 ^ address >> 10 ^ address >> 16) & (PARTS as u64 - 1);
        &mut self.parts[usize::try_from(bits).unwrap_or(0)]
    }

    pub(super) fn insert(&mut self, address: u64, value: V) -> Option<V> {
        self.part(address).insert(address, value)
    }

    pub(super) fn remove(&mut self, address: u64) -> Option<V> {
        self.part(address).remove(&address)
    }

    pub(super) fn contains(&mut self, address: u64) -> bool {
        self.part(address).contains_key(&address)
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &V> {
        self.parts.iter().flat_map(AddressMap::values)
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.parts.iter_mut().flat_map(AddressMap::values_mut)
    }
}

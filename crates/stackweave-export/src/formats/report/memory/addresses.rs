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

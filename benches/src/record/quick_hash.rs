//! The usual quick hash for keys that nobody chose in malice.

use std::hash::{BuildHasherDefault, Hasher};

/// What a map takes to use it.
pub(super) type Quick = BuildHasherDefault<MultiplyRotate>;

/// Multiplies and rotates.
#[derive(Debug, Default)]
pub(super) struct MultiplyRotate(u64);

impl Hasher for MultiplyRotate {
    fn finish(&self) -> u64 {
        self.0.rotate_left(26)
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0xf135_7aea_2e62_a9c5);
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
}

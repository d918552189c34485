//! Pseudo-random numbers that are the same in every run.

/// A small generator (splitmix64). It can begin with the bytes of an input, so that a fuzzer can choose the
/// numbers.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
    input: Vec<u8>,
    used: usize,
}

impl Random {
    /// Creates a generator from `seed`.
    pub const fn new(seed: u64) -> Self {
        Self { state: seed, input: Vec::new(), used: 0 }
    }

    /// Creates a generator that returns the bytes of `input` first, and then continues with seed 0.
    pub fn from_bytes(input: &[u8]) -> Self {
        Self { state: 0, input: input.to_vec(), used: 0 }
    }

    /// Returns the next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        if let Some(bytes) = self.input.get(self.used..).and_then(<[u8]>::first_chunk) {
            self.used += bytes.len();
            return u64::from_le_bytes(*bytes);
        }
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `bound`, which is not zero.
    pub fn below(&mut self, bound: usize) -> usize {
        match self.input.get(self.used) {
            // One byte is enough for a choice of a few.
            Some(byte) if bound <= 256 => {
                self.used += 1;
                usize::from(*byte) % bound
            }
            _ => (self.bits() % bound as u64) as usize,
        }
    }

    /// Returns a number below `bound`, which is not zero.
    pub fn number_below(&mut self, bound: u64) -> u64 {
        self.bits() % bound
    }

    /// Returns one of these values. There is at least one.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// Returns a byte below `bound`, which is not zero.
    pub fn byte_below(&mut self, bound: u8) -> u8 {
        self.below(usize::from(bound)) as u8
    }
}

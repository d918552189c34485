//! Random numbers that are the same in every run.

/// A small generator (splitmix64). With an input, the bytes of that come first, so that a fuzzer can choose them.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
    input: Vec<u8>,
    used: usize,
}

impl Random {
    /// The sequence that belongs to `seed`.
    pub const fn new(seed: u64) -> Self {
        Self { state: seed, input: Vec::new(), used: 0 }
    }

    /// The bytes of `input`, and the sequence that belongs to 0 once they are used up.
    pub fn from_bytes(input: &[u8]) -> Self {
        Self { state: 0, input: input.to_vec(), used: 0 }
    }

    /// The next 64 random bits.
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

    /// A number below `bound`, which is not zero.
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

    /// Returns one of some, of which there are any.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// A byte below `bound`, which is not zero.
    pub fn byte_below(&mut self, bound: u8) -> u8 {
        self.below(usize::from(bound)) as u8
    }
}

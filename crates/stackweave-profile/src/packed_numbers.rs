//! Numbers in little memory: each needs a byte for each of its groups of 7 bits, and most are small.

/// Numbers in the order in which they were added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PackedNumbers {
    bytes: Vec<u8>,
}

impl PackedNumbers {
    #[expect(clippy::cast_possible_truncation, reason = "the low bits, and the rest below 128")]
    pub(crate) fn push(&mut self, mut value: u64) {
        while value >= 128 {
            self.bytes.push(value as u8 | 128);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    pub(crate) fn push_signed(&mut self, value: i64) {
        self.push((value << 1 ^ value >> 63).cast_unsigned());
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Frees the memory for further numbers.
    pub(crate) fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
    }

    pub(crate) fn iter(&self) -> PackedIter<'_> {
        PackedIter { bytes: self.bytes.iter() }
    }
}

/// Numbers in their order.
#[derive(Clone, Debug)]
pub(crate) struct PackedIter<'a> {
    bytes: core::slice::Iter<'a, u8>,
}

impl PackedIter<'_> {
    /// Returns the next number, which was added as a signed one.
    pub(crate) fn next_signed(&mut self) -> Option<i64> {
        self.next().map(|value| (value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }
}

impl Iterator for PackedIter<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = *self.bytes.next()?;
            value |= u64::from(byte & 127) << shift;
            shift += 7;
            if byte < 128 {
                return Some(value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signed_numbers_are_packed_without_loss() {
        let values = [0, -1, 1, 63, -64, i64::MAX, i64::MIN];
        let mut packed = PackedNumbers::default();
        for value in values {
            packed.push_signed(value);
        }
        let mut unpacked = packed.iter();
        assert_eq!(values.map(|_| unpacked.next_signed()), values.map(Some));
        assert_eq!(unpacked.next_signed(), None);
    }
}

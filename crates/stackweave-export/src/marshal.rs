//! Writes Python's `marshal` format: numbers, text, tuples and dictionaries, in codes that every Python 3 reads.

use std::io::{self, Write};

/// Writes values one after another. A dictionary is written as alternating keys and values between
/// [`Marshal::begin_dict`] and [`Marshal::end_dict`].
pub(crate) struct Marshal<'a> {
    out: &'a mut dyn Write,
}

impl<'a> Marshal<'a> {
    pub(crate) fn new(out: &'a mut dyn Write) -> Self {
        Self { out }
    }

    pub(crate) fn begin_dict(&mut self) -> io::Result<()> {
        self.out.write_all(b"{")
    }

    pub(crate) fn end_dict(&mut self) -> io::Result<()> {
        self.out.write_all(b"0")
    }

    /// Begins a tuple of the next `length` values.
    pub(crate) fn tuple(&mut self, length: u8) -> io::Result<()> {
        self.out.write_all(b"(")?;
        self.out.write_all(&i32::from(length).to_le_bytes())
    }

    pub(crate) fn text(&mut self, text: &str) -> io::Result<()> {
        let length = i32::try_from(text.len()).map_err(io::Error::other)?;
        self.out.write_all(b"u")?;
        self.out.write_all(&length.to_le_bytes())?;
        self.out.write_all(text.as_bytes())
    }

    pub(crate) fn float(&mut self, value: f64) -> io::Result<()> {
        self.out.write_all(b"g")?;
        self.out.write_all(&value.to_le_bytes())
    }

    pub(crate) fn integer(&mut self, value: u64) -> io::Result<()> {
        if let Ok(small) = i32::try_from(value) {
            self.out.write_all(b"i")?;
            return self.out.write_all(&small.to_le_bytes());
        }
        let digits: Vec<u16> = (0..5).map(|digit| digit_of(value, digit)).collect();
        let length = digits.iter().rposition(|digit| *digit != 0).map_or(0, |last| last + 1);
        self.out.write_all(b"l")?;
        self.out.write_all(&i32::try_from(length).map_err(io::Error::other)?.to_le_bytes())?;
        digits[..length].iter().try_for_each(|digit| self.out.write_all(&digit.to_le_bytes()))
    }
}

/// Returns a digit of a long integer, which has 15 bits; digit 0 is the lowest.
fn digit_of(value: u64, digit: u32) -> u16 {
    (value.checked_shr(15 * digit).unwrap_or(0) & 0x7fff) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with the output of `marshal.dumps(value, 2)`.
    #[test]
    fn values_are_written_like_python_does() {
        let written = |write: &dyn Fn(&mut Marshal<'_>) -> io::Result<()>| {
            let mut out = Vec::new();
            write(&mut Marshal::new(&mut out)).unwrap();
            out
        };
        assert_eq!(written(&|out| out.integer(300)), b"i\x2c\x01\0\0");
        assert_eq!(written(&|out| out.integer(1 << 31)), b"l\x03\0\0\0\0\0\0\0\x02\0");
        let greatest = b"l\x05\0\0\0\xff\x7f\xff\x7f\xff\x7f\xff\x7f\x0f\0";
        assert_eq!(written(&|out| out.integer(u64::MAX)), greatest);
        assert_eq!(written(&|out| out.text("\u{fc}")), b"u\x02\0\0\0\xc3\xbc");
        assert_eq!(written(&|out| out.float(0.5)), b"g\0\0\0\0\0\0\xe0?");
        let pair = |out: &mut Marshal<'_>| {
            out.begin_dict()?;
            out.tuple(1)?;
            out.integer(1)?;
            out.text("")?;
            out.end_dict()
        };
        assert_eq!(written(&pair), b"{(\x01\0\0\0i\x01\0\0\0u\0\0\0\x000");
    }
}

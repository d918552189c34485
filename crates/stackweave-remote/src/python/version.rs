//! The version of an interpreter.

use core::fmt;

/// The version of an interpreter, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) major: u8,
    pub(super) minor: u8,
    pub(super) micro: Option<u8>,
    /// The stage of the release and its serial number, as in `sys.hexversion`; 0xf0 for a final release.
    release: u8,
}

const FINAL: u8 = 0xf0;

impl Version {
    /// Converts the word `Py_Version`, which has the format of `sys.hexversion`.
    pub(super) fn of_word(word: u64) -> Option<Self> {
        let [major, minor, micro, release] = u32::try_from(word).ok()?.to_be_bytes();
        (major == 3).then_some(Self { major, minor, micro: Some(micro), release })
    }

    /// Finds the version of 3.10, whose word is not exported, in the texts of its file.
    pub(super) fn of_3_10(texts: &[u8]) -> Self {
        const START: &[u8] = b"\x003.10.";
        let starts = texts.windows(START.len()).enumerate().filter(|(_, window)| *window == START);
        let micro = starts.map(|(at, _)| &texts[at + START.len()..]).find_map(|rest| {
            let text = rest.get(..rest.iter().position(|byte| *byte == 0)?)?;
            std::str::from_utf8(text).ok()?.trim_end_matches('+').parse().ok()
        });
        Self { major: 3, minor: 10, micro, release: FINAL }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)?;
        if let Some(micro) = self.micro {
            write!(f, ".{micro}")?;
        }
        match self.release >> 4 {
            0xa => write!(f, "a{}", self.release & 15),
            0xb => write!(f, "b{}", self.release & 15),
            0xc => write!(f, "rc{}", self.release & 15),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_formatted_as_the_interpreter_does() {
        let of_word = |word| Version::of_word(word).map(|version| version.to_string());
        assert_eq!(of_word(0x030c_01f0).as_deref(), Some("3.12.1"));
        assert_eq!(of_word(0x030f_00b2).as_deref(), Some("3.15.0b2"));
        assert_eq!(of_word(0x030d_00c1).as_deref(), Some("3.13.0rc1"));
        assert_eq!(of_word(0x0207_12f0), None);
        assert_eq!(of_word(1 << 40), None);
        let of_texts = |texts: &[u8]| Version::of_3_10(texts).to_string();
        assert_eq!(of_texts(b"a\x003.10.x\x003.10.13+\x00b"), "3.10.13");
        assert_eq!(of_texts(b"a\x003.10."), "3.10");
    }
}

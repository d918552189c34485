//! A frame as capture sees it: one word, to be named later.

use core::fmt;

use crate::{BlobId, CodeAddress, CodeId};

/// A frame in one word. Two frames are the same place in code if their words are equal.
///
/// ```text
///   63      62 61  60                          29 28                0
/// +--------+-----+------------------------------+-------------------+
/// | exact  | 0 0 |              address                             |  native: the bits of a `CodeAddress`
/// | entry  | 0 1 |           code (32 bits)     | instruction (29)  |  Python
/// | 0      | 1 0 | source (60-53) |          word (53 bits)         |  script
/// | 0      | 1 1 |      0       |          label (32 bits)          |  label
/// +--------+-----+------------------------------+-------------------+
/// ```
///
/// Addresses of user space end below bit 57, so a native frame is its `CodeAddress`, unchanged.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct RawFrame(u64);

/// What a [`RawFrame`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RawFrameKind {
    /// A place in machine code.
    Native(CodeAddress),
    /// A place in a Python code object.
    Python {
        /// The code object.
        code: CodeId,
        /// The offset of the instruction in its bytecode, at most [`RawFrame::MAX_INSTRUCTION`].
        instruction: u32,
        /// Whether native code entered this frame, and not another Python frame.
        entered_from_native: bool,
    },
    /// A place in code of another interpreter.
    Script {
        /// Which frame source it came from.
        source: u8,
        /// What the source calls the place, at most [`RawFrame::MAX_WORD`].
        word: u64,
    },
    /// A name that somebody gave to what happens, and not a place in code.
    Label(BlobId),
}

const FLAG: u64 = 1 << 63;
const KIND_SHIFT: u32 = 61;
const KIND_MASK: u64 = 0b11 << KIND_SHIFT;
const PYTHON: u64 = 0b01 << KIND_SHIFT;
const SCRIPT: u64 = 0b10 << KIND_SHIFT;
const LABEL: u64 = 0b11 << KIND_SHIFT;
const CODE_SHIFT: u32 = 29;
const SOURCE_SHIFT: u32 = 53;

impl RawFrame {
    /// The last instruction offset that fits; what lies behind it is taken for it.
    pub const MAX_INSTRUCTION: u32 = (1 << CODE_SHIFT) - 1;
    /// The greatest word of a script frame; of a greater one the high bits are dropped.
    pub const MAX_WORD: u64 = (1 << SOURCE_SHIFT) - 1;

    /// A place in machine code.
    pub const fn native(address: CodeAddress) -> Self {
        Self(address.to_bits() & !KIND_MASK)
    }

    /// A place in a Python code object. `entered_from_native`: native code, not another Python frame, entered it.
    pub const fn python(code: CodeId, instruction: u32, entered_from_native: bool) -> Self {
        let instruction = if instruction > Self::MAX_INSTRUCTION { Self::MAX_INSTRUCTION } else { instruction };
        let flag = if entered_from_native { FLAG } else { 0 };
        Self(flag | PYTHON | (code.get() as u64) << CODE_SHIFT | instruction as u64)
    }

    /// A place in code of the interpreter that frame source number `source` speaks for.
    pub const fn script(source: u8, word: u64) -> Self {
        Self(SCRIPT | (source as u64) << SOURCE_SHIFT | (word & Self::MAX_WORD))
    }

    /// A name, in the table that labels are kept in.
    pub const fn label(label: BlobId) -> Self {
        Self(LABEL | label.get() as u64)
    }

    /// What it says.
    #[expect(clippy::cast_possible_truncation, reason = "each field is shifted down and cut to its width")]
    pub const fn kind(self) -> RawFrameKind {
        let flag = self.0 & FLAG != 0;
        match self.0 & KIND_MASK {
            PYTHON => match CodeId::new((self.0 >> CODE_SHIFT) as u32) {
                Some(code) => {
                    let instruction = self.0 as u32 & Self::MAX_INSTRUCTION;
                    RawFrameKind::Python { code, instruction, entered_from_native: flag }
                }
                None => unreachable!(),
            },
            SCRIPT => RawFrameKind::Script { source: (self.0 >> SOURCE_SHIFT) as u8, word: self.0 & Self::MAX_WORD },
            LABEL => match BlobId::new(self.0 as u32) {
                Some(label) => RawFrameKind::Label(label),
                None => unreachable!(),
            },
            _ => RawFrameKind::Native(CodeAddress::from_bits(self.0)),
        }
    }

    /// The word.
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// The inverse of [`RawFrame::to_bits`]; `None` if these bits are no frame's.
    #[expect(clippy::cast_possible_truncation, reason = "the code is the lower half of what is left")]
    pub const fn from_bits(bits: u64) -> Option<Self> {
        let is_frame = match bits & KIND_MASK {
            PYTHON => (bits >> CODE_SHIFT) as u32 != 0,
            SCRIPT => bits & FLAG == 0,
            LABEL => (bits ^ LABEL) >> 32 == 0 && bits as u32 != 0,
            _ => true,
        };
        if is_frame { Some(Self(bits)) } else { None }
    }
}

impl From<CodeAddress> for RawFrame {
    fn from(address: CodeAddress) -> Self {
        Self::native(address)
    }
}

impl fmt::Debug for RawFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind() {
            RawFrameKind::Native(address) => address.fmt(f),
            RawFrameKind::Python { code, instruction, entered_from_native } => {
                let entry = if entered_from_native { "^" } else { "" };
                write!(f, "py:{entry}{}+{instruction}", code.get())
            }
            RawFrameKind::Script { source, word } => write!(f, "script{source}:{word:#x}"),
            RawFrameKind::Label(label) => write!(f, "label:{}", label.get()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(number: u32) -> CodeId {
        CodeId::new(number).unwrap()
    }

    /// One of each kind, with every field at both ends.
    fn frames() -> Vec<RawFrame> {
        let mut frames = Vec::new();
        for address in [0, 1, 0x7fff_1234_5678, (1 << 57) - 1] {
            frames.push(RawFrame::native(CodeAddress::return_address(address)));
            frames.push(RawFrame::native(CodeAddress::instruction_pointer(address)));
        }
        for (number, instruction) in [(1, 0), (1, RawFrame::MAX_INSTRUCTION), (u32::MAX, 0), (u32::MAX, 6)] {
            frames.push(RawFrame::python(code(number), instruction, false));
            frames.push(RawFrame::python(code(number), instruction, true));
        }
        for (source, word) in [(0, 0), (0, RawFrame::MAX_WORD), (u8::MAX, 0), (u8::MAX, 5)] {
            frames.push(RawFrame::script(source, word));
        }
        frames.extend([1, u32::MAX].map(|number| RawFrame::label(BlobId::new(number).unwrap())));
        frames
    }

    #[test]
    fn every_frame_comes_back_from_its_word() {
        for frame in frames() {
            assert_eq!(RawFrame::from_bits(frame.to_bits()), Some(frame));
            let again = match frame.kind() {
                RawFrameKind::Native(address) => RawFrame::native(address),
                RawFrameKind::Python { code, instruction, entered_from_native } => {
                    RawFrame::python(code, instruction, entered_from_native)
                }
                RawFrameKind::Script { source, word } => RawFrame::script(source, word),
                RawFrameKind::Label(label) => RawFrame::label(label),
            };
            assert_eq!(again, frame);
        }
    }

    #[test]
    fn different_frames_have_different_words() {
        let mut words: Vec<u64> = frames().into_iter().map(RawFrame::to_bits).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), frames().len());
        assert_eq!(size_of::<RawFrame>(), 8);
    }

    #[test]
    fn a_native_frame_is_its_address_unchanged() {
        let address = CodeAddress::instruction_pointer(0x7fff_1234_5678);
        assert_eq!(RawFrame::from(address).to_bits(), address.to_bits());
        assert_eq!(RawFrame::from(address).kind(), RawFrameKind::Native(address));
    }

    #[test]
    fn what_does_not_fit_is_cut_and_harms_no_other_field() {
        let far = RawFrame::python(code(9), u32::MAX, false);
        assert_eq!(far, RawFrame::python(code(9), RawFrame::MAX_INSTRUCTION, false));
        assert_eq!(RawFrame::script(3, u64::MAX), RawFrame::script(3, RawFrame::MAX_WORD));
        let garbage = RawFrame::native(CodeAddress::from_bits(u64::MAX));
        assert!(matches!(garbage.kind(), RawFrameKind::Native(_)));
    }

    #[test]
    fn words_of_no_frame_are_refused() {
        for bits in [LABEL, u64::MAX, LABEL | FLAG | 5, LABEL | 1 << 32, PYTHON, PYTHON | FLAG | 5, SCRIPT | FLAG] {
            assert_eq!(RawFrame::from_bits(bits), None, "{bits:#x}");
        }
    }

    #[test]
    fn frames_print_what_they_are() {
        let shown = [
            RawFrame::native(CodeAddress::return_address(0x40)),
            RawFrame::python(code(12), 34, true),
            RawFrame::script(2, 0x1f),
            RawFrame::label(BlobId::new(8).unwrap()),
        ]
        .map(|frame| format!("{frame:?}"));
        assert_eq!(shown, ["ra:0x40", "py:^12+34", "script2:0x1f", "label:8"]);
    }
}

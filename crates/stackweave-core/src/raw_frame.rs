//! A frame as capture records it: one word, which is named later.

use core::fmt;

use crate::{BlobId, CodeAddress, CodeId};

/// A frame in one word. Frames with equal words are the same location in code.
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

/// The meaning of a [`RawFrame`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RawFrameKind {
    /// A location in machine code.
    Native(CodeAddress),
    /// A location in a Python code object.
    Python {
        /// The code object.
        code: CodeId,
        /// The offset of the instruction in its bytecode, at most [`RawFrame::MAX_INSTRUCTION`].
        instruction: u32,
        /// Whether native code entered this frame, and not another Python frame.
        entered_from_native: bool,
    },
    /// A location in another interpreter's code.
    Script {
        /// The number of its frame source.
        source: u8,
        /// The source's word for the location, at most [`RawFrame::MAX_WORD`].
        word: u64,
    },
    /// A name that the user gave to a part of the program, which is not a location in code.
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
    /// The last instruction offset that fits; greater ones are stored as this one.
    pub const MAX_INSTRUCTION: u32 = (1 << CODE_SHIFT) - 1;
    /// The greatest word of a script frame; the high bits of greater ones are dropped.
    pub const MAX_WORD: u64 = (1 << SOURCE_SHIFT) - 1;

    /// Creates a frame of machine code.
    pub const fn native(address: CodeAddress) -> Self {
        Self(address.to_bits() & !KIND_MASK)
    }

    /// Creates a frame of a Python code object. `entered_from_native`: native code, not another Python frame,
    /// entered it.
    pub const fn python(code: CodeId, instruction: u32, entered_from_native: bool) -> Self {
        let instruction = if instruction > Self::MAX_INSTRUCTION { Self::MAX_INSTRUCTION } else { instruction };
        let flag = if entered_from_native { FLAG } else { 0 };
        Self(flag | PYTHON | (code.get() as u64) << CODE_SHIFT | instruction as u64)
    }

    /// Creates a frame of the interpreter whose frame source has the number `source`.
    pub const fn script(source: u8, word: u64) -> Self {
        Self(SCRIPT | (source as u64) << SOURCE_SHIFT | (word & Self::MAX_WORD))
    }

    /// Creates a frame for a name in the table of labels.
    pub const fn label(label: BlobId) -> Self {
        Self(LABEL | label.get() as u64)
    }

    /// Returns its meaning.
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

    /// Returns the word.
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// Converts the result of [`RawFrame::to_bits`] back; `None` if these bits do not represent a frame.
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

    /// Returns frames of each kind, with every field at both limits.
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
    fn every_frame_can_be_restored_from_its_word() {
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
    fn too_large_values_are_cut_and_change_no_other_field() {
        let far = RawFrame::python(code(9), u32::MAX, false);
        assert_eq!(far, RawFrame::python(code(9), RawFrame::MAX_INSTRUCTION, false));
        assert_eq!(RawFrame::script(3, u64::MAX), RawFrame::script(3, RawFrame::MAX_WORD));
        let garbage = RawFrame::native(CodeAddress::from_bits(u64::MAX));
        assert!(matches!(garbage.kind(), RawFrameKind::Native(_)));
    }

    #[test]
    fn invalid_words_are_refused() {
        for bits in [LABEL, u64::MAX, LABEL | FLAG | 5, LABEL | 1 << 32, PYTHON, PYTHON | FLAG | 5, SCRIPT | FLAG] {
            assert_eq!(RawFrame::from_bits(bits), None, "{bits:#x}");
        }
    }

    #[test]
    fn debug_output_describes_the_frame() {
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

//! A call as a tracer records it: one word, which is named later.

use core::fmt;

use crate::{BlobId, CodeId, RawFrame, RawFrameKind};

/// The callee of a call and its call site, in one word. Never 0.
///
/// ```text
///   63      62                   40 39                  16 15              0
/// +-------+-----------------------+----------------------+-----------------+
/// | label |    callee (23 bits)   |   caller (24 bits)   | unit (16 bits)  |
/// +-------+-----------------------+----------------------+-----------------+
/// ```
///
/// The callee is a Python code object, or a label: the name of a native function or of a span. The caller is a
/// Python code object or 0, and the unit is the index of the two-byte code unit that makes the call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Call(u64);

const LABEL: u64 = 1 << 63;
const CALLEE_SHIFT: u32 = 40;
const CALLEE_LIMIT: u32 = 1 << 23;
const CALLER_SHIFT: u32 = 16;
const CALLER_LIMIT: u32 = 1 << 24;
const UNIT_MASK: u64 = (1 << CALLER_SHIFT) - 1;

impl Call {
    /// The last code unit that fits. Units beyond it are stored as this one and shown as the first line of the
    /// caller.
    pub const LAST_UNIT: u32 = (1 << CALLER_SHIFT) - 1;

    /// Creates a call of a Python function; `None` if the number of its code object does not fit.
    #[inline]
    pub const fn to_code(callee: CodeId) -> Option<Self> {
        if callee.get() < CALLEE_LIMIT { Some(Self((callee.get() as u64) << CALLEE_SHIFT)) } else { None }
    }

    /// Creates a call of something with a name; `None` if the number of the label does not fit.
    #[inline]
    pub const fn to_label(callee: BlobId) -> Option<Self> {
        if callee.get() < CALLEE_LIMIT { Some(Self(LABEL | (callee.get() as u64) << CALLEE_SHIFT)) } else { None }
    }

    /// Adds the call site: this code unit of this code object. Returns the call unchanged if the number of the
    /// code object does not fit.
    #[inline]
    #[must_use]
    pub const fn from(self, caller: CodeId, unit: u32) -> Self {
        if caller.get() >= CALLER_LIMIT {
            return self;
        }
        let unit = if unit > Self::LAST_UNIT { Self::LAST_UNIT } else { unit };
        Self(self.callee_bits() | (caller.get() as u64) << CALLER_SHIFT | unit as u64)
    }

    /// Returns the callee: a code object at its first line, or a label.
    pub const fn callee(self) -> RawFrame {
        let number = (self.0 >> CALLEE_SHIFT) as u32 & (CALLEE_LIMIT - 1);
        if self.0 & LABEL != 0 {
            match BlobId::new(number) {
                Some(label) => RawFrame::label(label),
                None => unreachable!(),
            }
        } else {
            match CodeId::new(number) {
                Some(code) => RawFrame::python(code, RawFrame::MAX_INSTRUCTION, false),
                None => unreachable!(),
            }
        }
    }

    /// Returns the call site, if it is known.
    #[expect(clippy::cast_possible_truncation, reason = "each field is shifted down and cut to its width")]
    pub const fn caller(self) -> Option<RawFrame> {
        let unit = (self.0 & UNIT_MASK) as u32;
        let instruction = if unit == Self::LAST_UNIT { RawFrame::MAX_INSTRUCTION } else { 2 * unit };
        match CodeId::new((self.0 >> CALLER_SHIFT) as u32 & (CALLER_LIMIT - 1)) {
            Some(code) => Some(RawFrame::python(code, instruction, false)),
            None => None,
        }
    }

    /// Returns the word.
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// Converts the result of [`Call::to_bits`] back; `None` if these bits do not represent a call.
    pub const fn from_bits(bits: u64) -> Option<Self> {
        if (bits & !LABEL) >> CALLEE_SHIFT == 0 { None } else { Some(Self(bits)) }
    }

    const fn callee_bits(self) -> u64 {
        self.0 >> CALLEE_SHIFT << CALLEE_SHIFT
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.callee().kind() {
            RawFrameKind::Python { code, .. } => write!(f, "call:{}", code.get())?,
            _ => self.callee().fmt(f)?,
        }
        match self.caller() {
            Some(caller) => write!(f, "<{caller:?}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(number: u32) -> CodeId {
        CodeId::new(number).unwrap()
    }

    #[test]
    fn a_call_returns_its_callee_and_call_site() {
        for callee in [1, 77, CALLEE_LIMIT - 1] {
            for (caller, unit) in [(1, 0), (5, 3), (CALLER_LIMIT - 1, Call::LAST_UNIT - 1)] {
                let (to_code, to_label) = (Call::to_code(code(callee)).unwrap(), BlobId::new(callee).unwrap());
                let call = to_code.from(code(9), 1).from(code(caller), unit);
                assert_eq!(call.callee(), RawFrame::python(code(callee), RawFrame::MAX_INSTRUCTION, false));
                assert_eq!(call.caller(), Some(RawFrame::python(code(caller), 2 * unit, false)));
                assert_eq!((to_code.caller(), Call::from_bits(call.to_bits())), (None, Some(call)));
                let call = Call::to_label(to_label).unwrap().from(code(caller), unit);
                assert_eq!((call.callee(), Call::from_bits(call.to_bits())), (RawFrame::label(to_label), Some(call)));
            }
        }
    }

    #[test]
    fn parts_that_do_not_fit_are_omitted() {
        assert_eq!((Call::to_code(code(CALLEE_LIMIT)), Call::to_label(BlobId::new(u32::MAX).unwrap())), (None, None));
        let call = Call::to_code(code(3)).unwrap();
        assert_eq!(call.from(code(CALLER_LIMIT), 7), call);
        let far = RawFrame::python(code(4), RawFrame::MAX_INSTRUCTION, false);
        assert_eq!(call.from(code(4), u32::MAX).caller(), Some(far));
    }

    #[test]
    fn invalid_words_are_refused() {
        for bits in [0, 1, LABEL, LABEL | 5, (1 << CALLEE_SHIFT) - 1] {
            assert_eq!(Call::from_bits(bits), None, "{bits:#x}");
        }
    }

    #[test]
    fn debug_output_describes_the_call() {
        let call = Call::to_code(code(12)).unwrap();
        let label = Call::to_label(BlobId::new(8).unwrap()).unwrap();
        let shown = [call, call.from(code(3), 4), label].map(|call| format!("{call:?}"));
        assert_eq!(shown, ["call:12", "call:12<py:3+8", "label:8"]);
    }
}

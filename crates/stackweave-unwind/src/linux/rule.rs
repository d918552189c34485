//! One frame's step as one word.
//!
//! Nearly every row of an unwind table states the same: the canonical frame address (CFA), the return address just
//! below it, and whether the frame pointer was saved. That fits in a word, so a cache entry is two words and a
//! step is a handful of instructions. Other rows are [`RuleKind::General`] and need the general evaluator.

/// The rule for the caller of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum RuleKind {
    /// `cfa = sp + offset`
    Sp = 0,
    /// `cfa = fp + offset`
    Fp = 1,
    /// `cfa = *(fp + offset)`, `fp = *(fp + fp_offset)`: code that has realigned its stack.
    FpDeref = 2,
    /// The outermost frame: it has no caller.
    End = 3,
    /// The row needs the general evaluator.
    General = 4,
    /// The module has no unwind entry here: frame pointers may help.
    NoEntry = 5,
    /// The address is in no module: it is looked up again each time, because code may be loaded there.
    NoModule = 6,
}

const RULE_KINDS: [RuleKind; 7] = [
    RuleKind::Sp,
    RuleKind::Fp,
    RuleKind::FpDeref,
    RuleKind::End,
    RuleKind::General,
    RuleKind::NoEntry,
    RuleKind::NoModule,
];

/// A packed step: bits 0..32 contain the CFA offset, 32..48 the offset of the saved frame pointer (from the CFA,
/// or from the frame pointer for [`RuleKind::FpDeref`]; 0: not saved), 48..51 the kind, and 52..64 a tag for the
/// code that stores the rule.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Rule(u64);

/// The width of the field for [`Rule::with_tag`].
pub(crate) const TAG_BITS: u32 = 12;
const TAG_SHIFT: u32 = 64 - TAG_BITS;

impl Rule {
    /// Creates a rule without offsets.
    pub(crate) const fn of(kind: RuleKind) -> Self {
        Self((kind as u64) << 48)
    }

    /// Creates a rule with offsets, or [`RuleKind::General`] if they do not fit or the saved frame pointer would
    /// not be inside the frame, so that the hot loop need not check this again.
    pub(crate) fn with_offsets(kind: RuleKind, cfa: i64, fp: i64) -> Self {
        let (Ok(cfa32), Ok(fp16)) = (i32::try_from(cfa), i16::try_from(fp)) else { return Self::of(RuleKind::General) };
        let inside = match kind {
            RuleKind::Sp => cfa >= 8 && (fp == 0 || (fp <= -16 && cfa + fp >= 0)),
            RuleKind::Fp => fp <= 0 && (fp == 0 || fp <= -16),
            _ => true,
        };
        if !inside {
            return Self::of(RuleKind::General);
        }
        Self(u64::from(cfa32.cast_unsigned()) | u64::from(fp16.cast_unsigned()) << 32 | (kind as u64) << 48)
    }

    /// Returns the frame-pointer step: the caller's frame pointer is at `*fp`, the return address above it.
    pub(crate) fn frame_pointer() -> Self {
        Self::with_offsets(RuleKind::Fp, 16, -16)
    }

    #[inline(always)]
    pub(crate) fn kind(self) -> RuleKind {
        RULE_KINDS[(self.0 >> 48 & 7) as usize % RULE_KINDS.len()]
    }

    /// Returns whether the step is [`RuleKind::Sp`] or [`RuleKind::Fp`].
    #[inline(always)]
    pub(crate) fn is_plain(self) -> bool {
        self.0 >> 48 & 6 == 0
    }

    /// Returns whether the CFA of a plain step is relative to the frame pointer.
    #[inline(always)]
    pub(crate) fn counts_from_fp(self) -> bool {
        self.0 >> 48 & 1 != 0
    }

    /// Returns the CFA offset, sign-extended for wrapping addition.
    #[inline(always)]
    pub(crate) fn cfa_offset(self) -> u64 {
        i64::from(self.0 as u32 as i32).cast_unsigned()
    }

    /// Returns the offset of the saved frame pointer, sign-extended; 0 when it was not saved.
    #[inline(always)]
    pub(crate) fn fp_offset(self) -> u64 {
        i64::from((self.0 >> 32) as u16 as i16).cast_unsigned()
    }

    /// Returns the tag, times 16.
    #[inline(always)]
    pub(crate) fn tag_times_16(self) -> usize {
        (self.0 >> 48 & 0xfff0) as usize
    }

    /// Returns the rule with `tag`, of which the lowest [`TAG_BITS`] are used.
    #[inline(always)]
    pub(crate) fn with_tag(self, tag: usize) -> Self {
        Self(self.0 & !(u64::MAX << TAG_SHIFT) | (tag as u64) << TAG_SHIFT)
    }
}

impl core::fmt::Debug for Rule {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (cfa, fp) = (self.cfa_offset().cast_signed(), self.fp_offset().cast_signed());
        write!(f, "{:?}(cfa {cfa:+}, fp {fp:+})", self.kind())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_and_tag_are_packed_without_loss() {
        for kind in RULE_KINDS {
            for (cfa, fp) in [(8, 0), (16, -16), (4096, -64), (i64::from(i32::MAX), -32768)] {
                let rule = Rule::with_offsets(kind, cfa, fp);
                assert_eq!(rule.kind(), kind);
                assert_eq!((rule.cfa_offset().cast_signed(), rule.fp_offset().cast_signed()), (cfa, fp));
                let tagged = rule.with_tag(4095);
                assert_eq!((tagged.tag_times_16(), tagged.kind()), (4095 * 16, kind));
                assert_eq!(tagged.cfa_offset(), cfa.cast_unsigned());
                assert_eq!(tagged.with_tag(0), rule);
            }
        }
    }

    #[test]
    fn rules_that_do_not_fit_are_general() {
        for (kind, cfa, fp) in [
            (RuleKind::Sp, 1 << 40, 0),
            (RuleKind::Sp, 16, -40_000),
            (RuleKind::Sp, 0, 0),
            (RuleKind::Sp, 16, -24),
            (RuleKind::Fp, 16, -8),
        ] {
            assert_eq!(Rule::with_offsets(kind, cfa, fp).kind(), RuleKind::General, "{kind:?} {cfa} {fp}");
        }
    }
}

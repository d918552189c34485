//! Quantities over time.

use stackweave_core::FieldType;

use super::declare::family;
use super::layout::EventLayout;

family! { "Counters" {
    /// A quantity has this value from this event on.
    COUNTER = "counter": Counter(FRAME, VALUE);
} }

/// A value of a quantity from this event on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counter {
    /// The number of the frame that names it.
    pub frame: u32,
    /// Its value.
    pub value: f64,
}

impl Counter {
    /// Returns its value as a count; 0 if it is negative.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts are whole and not negative")]
    pub const fn unsigned(&self) -> u64 {
        self.value as u64
    }

    #[inline]
    #[expect(clippy::cast_precision_loss, reason = "charts do not need the precision")]
    pub(super) fn decode(layout: &EventLayout, words: &[u64]) -> Self {
        let word = layout.value.word(words);
        let value = match layout.value_type {
            FieldType::Float => f64::from_bits(word),
            FieldType::Signed => word.cast_signed() as f64,
            _ => word as f64,
        };
        Self { frame: layout.frame.number(words), value }
    }
}

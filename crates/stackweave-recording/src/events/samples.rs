//! Stacks that a sampler captured.

use super::declare::family;
use super::layout::EventLayout;

family! { "Samples" {
    /// The thread was on this stack.
    SAMPLE = "sample": Sample(STACK, WEIGHT);
} }

/// A sampled stack of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The number of the stack; 0 if it consists of the thread's open spans.
    pub stack: u32,
    /// The weight of the sample.
    pub weight: i64,
}

impl Sample {
    #[inline]
    pub(super) fn decode(layout: &EventLayout, words: &[u64]) -> Self {
        let weight = layout.value.get(words).map_or(1, u64::cast_signed);
        Self { stack: layout.stack.number(words), weight }
    }
}

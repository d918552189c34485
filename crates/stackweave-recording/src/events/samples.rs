//! Stacks that a sampler saw.

use super::declare::family;

family! { "Samples" {
    /// The thread was on this stack.
    SAMPLE = "sample": Sample(STACK, WEIGHT);
} }

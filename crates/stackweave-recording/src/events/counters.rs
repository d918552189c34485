//! Quantities over time.

use super::declare::family;

family! { "Counters" {
    /// A quantity has this value from now on.
    COUNTER = "counter": Counter(FRAME, VALUE);
} }

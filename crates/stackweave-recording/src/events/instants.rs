//! What happens and takes no time.

use super::declare::family;

family! { "Instants" {
    /// Something happens.
    INSTANT = "instant": Instant(FRAME, STACK);
    /// Something happens, and the program says more about it.
    INSTANT_WITH = "instant-with": Instant(FRAME, STACK, DETAILS);
} }

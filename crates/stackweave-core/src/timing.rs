//! The events of a timing recorder: phases that nest, and are not calls that an interpreter makes.
//!
//! | event | role | fields |
//! |---|---|---|
//! | [`EventKind::BEGIN`], [`EventKind::BEGIN_WITH`] | begin | frame (, stack, details) |
//! | [`EventKind::BEGIN_CODE`] | begin | frame, bytecode count, inline depth |
//! | [`EventKind::BEGIN_RUN`] | begin | frame, details |
//! | [`EventKind::END`], [`EventKind::END_WITH`] | end | (details) |
//! | [`EventKind::END_FAILED`] | end | details |
//! | [`EventKind::END_LEFT_OPEN`] | end | |
//! | [`EventKind::STILL_OPEN`] | open | frame, depth |
//! | [`EventKind::UNMATCHED_POP`] | instant | frame, stack |
//!
//! A frame is a label with the name, file and line that the phase was given.

use crate::event::{DETAILS, FRAME, STACK};
use crate::{EventKind, Field, FieldType, Role};

const fn number(name: &'static str) -> Field {
    Field::new(name, FieldType::Unsigned)
}

impl EventKind {
    /// A function is looked at that has so much bytecode, inlined so deep.
    pub const BEGIN_CODE: Self =
        Self::known("begin-code", Role::Begin, const { &[FRAME, number("bytecode_count"), number("inline_depth")] });
    /// Something begins that is told of in a row of its own: one compilation, one query.
    pub const BEGIN_RUN: Self = Self::known("begin-run", Role::Begin, const { &[FRAME, DETAILS] });
    /// What began last ends, and there is more to say about it, as a JSON object.
    pub const END_WITH: Self = Self::known("end-with", Role::End, const { &[DETAILS] });
    /// What began last has failed. What there is to say about it is a JSON object, or nothing.
    pub const END_FAILED: Self = Self::known("end-failed", Role::End, const { &[DETAILS] });
    /// What began last was left open when something around it ended.
    pub const END_LEFT_OPEN: Self = Self::known("end-left-open", Role::End, const { &[] });
    /// Something began before this recording, in the process that this one was forked from.
    pub const STILL_OPEN: Self = Self::known("still-open", Role::Open, const { &[FRAME, number("depth")] });
    /// An end came where nothing was open: it is left out, and this is in its place.
    pub const UNMATCHED_POP: Self = Self::known("unmatched-pop", Role::Instant, const { &[FRAME, STACK] });

    /// The kinds of a timing recorder that are not built in, in the order above.
    pub const TIMING: [Self; 7] = [
        Self::BEGIN_CODE,
        Self::BEGIN_RUN,
        Self::END_WITH,
        Self::END_FAILED,
        Self::END_LEFT_OPEN,
        Self::STILL_OPEN,
        Self::UNMATCHED_POP,
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kinds_keep_to_the_rules_and_have_names_of_their_own() {
        assert!(EventKind::TIMING.iter().all(EventKind::is_sound));
        let known = EventKind::TIMING.into_iter().chain(EventKind::BUILT_IN);
        let mut names: Vec<_> = known.map(|kind| kind.name).collect();
        names.sort();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}

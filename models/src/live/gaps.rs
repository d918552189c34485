//! Gaps in the events, which models do not count.

pub(super) fn add() {}

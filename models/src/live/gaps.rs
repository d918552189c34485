//! Where events may be missing: nobody asks in a model.

pub(super) fn add() {}

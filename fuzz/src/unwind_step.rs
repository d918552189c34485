//! Checks arbitrary bytes as unwind tables: see `stackweave_unwind::fuzzing`.

pub use stackweave_unwind::fuzzing::step as check_input;

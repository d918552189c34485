//! The text output: tables, trees, flame graphs, memory, phases and diffs.

mod devices;
mod diff;
mod flame;
mod heap;
mod phases;
mod tables;

use std::path::Path;

use stackweave_profile::{AggregateOptions, Profile, aggregate};
use stackweave_tapes::Tape;

fn profile_of(tape: Tape) -> Profile {
    aggregate(&[tape.process()], &AggregateOptions::default(), None, &mut |_| {}).unwrap().merged()
}

/// Compares a text with the file of this name. With `STACKWEAVE_GOLDEN` set, the file is written.
fn assert_golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("STACKWEAVE_GOLDEN").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(&path).unwrap(), "{name}");
}

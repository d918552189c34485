//! Interning: from a captured stack to an integer, and from a code object to its id.
//!
//! Stacks and code objects are generated. Stacks are laid out like the captures of a program: each has a few frames of
//! its own and shares the rest.

mod addresses;
mod blobs;
mod bytes;
mod code_objects;
mod interners;
mod known_stacks;
mod new_stacks;
mod rounds;
mod stacks;
mod two_threads;

use std::io::{self, Write};

use crate::options::{Effort, Options};
use crate::report::Case;

pub(crate) use rounds::share;

type Measure = fn(Effort, &mut dyn FnMut(Case) -> io::Result<()>) -> io::Result<()>;

/// Bench, description, and function of each measurement.
const MEASUREMENTS: [(&str, &str, Measure); 7] = [
    // This one is first, while the heap has no holes to fill.
    (bytes::BENCH, "memory", bytes::measure),
    (known_stacks::BENCH, "stacks that are known", known_stacks::measure),
    (new_stacks::BENCH, "stacks that are new", new_stacks::measure),
    (two_threads::BENCH, "two threads at once", two_threads::measure),
    (addresses::BENCH, "addresses that are known", addresses::measure),
    (blobs::KNOWN, "byte strings that are known", blobs::measure_known),
    (blobs::NEW, "byte strings that are new", blobs::measure_new),
];

pub(crate) fn run(options: &Options, done: &mut dyn FnMut(Case) -> io::Result<()>) -> io::Result<()> {
    for (bench, what, measure) in MEASUREMENTS {
        if bench.contains(&options.only) {
            writeln!(io::stderr(), "record: {what}")?;
            measure(options.effort, done)?;
        }
    }
    Ok(())
}

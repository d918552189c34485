//! Native stack capture: the time of one capture, in every state in which a program can leave the
//! caches.
//!
//! The method is the same for all: a chain of distinct C functions on a new thread; each unwinder
//! is compared with libgcc in the places where it is then timed; rounds are interleaved; the result
//! is a median.

mod cast;
mod changing_stack;
mod evicted;
mod ffi;
mod first_capture;
mod new_address;
mod new_rule;
mod no_reuse;
mod real_stack;
mod same_stack;
mod stage;
mod two_threads;

use std::io::{self, Write};

pub(crate) use first_capture::first_capture_here;

use crate::options::{Effort, Options};
use crate::peers::Unwinder;
use crate::report::Case;

/// Frames of the chain; the captured stacks are a few frames deeper.
const DEPTHS: [usize; 3] = [10, 30, 100];

type Measure = fn(&[Unwinder], Effort, &mut dyn FnMut(Case) -> io::Result<()>) -> io::Result<()>;

/// Bench, description, and function of each measurement.
const MEASUREMENTS: [(&str, &str, Measure); 9] = [
    ("native/same-stack", "same stack again and again", same_stack::measure),
    ("native/real-stack", "Python and torch", real_stack::measure),
    ("native/changing-stack", "changing stack", changing_stack::measure),
    ("native/no-reuse", "rules known, stack moved", no_reuse::measure),
    ("native/evicted", "caches evicted", evicted::measure),
    ("native/threads", "one and two threads", two_threads::measure),
    ("native/new-address", "addresses never seen", new_address::measure),
    ("native/new-rule", "one rule in a big library", new_rule::measure),
    ("native/first-capture", "first capture in a process", first_capture::measure),
];

pub(crate) fn run(
    unwinders: &[Unwinder],
    options: &Options,
    done: &mut dyn FnMut(Case) -> io::Result<()>,
) -> io::Result<()> {
    for (index, (bench, what, measure)) in MEASUREMENTS.iter().enumerate() {
        if !bench.contains(&options.only) {
            continue;
        }
        writeln!(io::stderr(), "[{}/{}] native: {what}", index + 1, MEASUREMENTS.len())?;
        measure(unwinders, options.effort, done)?;
    }
    Ok(())
}

//! Native stack capture: how long one capture takes, in every state a program can leave the caches in.
//!
//! The method is the same for all: a chain of distinct C functions on a fresh thread; every unwinder
//! compared with libgcc at the places where it is then timed; interleaved rounds; medians.

mod cast;
mod changing_stack;
mod evicted;
mod ffi;
mod first_capture;
mod new_address;
mod no_reuse;
mod same_stack;
mod stage;
mod two_threads;

use std::io::{self, Write};

pub(crate) use first_capture::first_capture_here;

use crate::options::Effort;
use crate::peers::Unwinder;
use crate::report::Case;

/// Frames of the chain; the captured stacks are a few frames deeper.
const DEPTHS: [usize; 3] = [10, 30, 100];

type Measure = fn(&[Unwinder], Effort, &mut dyn FnMut(Case) -> io::Result<()>) -> io::Result<()>;

const MEASUREMENTS: [(&str, Measure); 7] = [
    ("same stack again and again", same_stack::measure),
    ("changing stack", changing_stack::measure),
    ("rules known, stack moved", no_reuse::measure),
    ("caches evicted", evicted::measure),
    ("one and two threads", two_threads::measure),
    ("addresses never seen", new_address::measure),
    ("first capture in a process", first_capture::measure),
];

pub(crate) fn run(
    unwinders: &[Unwinder],
    effort: Effort,
    done: &mut dyn FnMut(Case) -> io::Result<()>,
) -> io::Result<()> {
    for (index, (what, measure)) in MEASUREMENTS.iter().enumerate() {
        writeln!(io::stderr(), "[{}/{}] native: {what}", index + 1, MEASUREMENTS.len())?;
        measure(unwinders, effort, done)?;
    }
    Ok(())
}

//! Interning stacks that are known: the cost of every capture except the first of each stack.

use std::io;

use super::interners;
use super::rounds::{case, samples, share};
use super::stacks::Stacks;
use crate::meter::thread_cpu_ns;
use crate::options::Effort;
use crate::report::Case;

pub(super) const BENCH: &str = "record/intern-known";

/// The number of stacks that take turns.
pub(super) const STACKS: usize = 500;
const PASSES: usize = 10;

pub(super) fn measure(effort: Effort, done: &mut dyn FnMut(Case) -> io::Result<()>) -> io::Result<()> {
    for depth in [20, 100] {
        let stacks = Stacks::new(depth).take(STACKS);
        let entrants = interners::all();
        for (_, interner) in &entrants {
            interner.intern_all(&stacks);
        }
        let samples = samples(&entrants, effort.pick(21, 101), |_, (_, interner)| {
            let start = thread_cpu_ns();
            for _ in 0..PASSES {
                interner.intern_all(&stacks);
            }
            Ok(share(thread_cpu_ns() - start, PASSES * STACKS))
        })?;
        done(case(BENCH, format!("depth {depth}"), Some(depth), &entrants, &samples))?;
    }
    Ok(())
}

//! Interning new stacks, with two frames that are in no other stack: the tree and its memory grow.

use std::io;

use super::interners;
use super::rounds::{case, samples, share};
use super::stacks::Stacks;
use crate::meter::thread_cpu_ns;
use crate::options::Effort;
use crate::report::Case;

pub(super) const BENCH: &str = "record/intern-new";

const STACKS: usize = 1000;

pub(super) fn measure(effort: Effort, done: &mut dyn FnMut(Case) -> io::Result<()>) -> io::Result<()> {
    for depth in [20, 100] {
        let rounds = effort.pick(11, 41);
        let mut stacks = Stacks::new(depth);
        let stacks: Vec<_> = (0..rounds).map(|_| stacks.take(STACKS)).collect();
        let entrants = interners::all();
        let samples = samples(&entrants, rounds, |round, (_, interner)| {
            let start = thread_cpu_ns();
            interner.intern_all(&stacks[round]);
            Ok(share(thread_cpu_ns() - start, STACKS))
        })?;
        done(case(BENCH, format!("depth {depth}"), Some(depth), &entrants, &samples))?;
    }
    Ok(())
}

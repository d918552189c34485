//! The memory that each stack needs, if two of its frames are in no other stack.

use std::{fs, io};

use super::interners;
use super::rounds::share;
use super::stacks::Stacks;
use crate::options::Effort;
use crate::report::{Case, Entry, Outcome};

pub(super) const BENCH: &str = "record/bytes-per-stack";

const PAGE: f64 = 4096.0;

pub(super) fn measure(effort: Effort, done: &mut dyn FnMut(Case) -> io::Result<()>) -> io::Result<()> {
    for (depth, count) in [(20, 20_000), (20, effort.pick(60_000, 200_000)), (100, 20_000)] {
        let stacks = Stacks::new(depth).take(count);
        let entrants = interners::all();
        let mut entries = Vec::new();
        // All interners live until the end, so that none reuses memory that another one has freed.
        for (peer, interner) in &entrants {
            // SAFETY: the call returns unused memory to the system, and touches no memory in use.
            unsafe { libc::malloc_trim(0) };
            let before = resident_pages()?;
            interner.intern_all(&stacks);
            let cost = share((resident_pages()? - before).max(0.0) * PAGE, count);
            entries.push(Entry { peer, outcome: Outcome::Measured { cost, frames: Some(depth) } });
        }
        done(Case { bench: BENCH, name: format!("{count} stacks, depth {depth}"), unit: "bytes", entries })?;
    }
    Ok(())
}

fn resident_pages() -> io::Result<f64> {
    let text = fs::read_to_string("/proc/self/statm")?;
    text.split(' ').nth(1).and_then(|pages| pages.parse().ok()).ok_or_else(|| io::Error::other("statm has changed"))
}

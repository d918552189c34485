//! The symbolizers, ours and the peers', behind one trait. Each runs in a separate process.

mod addr2line_crate;
mod backtrace_crate;
mod binutils;
mod blazesym;
mod llvm;
mod ours;
mod resolver;
mod tool;

use super::figures::Figures;
use super::job::{Chain, Job, Place, Report};
use crate::meter::{Spent, forget_peak};

/// A symbolizer under test.
trait Resolve: Sized {
    type Answers;

    /// Whether a repeated query may cost less than a new one.
    const REMEMBERS: bool = true;

    /// Does everything that is not timed. It reads nothing that the symbolizer would read.
    fn prepare(job: &Job) -> Result<Self, String>;

    /// Resolves each place to frames with demangled names, files and lines. The first call creates the symbolizer.
    fn resolve(&mut self, places: &[Place]) -> Result<Self::Answers, String>;

    fn chains(answers: &Self::Answers) -> Vec<Chain>;

    fn spent(&self) -> Spent {
        Spent::by_this_process()
    }
}

fn measure<R: Resolve>(job: &Job) -> Result<Report, String> {
    let mut contender = R::prepare(job)?;
    forget_peak();
    let start = contender.spent();
    let first = contender.resolve(&job.first)?;
    let after_first = contender.spent();
    let next = contender.resolve(&job.next)?;
    let after_next = contender.spent();
    let again = if R::REMEMBERS { Some(contender.resolve(&job.next)?) } else { None };
    let after_again = contender.spent();
    let figures = Figures {
        first_ms: after_first.cpu_ms - start.cpu_ms,
        next_ms: after_next.cpu_ms - after_first.cpu_ms,
        again_ms: again.as_ref().map(|_| after_again.cpu_ms - after_next.cpu_ms),
        peak_mb: after_next.peak_mb - start.peak_mb,
    };
    drop((first, again));
    Ok(Report { figures, chains: R::chains(&next) })
}

/// One symbolizer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contender {
    pub(super) name: &'static str,
    /// Describes what exactly is measured, or why that is not possible.
    pub(super) version: fn() -> Result<String, String>,
    pub(super) measure: fn(&Job) -> Result<Report, String>,
    /// Whether it resolves addresses of several files in one call.
    pub(super) many_modules: bool,
    /// Whether it sees only what its own process has loaded.
    pub(super) in_process_only: bool,
    /// Whether it takes seconds, so that it gets fewer rounds.
    pub(super) is_slow: bool,
}

/// All symbolizers, ours first. The last one judges the others.
pub(super) const ALL: [Contender; 6] = [
    ours::CONTENDER,
    blazesym::CONTENDER,
    addr2line_crate::CONTENDER,
    backtrace_crate::CONTENDER,
    binutils::CONTENDER,
    llvm::CONTENDER,
];

/// Returns the symbolizers that can resolve several files. Ours gets whole stacks here; the others get the addresses.
pub(super) fn of_stacks() -> Vec<Contender> {
    let peers = ALL[1..].iter().copied().filter(|contender| contender.many_modules);
    [resolver::CONTENDER, ours::ADDRESSES].into_iter().chain(peers).collect()
}

/// The symbolizer whose names count as correct.
pub(super) const JUDGE: &str = llvm::CONTENDER.name;

pub(super) fn one(name: &str) -> Option<Contender> {
    ALL.into_iter().chain(of_stacks()).find(|contender| contender.name == name)
}

/// Groups places by module, so that those of one module are resolved together. Returns for each group the positions of
/// its places.
fn by_module(places: &[Place], modules: usize) -> Vec<(usize, Vec<usize>)> {
    let mut groups = vec![Vec::new(); modules];
    for (position, place) in places.iter().enumerate() {
        groups[place.module].push(position);
    }
    groups.into_iter().enumerate().filter(|(_, positions)| !positions.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_their_contenders() {
        for contender in ALL.into_iter().chain(of_stacks()) {
            assert_eq!(one(contender.name).map(|found| found.name), Some(contender.name));
        }
        assert!(one("missing").is_none());
        assert!(one(JUDGE).is_some());
    }

    #[test]
    fn places_are_grouped_with_their_positions() {
        let place = |module| Place { module, address: 1 };
        let groups = by_module(&[place(2), place(0), place(2)], 3);
        assert_eq!(groups, [(0, vec![1]), (2, vec![0, 2])]);
    }
}

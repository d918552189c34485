//! One file: the time for the first address, for 1,000 more, for the same again, and the memory.

use std::io;

use super::contenders;
use super::figures::Figures;
use super::job::{Job, Place};
use super::libraries::Library;
use super::rounds;
use crate::options::Effort;
use crate::report::Case;

const ADDRESSES: usize = 1000;

type Pick = fn(&Figures) -> Option<f64>;

/// Bench, unit, and the figure that it shows.
pub(super) const BENCHES: [(&str, &str, Pick); 4] = [
    ("symbolize/first", "ms", |figures| Some(figures.first_ms)),
    ("symbolize/next-1000", "ms", |figures| Some(figures.next_ms)),
    ("symbolize/again-1000", "ms", |figures| figures.again_ms),
    ("symbolize/peak-memory", "MB", |figures| Some(figures.peak_mb)),
];

pub(super) fn measure(
    library: &Library,
    effort: Effort,
    done: &mut dyn FnMut(Case) -> io::Result<()>,
) -> io::Result<()> {
    library.warm_up()?;
    let addresses = library.functions.addresses(ADDRESSES + 1).into_iter();
    let mut places = addresses.map(|address| Place { module: 0, address }).collect::<Vec<_>>();
    let next = places.split_off(1);
    let job = Job { modules: vec![library.path.clone()], first: places, next, ..Job::default() };
    let round = rounds::measure(&job, &contenders::ALL, effort)?;
    for (bench, unit, pick) in BENCHES {
        let entries = round.taken.iter().map(|taken| taken.entry(unit, pick)).collect();
        done(Case { bench, name: library.describe(), unit, entries })?;
    }
    Ok(())
}

//! Many stacks with few distinct frames, over the libraries of a process, as a profiler resolves them at its end.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use super::contenders;
use super::job::{Job, Place};
use super::libraries::Libraries;
use super::rounds::{self, Taken};
use super::{loaded, sample};
use crate::options::Effort;
use crate::report::Case;

pub(super) const BENCH: &str = "symbolize/tracebacks";

const FRAMES: usize = 14_310;
const UNIQUE: usize = 330;
const DEPTH: usize = 48;

pub(super) fn measure(
    libraries: &Libraries,
    effort: Effort,
    done: &mut dyn FnMut(Case) -> io::Result<()>,
) -> io::Result<()> {
    let (modules, unique) = frames(libraries);
    let mut random = sample::Random::new();
    let repeated = (unique.len()..FRAMES).map(|_| unique[random.below(unique.len())]);
    let next = unique.iter().copied().chain(repeated).collect::<Vec<_>>();
    let name = format!("{} frames, {} unique, {} modules", next.len(), unique.len(), modules.len());
    let depths = next.chunks(DEPTH).map(<[Place]>::len).collect();
    let job = Job { modules, next, depths, ..Job::default() };
    let round = rounds::measure(&job, &contenders::of_stacks(), effort)?;
    cases(BENCH, &name, &round.taken).into_iter().try_for_each(done)
}

/// Returns the cases of the first resolve, of the repeated one, and of the memory.
pub(super) fn cases(bench: &'static str, name: &str, taken: &[Taken]) -> Vec<Case> {
    let cold = taken.iter().map(|taken| taken.entry("ms", |figures| Some(figures.first_ms + figures.next_ms)));
    let again = taken.iter().map(|taken| taken.entry("ms", |figures| figures.again_ms));
    let peak = taken.iter().map(|taken| taken.entry("MB", |figures| Some(figures.peak_mb)));
    vec![
        Case { bench, name: format!("cold, {name}"), unit: "ms", entries: cold.collect() },
        Case { bench, name: format!("again, {name}"), unit: "ms", entries: again.collect() },
        Case { bench, name: format!("peak memory, {name}"), unit: "MB", entries: peak.collect() },
    ]
}

/// The files that every process of this program has loaded, with or without peers. The libraries of peers are left out:
/// they have many functions without a name, for which the judge returns a neighbour's.
const ALWAYS_LOADED: [&str; 5] = ["stackweave-bench", "libc.so", "libm.so", "libgcc_s.so", "ld-linux"];

/// Returns the modules of this process with libstdc++ and libpython, and the same number of frames in each.
fn frames(libraries: &Libraries) -> (Vec<PathBuf>, Vec<Place>) {
    let also = [&libraries.libstdcxx, &libraries.libpython].into_iter().flatten().map(|library| library.path.clone());
    let is_always_loaded = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        ALWAYS_LOADED.iter().any(|start| name.starts_with(start))
    };
    let here = loaded::here().into_iter().map(|file| file.path).filter(is_always_loaded);
    let paths = here.chain(also).collect::<BTreeSet<_>>();
    let modules = paths.into_iter().filter_map(|path| Some((sample::functions(&path)?, path))).collect::<Vec<_>>();
    let share = UNIQUE.div_ceil(modules.len().max(1));
    let mut places = Vec::new();
    for (module, (functions, _)) in modules.iter().enumerate() {
        places.extend(functions.addresses(share).into_iter().map(|address| Place { module, address }));
    }
    places.truncate(UNIQUE);
    (modules.into_iter().map(|(_, path)| path).collect(), places)
}

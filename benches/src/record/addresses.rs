//! Look-ups of code object addresses that are known: the cost of identifying the Python frames in every capture.

use std::hint::black_box;
use std::io;
use std::sync::{Mutex, PoisonError, RwLock};

use rustc_hash::FxHashMap;
use stackweave_store::AddressMap;

use super::code_objects::CodeObjects;
use super::rounds::{Entrant, case, samples, share};
use crate::meter::thread_cpu_ns;
use crate::options::Effort;
use crate::report::Case;

pub(super) const BENCH: &str = "record/address-known";

/// The number of code objects that are known.
const OBJECTS: usize = 5000;
/// The number of stacks that take turns.
const STACKS: usize = 50;
const PASSES: usize = 40;

pub(super) fn measure(effort: Effort, done: &mut dyn FnMut(Case) -> io::Result<()>) -> io::Result<()> {
    let mut objects = CodeObjects::new();
    let known = objects.addresses(OBJECTS);
    let entrants = entrants(&known);
    for depth in [20, 100] {
        let mut pick = |count: usize| -> Vec<u64> {
            (0..count)
                .filter_map(|_| known.get(usize::try_from(objects.below(OBJECTS as u64)).ok()?).copied())
                .collect()
        };
        let same = vec![pick(depth); STACKS];
        let others: Vec<Vec<u64>> = (0..STACKS).map(|_| pick(depth)).collect();
        for (name, stacks) in [("one stack", &same), ("50 stacks", &others)] {
            let samples = samples(&entrants, effort.pick(21, 101), |_, (_, entrant)| {
                let start = thread_cpu_ns();
                for _ in 0..PASSES {
                    entrant.look_up_all(stacks);
                }
                Ok(share(thread_cpu_ns() - start, PASSES * STACKS))
            })?;
            done(case(BENCH, format!("{depth} addresses, {name}"), Some(depth), &entrants, &samples))?;
        }
    }
    Ok(())
}

/// A map from addresses to numbers.
trait Lookup {
    /// Returns the sum of the numbers of a stack's addresses.
    fn look_up(&self, stack: &[u64]) -> u32;

    /// Looks up all stacks. The loop is in the trait so that it is compiled for each type, without indirect calls.
    fn look_up_all(&self, stacks: &[Vec<u64>]) {
        for stack in stacks {
            black_box(self.look_up(black_box(stack)));
        }
    }
}

/// Returns all contenders, filled with these addresses; ours first.
fn entrants(known: &[u64]) -> Vec<Entrant<dyn Lookup>> {
    let ours = AddressMap::new();
    let map: Map = known.iter().copied().zip(1..).collect();
    for (address, number) in &map {
        ours.insert(*address, *number);
    }
    vec![
        ("ours", Box::new(ours)),
        ("map, read lock", Box::new(RwLock::new(map.clone()))),
        ("map, lock", Box::new(Mutex::new(map.clone()))),
        ("map, one thread", Box::new(map)),
        ("sum", Box::new(Sum)),
    ]
}

type Map = FxHashMap<u64, u32>;

impl Lookup for AddressMap {
    fn look_up(&self, stack: &[u64]) -> u32 {
        stack.iter().filter_map(|address| self.get(*address)).fold(0, u32::wrapping_add)
    }
}

/// Uses no lock, so only one thread may use it.
impl Lookup for Map {
    fn look_up(&self, stack: &[u64]) -> u32 {
        stack.iter().filter_map(|address| self.get(address)).fold(0, |sum, number| sum.wrapping_add(*number))
    }
}

/// Acquires the lock once for each stack.
impl Lookup for RwLock<Map> {
    fn look_up(&self, stack: &[u64]) -> u32 {
        self.read().unwrap_or_else(PoisonError::into_inner).look_up(stack)
    }
}

/// Acquires the lock once for each stack.
impl Lookup for Mutex<Map> {
    fn look_up(&self, stack: &[u64]) -> u32 {
        self.lock().unwrap_or_else(PoisonError::into_inner).look_up(stack)
    }
}

/// The least work that reads all addresses: a lower limit, not a peer.
struct Sum;

impl Lookup for Sum {
    #[expect(clippy::cast_possible_truncation, reason = "any number will do")]
    fn look_up(&self, stack: &[u64]) -> u32 {
        stack.iter().fold(0, |sum, address| sum.wrapping_add(black_box(*address) as u32))
    }
}

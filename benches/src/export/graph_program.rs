//! A program of 200 functions, each of which takes enough time to appear in a call graph.
//!
//! The functions are in layers of ten. Each calls two functions of the next layer. Every third also calls one of the
//! layer after that, and every tenth calls itself. A walk starts at the only function of the top layer and chooses
//! pseudo-random callees, the same in every run.

use std::hint::black_box;
use std::io;
use std::path::Path;

use stackweave_core::RawFrame;
use stackweave_recording::Recorder;

use crate::recording::calls;

pub(super) const FUNCTIONS: usize = 200;
const LAYER: usize = 10;
const WALKS: u64 = 5_000;
/// The work of the last function of a walk: enough to take longer than the calls to it.
const WORK: usize = 1_000;

/// Records `WALKS` walks.
pub(super) fn write(path: &Path) -> io::Result<()> {
    let name = |number| stackweave_store::label(&format!("Module{}.function_{number}", number % 7), "graph.py", 1);
    let names = (0..FUNCTIONS).map(name).collect::<Option<Vec<_>>>();
    let names = names.ok_or_else(|| io::Error::other("no memory for names"))?;
    let recorder = calls::start(path)?;
    for walk in 0..WALKS {
        Walk { recorder: &recorder, names: &names, state: walk }.call(0);
    }
    calls::stop(&recorder)
}

struct Walk<'a> {
    recorder: &'a Recorder,
    names: &'a [RawFrame],
    state: u64,
}

impl Walk<'_> {
    fn call(&mut self, function: usize) {
        self.recorder.begin(self.names[function]);
        let chance = self.chance();
        let next = callees(function);
        if let Some(&callee) = next.get(chance % next.len().max(1)) {
            self.call(callee);
        } else {
            for _ in 0..WORK {
                black_box(self.chance());
            }
        }
        self.recorder.end();
    }

    fn chance(&mut self) -> usize {
        self.state = self.state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.state >> 33) as usize
    }
}

/// Returns the functions that a function may call. A function of the last layer calls none.
fn callees(function: usize) -> Vec<usize> {
    let below = (function / LAYER + 1) * LAYER;
    let place = function % LAYER;
    if function == 0 {
        return (1..LAYER).chain([LAYER]).collect();
    }
    if below >= FUNCTIONS {
        return Vec::new();
    }
    let mut callees = vec![below + place, below + (3 * place + 1) % LAYER];
    if function.is_multiple_of(3) && below + LAYER < FUNCTIONS {
        callees.push(below + LAYER + (7 * place + 2) % LAYER);
    }
    if function.is_multiple_of(10) {
        callees.push(function);
    }
    callees
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_is_called_by_some_other() {
        let is_called =
            |function: &usize| (0..FUNCTIONS).any(|caller| caller != *function && callees(caller).contains(function));
        let uncalled = (0..FUNCTIONS).filter(|function| !is_called(function)).collect::<Vec<_>>();
        assert_eq!(uncalled, [0]);
        assert!((0..FUNCTIONS).flat_map(callees).all(|callee| callee < FUNCTIONS));
    }
}

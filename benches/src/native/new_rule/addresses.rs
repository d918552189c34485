//! Random addresses in a library's code, the same in every run.

use std::collections::HashSet;

use gimli::Error;

use super::by_gimli::{self, Tables};
use super::made_up_stack::MadeUpStack;

/// An address, with the results that any unwinder must find for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Address {
    pub(super) pc: u64,
    pub(super) function: u64,
    /// The stack slot of the made-up frame's return address.
    pub(super) slot: u64,
}

#[derive(Debug)]
pub(super) struct Picked {
    pub(super) addresses: Vec<Address>,
    /// The number of addresses that were skipped, because a step from them needs more than a made-up frame has.
    pub(super) passed_over: usize,
}

/// Picks `count` different addresses: a random instruction in a random function each time.
pub(super) fn pick(tables: &mut Tables, stack: &MadeUpStack<'_>, count: usize) -> Result<Picked, Error> {
    let functions = tables.functions()?;
    let mut random = Random(0x5eed);
    let mut seen = HashSet::new();
    let mut picked = Picked { addresses: Vec::with_capacity(count), passed_over: 0 };
    // A small library may have fewer addresses than that.
    for _ in 0..4 * count {
        if picked.addresses.len() == count || functions.is_empty() {
            break;
        }
        let function = functions[random.below(functions.len())];
        let length = usize::try_from(tables.entry(function)?.len()).unwrap_or(1);
        let pc = function + random.below(length.max(1)) as u64;
        if !seen.insert(pc) {
            continue;
        }
        let slot = tables.row(pc).ok().and_then(|row| by_gimli::return_address_slot(row, stack));
        match slot.filter(|slot| *slot >= stack.stack_pointer() && stack.read(*slot).is_some()) {
            Some(slot) => picked.addresses.push(Address { pc, function, slot }),
            None => picked.passed_over += 1,
        }
    }
    Ok(picked)
}

/// splitmix64
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `bound`, which is not zero.
    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.bits() >> 1).unwrap_or(0) % bound
    }
}

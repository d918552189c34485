//! Batches of addresses that one contender visits three times: first, again, and to check its results.

use std::hint::black_box;

use super::addresses::Address;
use super::contenders::{Contender, Found, Memory};
use super::made_up_stack::MadeUpStack;
use crate::native::ffi;
use crate::report::Outcome;
use crate::statistics::median;

/// The addresses in a batch: few enough that their tables stay in the near caches, and their rules in any contender's
/// cache.
pub(super) const BATCH: usize = 64;

/// The costs and errors of one contender over all rounds.
#[derive(Debug, Default)]
pub(super) struct Tally {
    costs: Vec<f64>,
    addresses: u64,
    pub(super) rules: Option<u64>,
    wrong: usize,
}

impl Tally {
    /// Visits `batch` twice, adds the cost of one rule, and then checks the results.
    pub(super) fn visit(&mut self, contender: &mut dyn Contender, batch: &[Address], stack: &MadeUpStack<'_>) {
        let count = to_f64(batch.len() as u64);
        let before = contender.memory();
        let first = time(contender, batch);
        let between = contender.memory();
        let again = time(contender, batch);
        let cost = match (before, between, contender.memory()) {
            (Memory::Nothing, ..) => Some(first / count),
            (Memory::Counted(before), Memory::Counted(between), Memory::Counted(after)) => {
                *self.rules.get_or_insert_default() += between - before;
                let fewer = (between - before).saturating_sub(after - between);
                (fewer > 0).then(|| (first - again) / to_f64(fewer))
            }
            _ => Some((first - again) / count),
        };
        self.costs.extend(cost);
        self.addresses += batch.len() as u64;
        self.check(contender, batch, stack);
    }

    fn check(&mut self, contender: &mut dyn Contender, batch: &[Address], stack: &MadeUpStack<'_>) {
        stack.mark();
        let is_wrong = |address: &&Address| match contender.step(address.pc) {
            Found::ReturnAddress(found) => Some(found) != stack.mark_of(address.slot),
            Found::Function(start) => start != address.function,
            Found::Nothing => true,
        };
        self.wrong += batch.iter().filter(is_wrong).count();
        stack.clear();
    }

    /// Returns the cost of one rule. A contender has no cost if a result was wrong, or if it already knew the rule of a
    /// new address.
    pub(super) fn outcome(&self) -> Outcome {
        let Self { addresses, wrong, .. } = self;
        if self.wrong > 0 {
            return Outcome::Absent(format!("wrong: at {wrong} of {addresses} addresses"));
        }
        match self.rules {
            Some(rules) if rules != self.addresses => {
                Outcome::Absent(format!("wrong: {rules} rules read for {addresses} new addresses"))
            }
            _ => median(&self.costs).map_or_else(
                || Outcome::Absent("not sampled".to_owned()),
                |cost| Outcome::Measured { cost, frames: None },
            ),
        }
    }
}

/// Returns the nanoseconds that the whole batch takes.
fn time(contender: &mut dyn Contender, batch: &[Address]) -> f64 {
    // SAFETY: the function takes no arguments, and reads a clock.
    let start = unsafe { ffi::bench_thread_cpu_ns() };
    for address in batch {
        black_box(contender.step(address.pc));
    }
    // SAFETY: as above.
    unsafe { ffi::bench_thread_cpu_ns() - start }
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn to_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::new_rule::by_gimli::Tables;
    use crate::native::new_rule::{addresses, contenders, made_up_stack};
    use crate::peers::unwind_tables::UnwindTables;

    #[test]
    fn all_contenders_agree_with_the_tables_of_the_c_library() {
        let library = UnwindTables::of_this_process()
            .into_iter()
            .find(|tables| tables.file.to_string_lossy().contains("libc.so"));
        let Some(library) = library else { return };
        let Ok(mut tables) = Tables::new(&library) else { panic!("gimli can't parse the C library's tables") };
        made_up_stack::with(|stack| {
            let picked = addresses::pick(&mut tables, stack, 10 * BATCH).map_or(Vec::new(), |picked| picked.addresses);
            assert_eq!(picked.len(), 10 * BATCH);
            let all: [&mut dyn Contender; 3] = [
                &mut contenders::Ours::new(stack),
                &mut contenders::LibgccSearch,
                &mut contenders::Gimli { tables, stack },
            ];
            for contender in all {
                let mut tally = Tally::default();
                picked.chunks(BATCH).for_each(|batch| tally.visit(contender, batch, stack));
                assert_eq!((tally.wrong, tally.addresses), (0, 10 * BATCH as u64));
                assert_eq!(stack.read(stack.stack_pointer()), Some(0));
            }
        });
    }

    #[test]
    fn a_contender_that_errs_has_no_figure() {
        struct Wrong;
        impl Contender for Wrong {
            fn step(&mut self, _: u64) -> Found {
                Found::ReturnAddress(0)
            }
            fn memory(&self) -> Memory {
                Memory::Nothing
            }
        }
        made_up_stack::with(|stack| {
            let mut tally = Tally::default();
            tally.visit(&mut Wrong, &[Address { pc: 1, function: 1, slot: stack.stack_pointer() }], stack);
            assert_eq!(tally.outcome(), Outcome::Absent("wrong: at 1 of 1 addresses".to_owned()));
            let unread = Tally { rules: Some(63), addresses: 64, ..Tally::default() };
            assert!(matches!(unread.outcome(), Outcome::Absent(why) if why.starts_with("wrong: 63 rules")));
        });
    }
}

//! The cost of one rule for an address that no unwinder has seen, in the biggest library that is
//! installed.
//!
//! The frame is made up: a random instruction of the library, a stack and a frame pointer. An
//! unwinder that caches rules is called twice. The second call finds the rule in the cache, so the
//! difference is the cost of the rule.

mod addresses;
mod by_gimli;
mod by_libunwind;
mod contenders;
mod library;
mod made_up_stack;
mod visits;

use std::hint::black_box;
use std::io::{self, Write};
use std::thread;

use addresses::Address;
use by_gimli::Tables;
use by_libunwind::Libunwind;
use contenders::{Contender, Framehop, Gimli, LibgccSearch, Ours};
use made_up_stack::MadeUpStack;
use visits::{BATCH, Tally};

use crate::options::Effort;
use crate::peers::unwind_tables::UnwindTables;
use crate::peers::{Unwinder, framehop, libunwind, ours};
use crate::report::{Case, Entry, Outcome};

/// The number of addresses for each of the two cases.
const ADDRESSES: usize = 20_000;
/// The stack size of the measuring thread: enough for the made-up stack and the contenders.
const STACK_BYTES: usize = 8 << 20;

/// The name of a contender, and the contender; `None` if it is not installed.
type Named<'a> = (&'static str, Option<Box<dyn Contender + 'a>>);

pub(super) fn measure(
    _unwinders: &[Unwinder],
    effort: Effort,
    done: &mut dyn FnMut(Case) -> io::Result<()>,
) -> io::Result<()> {
    let Some(library) = library::biggest() else {
        return writeln!(io::stderr(), "native: no big library with unwind tables");
    };
    let run = || made_up_stack::with(|stack| measure_on(stack, &library, effort));
    let cases = thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, run)?;
        thread.join().map_err(|_| io::Error::other("the measuring thread panicked"))?
    })?;
    cases.into_iter().try_for_each(done)
}

fn measure_on(stack: &MadeUpStack<'_>, library: &UnwindTables, effort: Effort) -> io::Result<[Case; 2]> {
    let refused = |error| io::Error::other(format!("gimli can't parse the library's tables: {error}"));
    let mut tables = Tables::new(library).map_err(refused)?;
    let count = effort.pick(ADDRESSES / 10, ADDRESSES);
    let picked = addresses::pick(&mut tables, stack, 2 * count).map_err(refused)?;
    let (far, near) = picked.addresses.split_at(picked.addresses.len() / 2);

    let mut contenders = contenders(stack, library, tables);
    let warm = near_tables(&mut contenders, near, stack, &mut Tables::new(library).map_err(refused)?);
    let cold = far_tables(&mut contenders, far, stack);
    let rules = [&warm, &cold].map(|tallies| tallies.first().and_then(|tally| tally.rules).unwrap_or(0));
    writeln!(
        io::stderr(),
        "native: our unwinder read {} rules; {} of {} addresses were skipped",
        rules[0] + rules[1],
        picked.passed_over,
        picked.passed_over + picked.addresses.len(),
    )?;

    let file = library::file_name(library).unwrap_or_default().to_string_lossy();
    let name = |state: &str| format!("{file}, {} MiB, {state}", library::mebibytes(library));
    let case = |state, tallies: Vec<Tally>| Case {
        bench: "native/new-rule",
        name: name(state),
        unit: "ns",
        entries: contenders.iter().zip(tallies).map(|(named, tally)| entry(named, &tally)).collect(),
    };
    Ok([case("tables warm", warm), case("tables cold", cold)])
}

fn contenders<'a>(stack: &'a MadeUpStack<'a>, library: &UnwindTables, tables: Tables) -> Vec<Named<'a>> {
    let libunwind = Libunwind::load(stack).map(|libunwind| Box::new(libunwind) as Box<dyn Contender>);
    vec![
        (ours::NAME, Some(Box::new(Ours::new(stack)))),
        (libunwind::NAME, libunwind),
        (framehop::NAME, Some(Box::new(Framehop::new(stack, framehop::module(library))))),
        ("gimli", Some(Box::new(Gimli { tables, stack }))),
        ("libgcc find FDE", Some(Box::new(LibgccSearch))),
    ]
}

/// Measures with tables in the caches: all contenders look up the same addresses, after a reader has looked up each of
/// them.
fn near_tables(
    contenders: &mut [Named<'_>],
    addresses: &[Address],
    stack: &MadeUpStack<'_>,
    reader: &mut Tables,
) -> Vec<Tally> {
    let mut tallies = contenders.iter().map(|_| Tally::default()).collect::<Vec<_>>();
    for (round, batch) in addresses.chunks_exact(BATCH).enumerate() {
        for address in batch {
            black_box(reader.row(address.pc).is_ok());
        }
        for turn in 0..tallies.len() {
            let index = (round + turn) % tallies.len();
            if let Some(contender) = &mut contenders[index].1 {
                tallies[index].visit(contender.as_mut(), batch, stack);
            }
        }
    }
    tallies
}

/// Measures with tables out of the caches: each contender looks up different addresses, which nothing has looked up
/// since they were picked.
fn far_tables(contenders: &mut [Named<'_>], addresses: &[Address], stack: &MadeUpStack<'_>) -> Vec<Tally> {
    let mut tallies = contenders.iter().map(|_| Tally::default()).collect::<Vec<_>>();
    for round in addresses.chunks_exact(BATCH * tallies.len()) {
        for ((tally, (_, contender)), batch) in tallies.iter_mut().zip(&mut *contenders).zip(round.chunks(BATCH)) {
            if let Some(contender) = contender {
                tally.visit(contender.as_mut(), batch, stack);
            }
        }
    }
    tallies
}

fn entry((peer, contender): &Named<'_>, tally: &Tally) -> Entry {
    let missing = || Outcome::Absent("not installed".to_owned());
    Entry { peer, outcome: contender.as_ref().map_or_else(missing, |_| tally.outcome()) }
}

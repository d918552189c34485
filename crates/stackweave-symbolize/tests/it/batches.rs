//! Batches of many addresses, and many threads.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use stackweave_core::{CodeAddress, ModuleList};
use stackweave_symbolize::{Resolved, Symbolized, Symbolizer, SymbolizerOptions, UnresolvedReason};
use stackweave_testkit::random::Random;
use stackweave_testkit::symbols::Skipped;
use stackweave_testkit::symbols::library::{Language, Split};
use stackweave_testkit::symbols::module_file::LibraryFile;

use crate::common::{exact, module, or_skip, symbolizer};

/// The address of the first library, and the distance between libraries.
const DISTANCE: u64 = 0x1_0000_0000;

/// Returns three libraries at different addresses, and addresses in and between them.
fn three_libraries() -> Result<(ModuleList, Vec<CodeAddress>), Skipped> {
    let files =
        [Language::C.build(5, Split::No)?, Language::Cpp.build(5, Split::No)?, Language::Rust.build(5, Split::No)?];
    let mut modules = Vec::new();
    let mut addresses = vec![exact(0x10), exact(DISTANCE - 1)];
    for (file, place) in files.iter().map(PathBuf::as_path).zip(1..) {
        let bias = place * DISTANCE;
        let mut module = module(file);
        (module.bias, module.start, module.end) = (bias, bias, bias + end_of(file));
        modules.push(module);
        addresses.extend(LibraryFile::read(file).sample(200).into_iter().map(|address| exact(address + bias)));
    }
    Ok((ModuleList::new(modules), addresses))
}

fn end_of(file: &Path) -> u64 {
    LibraryFile::read(file).end
}

/// Returns the addresses repeatedly, in a random order.
fn shuffled(addresses: &[CodeAddress], length: usize, seed: u64) -> Vec<CodeAddress> {
    let mut random = Random::new(seed);
    (0..length).map(|_| addresses[random.below(addresses.len())]).collect()
}

#[test]
fn a_batch_keeps_its_order_and_shares_equal_results() {
    let (modules, addresses) = or_skip!(three_libraries());
    let alone = symbolizer(&[]);
    let batch = shuffled(&addresses, 3000, 1);
    let answers = symbolizer(&[]).resolve(&batch, &modules);
    assert_eq!(answers.len(), batch.len());
    for (address, answer) in batch.iter().zip(&answers) {
        assert_eq!(*alone.resolve(&[*address], &modules)[0], **answer, "{address:?}");
    }
    for (address, answer) in batch.iter().zip(&answers) {
        let first = batch.iter().position(|other| other == address).unwrap();
        assert!(Arc::ptr_eq(answer, &answers[first]), "{address:?} has two results");
    }
    assert!(symbolizer(&[]).resolve(&[], &modules).is_empty());
}

#[test]
fn eight_threads_agree() {
    let (modules, addresses) = or_skip!(three_libraries());
    let expected = symbolizer(&[]).resolve(&addresses, &modules);
    let shared = symbolizer(&[]);
    let answer_of = |address: CodeAddress| -> &Resolved {
        &expected[addresses.iter().position(|other| *other == address).unwrap()]
    };
    std::thread::scope(|scope| {
        for seed in 0..8 {
            let batch = shuffled(&addresses, 1000, seed);
            let (shared, modules, answer_of) = (&shared, &modules, &answer_of);
            scope.spawn(move || {
                for part in batch.chunks(50) {
                    for (address, answer) in part.iter().zip(shared.resolve(part, modules)) {
                        assert_eq!(*answer, *answer_of(*address), "{address:?}");
                    }
                }
            });
        }
    });
    assert_eq!(shared.stats().addresses, 8000);
}

#[test]
fn the_counts_add_up() {
    let (modules, addresses) = or_skip!(three_libraries());
    let symbolizer = symbolizer(&[]);
    let batch: Vec<CodeAddress> = addresses.iter().chain(&addresses).copied().collect();
    let answers = symbolizer.resolve(&batch, &modules);
    let stats = symbolizer.stats();
    assert_eq!(stats.addresses, batch.len() as u64);
    assert_eq!(stats.modules, 3);
    assert_eq!(stats.looked_up, addresses.len() as u64, "each distinct address once");
    for reason in UnresolvedReason::ALL {
        let unknown = answers[..addresses.len()].iter();
        let unknown = unknown.filter(|answer| answer.symbolized == Symbolized::Unknown(reason)).count();
        assert_eq!(stats.unknown[reason as usize], unknown as u64, "{reason}");
    }
    let outside = stats.unknown[UnresolvedReason::NoModule as usize];
    assert_eq!(outside, 2);

    symbolizer.resolve(&batch, &modules);
    let again = symbolizer.stats();
    assert_eq!((again.addresses, again.modules), (2 * stats.addresses, 3));
    assert_eq!(again.looked_up, stats.looked_up + outside, "addresses in no module may be in one next time");
}

#[test]
fn dropped_modules_are_opened_again() {
    let (modules, addresses) = or_skip!(three_libraries());
    let symbolizer = symbolizer(&[]);
    let first = symbolizer.resolve(&addresses, &modules);
    symbolizer.retain(&modules);
    assert_eq!(symbolizer.resolve(&addresses, &modules), first);
    assert_eq!(symbolizer.stats().modules, 3);
    symbolizer.retain(&ModuleList::default());
    assert_eq!(symbolizer.resolve(&addresses, &modules), first);
    assert_eq!(symbolizer.stats().modules, 6);
}

#[test]
fn results_are_the_same_if_files_are_not_kept() {
    let (modules, addresses) = or_skip!(three_libraries());
    let mut options = SymbolizerOptions::default();
    options.keeps_files = false;
    let symbolizer = Symbolizer::new(options);
    let (first, second) = addresses.split_at(addresses.len() / 2);
    let answers = [symbolizer.resolve(first, &modules), symbolizer.resolve(second, &modules)].concat();
    assert_eq!(answers, crate::common::symbolizer(&[]).resolve(&addresses, &modules));
    assert_eq!(symbolizer.stats().modules, 3);
}

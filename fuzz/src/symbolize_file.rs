//! Checks that every address gets a result if arbitrary bytes are the file of a module.

use std::path::PathBuf;
use std::sync::LazyLock;

use stackweave_core::{CodeAddress, Module, ModuleList};
use stackweave_symbolize::{Symbolizer, SymbolizerOptions};

use crate::scratch;

/// The addresses of the seeds' code, and a few more.
const CODE: std::ops::Range<u64> = 0x280..0x300;
const STRIDE: usize = 4;
/// Addresses in headers, in data, past the end, and at the ends of the address space.
const ELSEWHERE: [u64; 6] = [0, 0x40, 0x4a0, 0x2000, u64::MAX >> 1, u64::MAX >> 2];

/// The file that is written for each input.
static FILE: LazyLock<PathBuf> = LazyLock::new(|| scratch("module"));

/// Checks one input.
///
/// # Panics
/// Panics if a property does not hold.
pub fn check_input(data: &[u8]) {
    // The file is removed before the next input, so that a mapped file is never written to.
    let _ = std::fs::remove_file(&*FILE);
    std::fs::write(&*FILE, data).unwrap();
    let mut options = SymbolizerOptions::default();
    options.debug_folders.clear();
    let symbolizer = Symbolizer::new(options);
    let module = Module { path: FILE.clone(), build_id: None, bias: 0, start: 0, end: u64::MAX };
    let addresses: Vec<_> = CODE.step_by(STRIDE).chain(ELSEWHERE).map(CodeAddress::instruction_pointer).collect();
    let answers = symbolizer.resolve(&addresses, &ModuleList::new(vec![module]));
    assert_eq!(answers.len(), addresses.len());
    let stats = symbolizer.stats();
    let unknown = answers.iter().filter(|answer| answer.frames().is_empty()).count() as u64;
    assert_eq!(stats.unknown.iter().sum::<u64>(), unknown);
}

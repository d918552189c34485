//! Arbitrary bytes as the file of a module: whatever they are, each address gets an answer.

use std::path::PathBuf;
use std::sync::LazyLock;

use stackweave_core::{CodeAddress, Module, ModuleList};
use stackweave_symbolize::{Options, Symbolizer};

use crate::scratch;

/// Where the seeds have their code, and a little more.
const CODE: std::ops::Range<u64> = 0x280..0x300;
const STRIDE: usize = 4;
/// In headers, in data, behind the end, and at the ends of the address space.
const ELSEWHERE: [u64; 6] = [0, 0x40, 0x4a0, 0x2000, u64::MAX >> 1, u64::MAX >> 2];

/// A file is written for each input.
static FILE: LazyLock<PathBuf> = LazyLock::new(|| scratch("module"));

/// Checks one input.
///
/// # Panics
/// When something does not hold.
pub fn check_input(data: &[u8]) {
    // Gone before the next input, so that what is mapped is never written to.
    let _ = std::fs::remove_file(&*FILE);
    std::fs::write(&*FILE, data).unwrap();
    let mut options = Options::default();
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

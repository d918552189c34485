//! Our symbolizer, `stackweave_symbolize::Symbolizer`.

use std::path::Path;
use std::sync::Arc;

use object::Object;
use stackweave_core::{BuildId, CodeAddress, Module, ModuleList};
use stackweave_files::MappedFile;
use stackweave_symbolize::{Resolved, SymbolSource, Symbolizer, SymbolizerOptions};

use super::{Chain, Contender, Job, Place, Resolve, measure};

pub(super) const CONTENDER: Contender = Contender {
    name: "ours",
    version: || Ok("stackweave-symbolize, default options".to_owned()),
    measure: measure::<Ours>,
    many_modules: true,
    in_process_only: false,
    is_slow: false,
};

/// The same symbolizer under another name, for comparison with the resolver.
pub(super) const ADDRESSES: Contender = Contender { name: "ours, addresses", ..CONTENDER };

/// Each module gets its own 64 GiB of addresses.
const SPACING: u64 = 1 << 36;

#[derive(Debug)]
struct Ours {
    modules: ModuleList,
    symbolizer: Option<Symbolizer>,
}

impl Resolve for Ours {
    type Answers = Vec<Arc<Resolved>>;

    fn prepare(job: &Job) -> Result<Self, String> {
        Ok(Self { modules: modules(job), symbolizer: None })
    }

    fn resolve(&mut self, places: &[Place]) -> Result<Self::Answers, String> {
        let symbolizer = self.symbolizer.get_or_insert_with(|| Symbolizer::new(SymbolizerOptions::default()));
        let addresses = places.iter().map(address).collect::<Vec<_>>();
        Ok(symbolizer.resolve(&addresses, &self.modules))
    }

    fn chains(answers: &Self::Answers) -> Vec<Chain> {
        let names = |resolved: &Arc<Resolved>| match resolved.source() {
            Some(SymbolSource::UnwindEntry) | None => Vec::new(),
            Some(_) => resolved.frames().iter().map(|frame| frame.function.to_string()).collect(),
        };
        answers.iter().map(names).collect()
    }
}

pub(super) fn modules(job: &Job) -> ModuleList {
    let modules = job.modules.iter().enumerate().map(|(index, path)| {
        let start = bias(index);
        Module { path: path.clone(), build_id: build_id(path), bias: start, start, end: start + SPACING }
    });
    ModuleList::new(modules.collect())
}

/// Returns the address of a place in [`modules`].
pub(super) fn address(place: &Place) -> CodeAddress {
    CodeAddress::instruction_pointer(bias(place.module) + place.address)
}

fn bias(module: usize) -> u64 {
    (module as u64 + 1) * SPACING
}

/// Reads a build id. It is not part of the measurement, because a profiler gets it from the loaded module.
fn build_id(path: &Path) -> Option<BuildId> {
    let file = MappedFile::open(path).ok()?;
    let elf = object::File::parse(&*file).ok()?;
    BuildId::new(elf.build_id().ok()??)
}

//! blazesym, with lines, inlined calls and demangling.

use ::blazesym::Addr;
use ::blazesym::symbolize::source::{Elf, Source};
use ::blazesym::symbolize::{Input, Symbolized, Symbolizer};

use super::{Chain, Contender, Job, Place, Resolve, by_module, measure};
use crate::peers::locked_version;

pub(super) const CONTENDER: Contender = Contender {
    name: "blazesym",
    version: || Ok(format!("{}, lines and inlined calls on", locked_version("blazesym"))),
    measure: measure::<Blazesym>,
    many_modules: true,
    in_process_only: false,
    is_slow: false,
};

struct Blazesym {
    sources: Vec<Source<'static>>,
    symbolizer: Option<&'static Symbolizer>,
}

impl Resolve for Blazesym {
    type Answers = Vec<Option<Symbolized<'static>>>;

    fn prepare(job: &Job) -> Result<Self, String> {
        let sources = job.modules.iter().map(|path| Source::Elf(Elf::new(path))).collect();
        Ok(Self { sources, symbolizer: None })
    }

    fn resolve(&mut self, places: &[Place]) -> Result<Self::Answers, String> {
        // The answers borrow from the symbolizer, and the process ends after this measurement.
        let symbolizer = *self.symbolizer.get_or_insert_with(|| Box::leak(Box::new(Symbolizer::new())));
        let mut answers = places.iter().map(|_| None).collect::<Vec<_>>();
        for (module, positions) in by_module(places, self.sources.len()) {
            let addresses = positions.iter().map(|&position| places[position].address as Addr).collect::<Vec<_>>();
            let found = symbolizer
                .symbolize(&self.sources[module], Input::VirtOffset(&addresses))
                .map_err(|error| error.to_string())?;
            for (position, answer) in positions.into_iter().zip(found) {
                answers[position] = Some(answer);
            }
        }
        Ok(answers)
    }

    fn chains(answers: &Self::Answers) -> Vec<Chain> {
        let names = |answer: &Option<Symbolized<'_>>| {
            let Some(symbol) = answer.as_ref().and_then(Symbolized::as_sym) else { return Vec::new() };
            let inlined = symbol.inlined.iter().rev().map(|inlined| inlined.name.to_string());
            inlined.chain([symbol.name.to_string()]).collect()
        };
        answers.iter().map(names).collect()
    }
}

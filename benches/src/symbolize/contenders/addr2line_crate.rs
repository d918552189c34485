//! The addr2line crate's loader: it reads DWARF, or else the symbol table.

use std::borrow::Cow;
use std::path::PathBuf;

use addr2line::Loader;

use super::{Chain, Contender, Job, Place, Resolve, by_module, measure};
use crate::peers::locked_version;

pub(super) const CONTENDER: Contender = Contender {
    name: "addr2line crate",
    version: || Ok(format!("{}, Loader", locked_version("addr2line"))),
    measure: measure::<Addr2line>,
    many_modules: true,
    in_process_only: false,
    is_slow: false,
};

struct Addr2line {
    modules: Vec<(PathBuf, Option<Loader>)>,
}

/// The data that a caller would keep of a frame.
struct Frame {
    function: String,
    _file: Option<String>,
    _line: Option<u32>,
    _column: Option<u32>,
}

impl Resolve for Addr2line {
    type Answers = Vec<Vec<Frame>>;

    fn prepare(job: &Job) -> Result<Self, String> {
        Ok(Self { modules: job.modules.iter().map(|path| (path.clone(), None)).collect() })
    }

    fn resolve(&mut self, places: &[Place]) -> Result<Self::Answers, String> {
        let mut answers = places.iter().map(|_| Vec::new()).collect::<Vec<_>>();
        for (module, positions) in by_module(places, self.modules.len()) {
            let (path, loader) = &mut self.modules[module];
            if loader.is_none() {
                *loader = Some(Loader::new(&*path).map_err(|error| error.to_string())?);
            }
            let Some(loader) = loader else { continue };
            for position in positions {
                answers[position] = frames(loader, places[position].address).map_err(|error| error.to_string())?;
            }
        }
        Ok(answers)
    }

    fn chains(answers: &Self::Answers) -> Vec<Chain> {
        answers.iter().map(|frames| frames.iter().map(|frame| frame.function.clone()).collect()).collect()
    }
}

fn frames(loader: &Loader, address: u64) -> Result<Vec<Frame>, Box<dyn std::error::Error>> {
    let mut frames = Vec::new();
    let mut found = loader.find_frames(address)?;
    while let Some(frame) = found.next()? {
        let Some(function) = frame.function else { continue };
        let location = frame.location.as_ref();
        frames.push(Frame {
            function: function.demangle()?.into_owned(),
            _file: location.and_then(|location| location.file).map(str::to_owned),
            _line: location.and_then(|location| location.line),
            _column: location.and_then(|location| location.column),
        });
    }
    if frames.is_empty()
        && let Some(symbol) = loader.find_symbol(address)
    {
        let function = addr2line::demangle_auto(Cow::Borrowed(symbol), None).into_owned();
        frames.push(Frame { function, _file: None, _line: None, _column: None });
    }
    Ok(frames)
}

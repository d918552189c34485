//! The command line.

use std::path::PathBuf;

pub(crate) const USAGE: &str = "\
usage: stackweave-bench [--area AREA]... [--only TEXT] [--quick] [--package PATH] [--json PATH]

  --area AREA  measure this area only (default: all areas, which are native, symbolize, record, recording,
               trace, memory, timing, export, report, python, host)
  --only TEXT  run only benches whose name contains TEXT, such as native/no-reuse
  --quick      run fewer rounds: a quick check, not a result to quote
  --package PATH
               use the Python package `stackweave` in this folder (default: build it with scripts/build-package)
  --json PATH  write the rows to this file (default: target/bench.json)";

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Help,
    Bench(Options),
    /// Hidden: makes the first capture of this process.
    FirstCapture {
        peer: String,
        depth: usize,
    },
    /// Hidden: resolves the job on standard input with one symbolizer, in this process.
    Symbolize {
        contender: String,
    },
    /// Hidden: records or reads a recording, in this process.
    Recording {
        job: Vec<String>,
    },
    /// Hidden: records or reads phases, in this process.
    Timing {
        job: Vec<String>,
    },
    /// Hidden: exports a recording, or runs a peer that does.
    Export {
        job: Vec<String>,
    },
    /// Hidden: makes a report page, or runs a peer that makes one.
    Page {
        job: Vec<String>,
    },
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) areas: Vec<Area>,
    /// Part of the names of the benches to run; empty for all.
    pub(crate) only: String,
    pub(crate) effort: Effort,
    /// The folder with our Python package; `None` to build it.
    pub(crate) package: Option<PathBuf>,
    pub(crate) json: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Area {
    Native,
    Symbolize,
    Record,
    Recording,
    Trace,
    Memory,
    Timing,
    Export,
    Report,
    Python,
    Host,
}

impl Area {
    pub(crate) const ALL: [Self; 11] = [
        Self::Native,
        Self::Symbolize,
        Self::Record,
        Self::Recording,
        Self::Trace,
        Self::Memory,
        Self::Timing,
        Self::Export,
        Self::Report,
        Self::Python,
        Self::Host,
    ];

    /// Returns the prefix of the area's bench names.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Symbolize => "symbolize",
            Self::Record => "record",
            Self::Recording => "recording",
            Self::Trace => "trace",
            Self::Memory => "memory",
            Self::Timing => "timing",
            Self::Export => "export",
            Self::Report => "report",
            Self::Python => "python",
            Self::Host => "host",
        }
    }
}

/// The number of rounds to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    Quick,
    Full,
}

impl Effort {
    pub(crate) fn pick(self, quick: usize, full: usize) -> usize {
        match self {
            Self::Quick => quick,
            Self::Full => full,
        }
    }
}

/// The first words of the hidden commands.
pub(crate) const FIRST_CAPTURE: &str = "first-capture";
pub(crate) const SYMBOLIZE: &str = "symbolize";
pub(crate) const RECORDING: &str = "recording";
pub(crate) const TIMING: &str = "timing";
pub(crate) const EXPORT: &str = "export";
pub(crate) const PAGE: &str = "page";

pub(crate) fn parse(arguments: impl Iterator<Item = String>) -> Result<Command, String> {
    let mut arguments = arguments.peekable();
    if arguments.peek().is_some_and(|first| first == FIRST_CAPTURE) {
        return first_capture(arguments.skip(1));
    }
    if arguments.peek().is_some_and(|first| first == SYMBOLIZE) {
        let contender = arguments.nth(1).ok_or("symbolize needs a symbolizer")?;
        return Ok(Command::Symbolize { contender });
    }
    if arguments.peek().is_some_and(|first| first == RECORDING) {
        return Ok(Command::Recording { job: arguments.skip(1).collect() });
    }
    if arguments.peek().is_some_and(|first| first == TIMING) {
        return Ok(Command::Timing { job: arguments.skip(1).collect() });
    }
    if arguments.peek().is_some_and(|first| first == EXPORT) {
        return Ok(Command::Export { job: arguments.skip(1).collect() });
    }
    if arguments.peek().is_some_and(|first| first == PAGE) {
        return Ok(Command::Page { job: arguments.skip(1).collect() });
    }
    let mut options = Options {
        areas: Vec::new(),
        only: String::new(),
        effort: Effort::Full,
        package: None,
        json: PathBuf::from("target/bench.json"),
    };
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--help" | "-h" => return Ok(Command::Help),
            "--quick" => options.effort = Effort::Quick,
            "--only" => options.only = arguments.next().ok_or("--only needs a text")?,
            "--package" => options.package = Some(arguments.next().ok_or("--package needs a path")?.into()),
            "--json" => options.json = arguments.next().ok_or("--json needs a path")?.into(),
            "--area" => options.areas.push(area(&arguments.next().ok_or("--area needs a name")?)?),
            other => return Err(format!("unknown argument {other:?}")),
        }
    }
    if options.areas.is_empty() {
        options.areas.extend(Area::ALL);
    }
    Ok(Command::Bench(options))
}

fn area(name: &str) -> Result<Area, String> {
    Area::ALL.into_iter().find(|area| area.name() == name).ok_or_else(|| format!("unknown area {name:?}"))
}

fn first_capture(mut arguments: impl Iterator<Item = String>) -> Result<Command, String> {
    let peer = arguments.next().ok_or("first-capture needs a peer")?;
    let depth = arguments.next().and_then(|depth| depth.parse().ok()).ok_or("first-capture needs a depth")?;
    Ok(Command::FirstCapture { peer, depth })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Command, String> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn no_arguments_select_everything_at_full_effort() {
        let options = Options {
            areas: Area::ALL.to_vec(),
            only: String::new(),
            effort: Effort::Full,
            package: None,
            json: PathBuf::from("target/bench.json"),
        };
        assert_eq!(parsed(""), Ok(Command::Bench(options)));
    }

    #[test]
    fn every_option_is_parsed() {
        let options = Options {
            areas: vec![Area::Native],
            only: "reuse".into(),
            effort: Effort::Quick,
            package: Some(PathBuf::from("x/python")),
            json: PathBuf::from("x/rows.json"),
        };
        let line = "--quick --area native --only reuse --package x/python --json x/rows.json";
        assert_eq!(parsed(line), Ok(Command::Bench(options)));
        assert_eq!(
            parsed("first-capture framehop 30"),
            Ok(Command::FirstCapture { peer: "framehop".into(), depth: 30 })
        );
        assert_eq!(parsed("recording calls 1"), Ok(Command::Recording { job: vec!["calls".into(), "1".into()] }));
        assert_eq!(parsed("timing pairs"), Ok(Command::Timing { job: vec!["pairs".into()] }));
        assert_eq!(parsed("export record"), Ok(Command::Export { job: vec!["record".into()] }));
        assert_eq!(parsed("page record"), Ok(Command::Page { job: vec!["record".into()] }));
        assert_eq!(parsed("symbolize blazesym"), Ok(Command::Symbolize { contender: "blazesym".into() }));
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(parsed("--area nowhere"), Err("unknown area \"nowhere\"".into()));
        assert_eq!(parsed("--fast"), Err("unknown argument \"--fast\"".into()));
        assert_eq!(parsed("--json"), Err("--json needs a path".into()));
    }
}

//! Benchmarks of Stackweave against its peers: all in one process, in interleaved rounds, with one table at the end.
//!
//! Each area (`native`, ...) is a module that returns `report::Case`s; everything else here is shared. The crate is a
//! library, so that a Python process can load it and measure on its own stack.

mod export;
mod host;
mod machine;
mod memory;
mod meter;
mod native;
mod options;
mod own_library;
mod page;
mod peers;
mod plan;
mod python;
mod record;
mod recording;
mod report;
mod statistics;
mod symbolize;
mod timing;
mod trace;

use std::io::{self, Write};
use std::process::ExitCode;
use std::{env, fs};

use options::{Area, Command, Options};
use report::{Case, json, table};

/// Runs what the command line requests.
pub fn main() -> ExitCode {
    let outcome = match options::parse(env::args().skip(1)) {
        Ok(Command::Help) => writeln!(io::stdout(), "{}", options::USAGE),
        Ok(Command::Bench(options)) => bench(&options),
        Ok(Command::FirstCapture { peer, depth }) => native::first_capture_here(&peer, depth),
        Ok(Command::Symbolize { contender }) => symbolize::resolve_here(&contender),
        Ok(Command::Recording { job }) => recording::here(&job),
        Ok(Command::Export { job }) => export::here(&job),
        Ok(Command::Page { job }) => page::here(&job),
        Ok(Command::Timing { job }) => timing::here(&job),
        Err(problem) => Err(io::Error::other(format!("{problem}\n{}", options::USAGE))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "stackweave-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn bench(options: &Options) -> io::Result<()> {
    let mut out = io::stdout().lock();
    write!(out, "{}", machine::describe())?;
    let mut cases = Vec::new();
    for area in &options.areas {
        match area {
            Area::Native => {
                let unwinders = peers::all();
                write!(out, "{}", peers::describe(&unwinders))?;
                out.flush()?;
                native::run(&unwinders, options, &mut |case| show(&mut out, &mut cases, case))?;
            }
            Area::Symbolize => {
                write!(out, "{}", symbolize::describe())?;
                out.flush()?;
                symbolize::run(options, &mut |case| show(&mut out, &mut cases, case))?;
            }
            Area::Record => record::run(options, &mut |case| show(&mut out, &mut cases, case))?,
            Area::Recording => {
                let stage = recording::Stage::set(options)?;
                write!(out, "{}", stage.describe())?;
                out.flush()?;
                stage.run(options, &mut |case| show(&mut out, &mut cases, case))?;
            }
            Area::Trace => {
                let stage = trace::Stage::set(options)?;
                write!(out, "{}", stage.describe())?;
                out.flush()?;
                let tables = stage.run(options, &mut |case| show(&mut out, &mut cases, case))?;
                write!(out, "\n{tables}")?;
            }
            Area::Memory => {
                let stage = memory::Stage::set(options)?;
                write!(out, "{}", stage.describe())?;
                out.flush()?;
                let tables = stage.run(options, &mut |case| show(&mut out, &mut cases, case))?;
                write!(out, "\n{tables}")?;
            }
            Area::Timing => {
                let stage = timing::Stage::set(options)?;
                write!(out, "{}", stage.describe())?;
                out.flush()?;
                stage.run(options, &mut |case| show(&mut out, &mut cases, case))?;
            }
            Area::Export => {
                let stage = export::Stage::set()?;
                write!(out, "{}", stage.describe())?;
                out.flush()?;
                stage.run(options, &mut |case| show(&mut out, &mut cases, case))?;
            }
            Area::Report => {
                let stage = page::Stage::set(options)?;
                write!(out, "{}", stage.describe())?;
                out.flush()?;
                stage.run(options, &mut |case| show(&mut out, &mut cases, case))?;
            }
            Area::Python => {
                let stage = python::Stage::set(options);
                write!(out, "{}", stage.describe())?;
                out.flush()?;
                stage.run(options, &mut |case| show(&mut out, &mut cases, case))?;
            }
            Area::Host => host::run(options, &mut |case| show(&mut out, &mut cases, case))?,
        }
    }
    if cases.is_empty() {
        writeln!(out, "\nnothing was measured")?;
    }
    for of_one_area in cases.chunk_by(|one, next| one.area() == next.area()) {
        writeln!(out, "\n{}", table::ratios(of_one_area))?;
    }
    write_rows(options, &cases)?;
    writeln!(out, "rows: {}", options.json.display())
}

fn show(out: &mut impl Write, cases: &mut Vec<Case>, case: Case) -> io::Result<()> {
    write!(out, "\n{}", table::details(&case))?;
    out.flush()?;
    cases.push(case);
    Ok(())
}

fn write_rows(options: &Options, cases: &[Case]) -> io::Result<()> {
    if let Some(folder) = options.json.parent() {
        fs::create_dir_all(folder)?;
    }
    let rows = cases.iter().flat_map(Case::rows).collect::<Vec<_>>();
    fs::write(&options.json, json::list(&rows))
}

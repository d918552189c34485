//! Symbolizing: the CPU time and the memory that it takes to get names, lines and inlined calls from addresses.
//!
//! Every measurement is made in a separate process of this program, so that each symbolizer is new, and only the files
//! are in the page cache. The names are checked before the times are compared.

mod agreement;
mod contenders;
mod figures;
mod job;
mod libraries;
mod loaded;
mod one_library;
mod rounds;
mod sample;
mod torch;
mod tracebacks;

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::sync::OnceLock;

use job::Job;
use libraries::Libraries;

use crate::options::Options;
use crate::report::Case;

pub(crate) fn describe() -> String {
    let mut text = String::from("Symbolizers\n");
    for contender in contenders::ALL {
        let state = (contender.version)().unwrap_or_else(|why| why);
        let _ = writeln!(text, "  {:<16} {state}", contender.name);
    }
    let torch = found().torch_version.as_deref().unwrap_or("not installed");
    let _ = writeln!(text, "  {:<16} {torch}\nFiles", "torch");
    for (name, library) in found().all() {
        let state = library.map_or_else(str::to_owned, libraries::Library::describe);
        let _ = writeln!(text, "  {name:<16} {state}");
    }
    text
}

pub(crate) fn run(options: &Options, done: &mut dyn FnMut(Case) -> io::Result<()>) -> io::Result<()> {
    let wanted = |bench: &str| bench.contains(&options.only);
    let mut done_if_wanted = |case: Case| if wanted(case.bench) { done(case) } else { Ok(()) };
    if one_library::BENCHES.iter().any(|(bench, ..)| wanted(bench)) {
        for (name, library) in found().all() {
            if let Ok(library) = library {
                writeln!(io::stderr(), "symbolize: {name}")?;
                one_library::measure(library, options.effort, &mut done_if_wanted)?;
            }
        }
    }
    if wanted(tracebacks::BENCH) {
        writeln!(io::stderr(), "symbolize: tracebacks")?;
        tracebacks::measure(found(), options.effort, &mut done_if_wanted)?;
    }
    if wanted(torch::BENCH) && found().libtorch.is_some() {
        writeln!(io::stderr(), "symbolize: tracebacks of a torch program")?;
        torch::measure(options.effort, &mut done_if_wanted)?;
    }
    Ok(())
}

/// Runs in the child process: resolves the job on standard input with one symbolizer, and prints the report or an
/// error.
pub(crate) fn resolve_here(contender: &str) -> io::Result<()> {
    let contender =
        contenders::one(contender).ok_or_else(|| io::Error::other(format!("unknown symbolizer {contender:?}")))?;
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    let report = Job::parse(&text).and_then(|job| (contender.measure)(&job));
    let mut out = io::stdout().lock();
    match report {
        Ok(report) => write!(out, "{}", report.to_text()),
        Err(why) => writeln!(out, "{why}"),
    }
}

fn found() -> &'static Libraries {
    static FOUND: OnceLock<Libraries> = OnceLock::new();
    FOUND.get_or_init(Libraries::find)
}

//! What can be asked of the command.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::completions::Completions;
use crate::examples;
use crate::flame::Flame;
use crate::live::Live;
use crate::screen::ColourChoice;
use crate::stacks::Stacks;
use crate::text::{HeapView, PhaseSort, Sort};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use stackweave_core::FrameKind;
use stackweave_export::SizeLimit;

/// Record what a Python program does, and show what it cost: Python and native code in one stack.
#[derive(Debug, Parser)]
#[command(name = "stackweave", version, disable_help_subcommand = true)]
#[command(after_help = "stackweave help COMMAND tells more, with examples.\n\
    A RECORDING is a file (.swv), or a folder with one file for each process.")]
pub(crate) struct Program {
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t, hide_possible_values = true)]
    #[arg(help = "When colours are used: auto, always or never [default: auto]", hide_default_value = true)]
    pub(crate) color: ColourChoice,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a Python program, and record every call that it makes
    #[command(disable_help_flag = true)]
    Trace(RunPython),
    /// Run a Python program, and record every allocation that it makes
    #[command(disable_help_flag = true)]
    Memory(RunPython),
    /// Run a Python program, and record calls and memory together, in one file
    #[command(disable_help_flag = true)]
    Run(RunPython),
    /// Run a Python program, and record what torch.compile does in it
    #[command(disable_help_flag = true)]
    Dynamo(RunPython),
    /// Show where all threads of a running process are, Python and native code in one stack
    Stacks(Stacks),
    /// Watch a recording while it is made
    Live(Live),
    /// Tell what is in a recording, and whether it is whole
    #[command(after_help = examples::INFO)]
    Info(Info),
    /// Show how much memory a program took, who took it, and what is left
    #[command(after_help = examples::HEAP)]
    Heap(Heap),
    /// Show how long phases took, in all and in each run: of a compiler, a planner, a build
    #[command(after_help = examples::PHASES)]
    Phases(Phases),
    /// Show who called whom, and what it cost
    #[command(after_help = examples::TREE)]
    Tree(Tree),
    /// Show the functions that cost most
    #[command(after_help = examples::TOP)]
    Top(Top),
    /// Draw a flame graph in the terminal: who called whom, as wide as it cost
    #[command(after_help = examples::FLAME)]
    Flame(Flame),
    /// Show what costs more, or less, than before
    #[command(after_help = examples::DIFF)]
    Diff(Diff),
    /// Write one page with all of it: flame graphs, timeline, functions, memory, sources
    #[command(after_help = examples::REPORT)]
    Report(Report),
    /// Write a recording in the format of a viewer
    #[command(after_help = examples::EXPORT)]
    Export(Export),
    /// Put the recordings of many processes or machines into one file
    #[command(after_help = examples::MERGE)]
    Merge(Merge),
    /// Tell how well stacks are captured here, and what would help
    #[command(disable_help_flag = true)]
    Doctor(RunPython),
    /// Write completions of commands, options and files for a shell
    #[command(after_help = examples::COMPLETIONS)]
    Completions(Completions),
    /// Tell more about a command, with examples
    Help(Help),
}

#[derive(Debug, Args)]
pub(crate) struct Help {
    /// The command; if not given, all are listed
    #[arg(value_name = "COMMAND")]
    pub(crate) command: Option<String>,
}

/// The rest is for the Python package, which knows what can be recorded.
#[derive(Debug, Args)]
pub(crate) struct RunPython {
    #[arg(long, value_name = "PYTHON", help = "The Python that runs it; if not given, STACKWEAVE_PYTHON, or python3")]
    pub(crate) python: Option<PathBuf>,
    /// Options, and the program: script.py, -m module or -c code, and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS AND PROGRAM")]
    pub(crate) arguments: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct Info {
    /// Recordings to look at
    #[arg(value_name = "RECORDING", required = true)]
    pub(crate) recordings: Vec<PathBuf>,
    /// Write JSON, for programs
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Tree {
    /// Recordings to look at, together
    #[arg(value_name = "RECORDING", required = true)]
    pub(crate) recordings: Vec<PathBuf>,
    #[command(flatten, next_help_heading = "What is looked at")]
    pub(crate) selection: Selection,
    /// Show at most this many levels
    #[arg(long, value_name = "LEVELS")]
    pub(crate) depth: Option<usize>,
    /// Leave out what has less than this share of the total, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    pub(crate) min: f64,
    /// Write JSON, for programs
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Top {
    /// Recordings to look at, together
    #[arg(value_name = "RECORDING", required = true)]
    pub(crate) recordings: Vec<PathBuf>,
    #[command(flatten, next_help_heading = "What is looked at")]
    pub(crate) selection: Selection,
    /// Show this many functions
    #[arg(short = 'n', long, value_name = "NUMBER", default_value_t = 20)]
    pub(crate) number: usize,
    /// What the functions are ordered by
    #[arg(long, value_enum, default_value_t = Sort::Own)]
    pub(crate) sort: Sort,
    /// Write JSON, for programs
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// The recording before the change
    pub(crate) before: PathBuf,
    /// The recording after it
    pub(crate) after: PathBuf,
    #[command(flatten, next_help_heading = "What is looked at")]
    pub(crate) selection: Selection,
    /// Show this many functions
    #[arg(short = 'n', long, value_name = "NUMBER", default_value_t = 20)]
    pub(crate) number: usize,
    /// Compare shares of the total: the two ran for different times
    #[arg(long)]
    pub(crate) shares: bool,
    /// Compare paths of calls, and not functions
    #[arg(long)]
    pub(crate) paths: bool,
    #[command(flatten)]
    pub(crate) gate: GateLimits,
    /// Write JSON, for programs
    #[arg(long)]
    pub(crate) json: bool,
}

/// What a gate allows.
#[derive(Debug, Args)]
pub(crate) struct GateLimits {
    /// Fail, with status 3, if what is selected grew by more than this
    #[arg(long, value_name = "PERCENT", value_parser = percent, allow_negative_numbers = true)]
    pub(crate) fail_above: Option<f64>,
    /// Fail, with status 3, if a function itself grew by more than this of all that was selected before
    #[arg(long, value_name = "PERCENT", value_parser = percent, allow_negative_numbers = true)]
    pub(crate) fail_above_each: Option<f64>,
    /// Let gates compare recordings that are cut, not closed, damaged or lack events
    #[arg(long)]
    pub(crate) allow_incomplete: bool,
}

/// Whether a report has the texts of source files with it.
#[derive(Debug, Args)]
pub(crate) struct Sources {
    /// Put the texts of source files into a report, even if the recording is of another user or machine; if not given,
    /// they are put in if this user made the recording on this machine
    #[arg(long, overrides_with = "no_sources")]
    pub(crate) sources: bool,
    /// Leave out the texts of source files from a report
    #[arg(long, overrides_with = "sources")]
    pub(crate) no_sources: bool,
}

impl Sources {
    /// What was chosen, if anything was.
    pub(crate) const fn chosen(&self) -> Option<bool> {
        match (self.sources, self.no_sources) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Report {
    /// Recordings to show, together
    #[arg(value_name = "RECORDING", required = true)]
    pub(crate) recordings: Vec<PathBuf>,
    /// The file to write, - for standard output; if not given, the recording's name with .html. An older report is replaced
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Show what changed since this recording
    #[arg(long, value_name = "RECORDING")]
    pub(crate) before: Option<PathBuf>,
    /// What it is called; if not given, the command line of the program
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    #[command(flatten)]
    pub(crate) sources: Sources,
    /// Open it in a browser: that of BROWSER, or the desktop's
    #[arg(long)]
    pub(crate) open: bool,
    /// Replace the file if it is there, whatever it holds
    #[arg(short, long)]
    pub(crate) force: bool,
    /// Stop past this size, like 4GB (none: no limit); if not given, 1 GiB
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_size: Option<SizeLimit>,
    #[command(flatten, next_help_heading = "What is looked at")]
    pub(crate) extent: Extent,
}

#[derive(Debug, Args)]
pub(crate) struct Export {
    /// Recordings to export, together
    #[arg(value_name = "RECORDING", required = true)]
    pub(crate) recordings: Vec<PathBuf>,
    /// The format: report, pstats, chrome, perfetto, speedscope, pprof, folded, flamegraph, callgraph, dot, firefox, json,
    /// parquet; of memory pytorch, allocations, memory-curve; if not given, the name of the output tells it
    #[arg(long, value_name = "NAME")]
    pub(crate) format: Option<String>,
    /// The file to write, - for standard output; for parquet, a folder; if not given, the recording's name with the format's end
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace the file if it is there; a folder only if it is an older export with nothing else in it
    #[arg(short, long)]
    pub(crate) force: bool,
    /// Stop past this size, like 4GB (none: no limit); if not given, what readers of the format can open
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_size: Option<SizeLimit>,
    /// What it is called; if not given, the command line of the program
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    /// Draw a flame graph in the order of time, and do not merge what is equal
    #[arg(long)]
    pub(crate) time_order: bool,
    /// Show in a report, and by the colours of a flame graph, what changed since this recording
    #[arg(long, value_name = "RECORDING")]
    pub(crate) before: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) sources: Sources,
    #[command(flatten, next_help_heading = "What is looked at")]
    pub(crate) selection: Selection,
}

#[derive(Debug, Args)]
pub(crate) struct Heap {
    /// Recordings to look at, together
    #[arg(value_name = "RECORDING", required = true)]
    pub(crate) recordings: Vec<PathBuf>,
    /// What is shown
    #[arg(long, value_enum, default_value_t = HeapView::Summary)]
    pub(crate) view: HeapView,
    /// Write JSON, for programs
    #[arg(long)]
    pub(crate) json: bool,
    /// Show this many stacks, threads or tags
    #[arg(short = 'n', long, value_name = "NUMBER", default_value_t = 10)]
    pub(crate) number: usize,
    /// The memory of this device, and not the process's own; the first one, if there is only memory of devices
    #[arg(long, value_name = "NUMBER")]
    pub(crate) device: Option<u32>,
    /// Only what was taken under this tag
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,
    /// A block is temporary if its thread took at most this many others until it was freed; if not given, as recorded
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(..1024))]
    pub(crate) temporary: Option<u32>,
    #[command(flatten, next_help_heading = "What is looked at")]
    pub(crate) part: Part,
}

#[derive(Debug, Args)]
pub(crate) struct Phases {
    /// Recordings to look at, together
    #[arg(value_name = "RECORDING", required = true)]
    pub(crate) recordings: Vec<PathBuf>,
    /// Show all runs, and nothing else
    #[arg(long)]
    pub(crate) runs: bool,
    /// Write JSON, for programs: all of it, whatever the number
    #[arg(long)]
    pub(crate) json: bool,
    /// Show this many runs, and this many functions
    #[arg(short = 'n', long, value_name = "NUMBER", default_value_t = 20)]
    pub(crate) number: usize,
    /// What the functions are ordered by
    #[arg(long, value_enum, default_value_t = PhaseSort::Own)]
    pub(crate) sort: PhaseSort,
    #[command(flatten, next_help_heading = "What is looked at")]
    pub(crate) part: Part,
}

#[derive(Debug, Args)]
pub(crate) struct Merge {
    /// Recordings to put together; damaged parts are left out
    #[arg(value_name = "RECORDING", required = true)]
    pub(crate) recordings: Vec<PathBuf>,
    /// The file to write, - for standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Replace the file if it is there
    #[arg(short, long)]
    pub(crate) force: bool,
}

/// Which part of a recording is looked at, and how.
#[derive(Debug, Args)]
pub(crate) struct Selection {
    /// What is counted: time, calls, samples, bytes or allocations (all), live (not freed), peak or temporary (freed soon); if
    /// not given, what the recording is about
    #[arg(long, value_enum, value_name = "WHAT", hide_possible_values = true)]
    pub(crate) measure: Option<Counted>,
    /// Of measures of memory: this device's, and not the process's own
    #[arg(long, value_name = "NUMBER")]
    pub(crate) device: Option<u32>,
    #[command(flatten, next_help_heading = "What is looked at")]
    pub(crate) part: Part,
}

/// Processes, threads, times and frames.
#[derive(Debug, Args)]
pub(crate) struct Part {
    /// Show the internals of the interpreter and of libraries too
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten, next_help_heading = "What is looked at")]
    pub(crate) extent: Extent,
    /// Only functions that match: a part of the name, file or module, or a pattern like function:Model.* or
    /// file:*/nn/*; function:=f is exactly f
    #[arg(long, value_name = "PATTERN")]
    pub(crate) only: Vec<String>,
    /// No functions that match
    #[arg(long, value_name = "PATTERN")]
    pub(crate) hide: Vec<String>,
    /// Only frames of this kind
    #[arg(long, value_name = "KIND", value_parser = frame_kind())]
    pub(crate) kind: Vec<FrameKind>,
}

/// Processes, threads and times.
#[derive(Debug, Args)]
pub(crate) struct Extent {
    /// Only this process
    #[arg(long, value_name = "PID")]
    pub(crate) process: Vec<u32>,
    /// Only this thread, by its name or number
    #[arg(long, value_name = "THREAD")]
    pub(crate) thread: Vec<String>,
    /// Only from this time on, since the recording began: 1.5s, 200ms
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) from: Option<Duration>,
    /// Only up to this time
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) to: Option<Duration>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Counted {
    /// Wall time, in what began and ended
    Time,
    /// How often functions were called: the same on every machine
    Calls,
    /// Stacks that were seen
    Samples,
    /// Bytes that were allocated
    Bytes,
    /// Allocations
    Allocations,
    /// Bytes that were still allocated at the end
    Live,
    /// Bytes that were allocated when the program had most
    Peak,
    /// Bytes that were freed again soon
    Temporary,
}

/// A kind of frames, by its name; the one that most people want is listed first.
fn frame_kind() -> impl TypedValueParser<Value = FrameKind> {
    let names = PossibleValuesParser::new(["python", "native", "script", "extra", "label"]);
    names.try_map(|name| FrameKind::from_name(&name).ok_or("no kind of frames"))
}

/// A number of seconds, or with a unit.
fn time(text: &str) -> Result<Duration, String> {
    let units = [("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("", 1.0)];
    let (number, seconds) =
        units.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds))).unwrap_or((text, &1.0));
    let value: f64 = number.trim().parse().map_err(|_| "write a time like 1.5s or 200ms".to_owned())?;
    Duration::try_from_secs_f64(value * seconds).map_err(|_| "a time can't be negative".to_owned())
}

/// A number that is not negative, with or without its sign.
fn percent(text: &str) -> Result<f64, String> {
    let value = text.trim_end_matches('%').trim().parse::<f64>().ok();
    value.filter(|value| value.is_finite() && *value >= 0.0).ok_or_else(|| "write a number like 5 or 2.5".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Program::command().debug_assert();
    }

    #[test]
    fn times_have_units() {
        let seconds = |text| time(text).map(|time| time.as_secs_f64());
        assert_eq!([seconds("2"), seconds("1.5s"), seconds("250ms"), seconds("7us")], [2.0, 1.5, 0.25, 7e-6].map(Ok));
        assert!(["", "s", "one", "-1s", "1h"].iter().all(|text| time(text).is_err()));
    }
}

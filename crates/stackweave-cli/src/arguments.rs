//! The arguments of the command.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::completions::Completions;
use crate::examples;
use crate::flame::Flame;
use crate::live::Live;
use crate::screen::ColourChoice;
use crate::stacks::StacksArguments;
use crate::text::{HeapView, PhaseSort, Sort};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use stackweave_core::FrameKind;
use stackweave_export::SizeLimit;

/// Record what a Python program does and what it costs: Python and native code in one stack.
#[derive(Debug, Parser)]
#[command(name = "stackweave", version, disable_help_subcommand = true)]
#[command(after_help = "stackweave help COMMAND shows details and examples.\n\
    A RECORDING is a file (.swv), or a folder with one file for each process.")]
pub(crate) struct ProgramArguments {
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t, hide_possible_values = true)]
    #[arg(help = "When to use colours: auto, always or never [default: auto]", hide_default_value = true)]
    pub(crate) color: ColourChoice,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a Python program and record every call that it makes
    #[command(disable_help_flag = true)]
    Trace(RunPythonArguments),
    /// Run a Python program and record every allocation that it makes
    #[command(disable_help_flag = true)]
    Memory(RunPythonArguments),
    /// Run a Python program and record calls and memory together, in one file
    #[command(disable_help_flag = true)]
    Record(RunPythonArguments),
    /// Run a Python program and record what torch.compile does in it
    #[command(disable_help_flag = true)]
    Dynamo(RunPythonArguments),
    /// Show the stacks of all threads of a running process, Python and native together
    Stacks(StacksArguments),
    /// Watch a recording while it is made
    Live(Live),
    /// Describe a recording, and report what is missing in it
    #[command(after_help = examples::INFO)]
    Info(InfoArguments),
    /// Show how much memory a program allocated, where, and what it did not free
    #[command(after_help = examples::HEAP)]
    Heap(HeapArguments),
    /// Show how long phases took, in total and in each run
    #[command(after_help = examples::PHASES)]
    Phases(PhasesArguments),
    /// Show the call tree with the cost of each path
    #[command(after_help = examples::TREE)]
    Tree(TreeArguments),
    /// Show the functions with the highest cost
    #[command(after_help = examples::TOP)]
    Top(TopArguments),
    /// Draw a flame graph in the terminal
    #[command(after_help = examples::FLAME)]
    Flame(Flame),
    /// Show which costs changed between two recordings
    #[command(after_help = examples::DIFF)]
    Diff(DiffArguments),
    /// Write one page with everything: flame graphs, timeline, functions, memory, sources
    #[command(after_help = examples::REPORT)]
    Report(ReportArguments),
    /// Write a recording in the format of a viewer
    #[command(after_help = examples::EXPORT)]
    Export(ExportArguments),
    /// Merge the recordings of many processes or machines into one file
    #[command(after_help = examples::MERGE)]
    Merge(MergeArguments),
    /// Report how well stacks can be captured here, and what would improve it
    #[command(disable_help_flag = true)]
    Doctor(RunPythonArguments),
    /// Write shell completions for commands, options and files
    #[command(after_help = examples::COMPLETIONS)]
    Completions(Completions),
    /// Show the help of a command, with examples
    Help(HelpArguments),
}

#[derive(Debug, Args)]
pub(crate) struct HelpArguments {
    /// The command; without it, all commands are listed
    #[arg(value_name = "COMMAND")]
    pub(crate) command: Option<String>,
}

/// The arguments after `--python` are parsed by the Python package, which defines the options of the recorders.
#[derive(Debug, Args)]
pub(crate) struct RunPythonArguments {
    #[arg(long, value_name = "PYTHON", help = "The Python that runs it; by default STACKWEAVE_PYTHON, or python3")]
    pub(crate) python: Option<PathBuf>,
    /// Options, and the program: script.py, -m module or -c code, with its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS AND PROGRAM")]
    pub(crate) arguments: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct InfoArguments {
    /// Recordings to describe
    #[arg(value_name = "RECORDING", required = true)]
    pub(crate) recordings: Vec<PathBuf>,
    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TreeArguments {
    /// Recordings to read, together
    #[arg(value_name = "RECORDING", required = true)]
    pub(crate) recordings: Vec<PathBuf>,
    #[command(flatten, next_help_heading = "Selection")]
    pub(crate) selection: SelectionArguments,
    /// Show at most this many levels
    #[arg(long, value_name = "LEVELS")]
    pub(crate) depth: Option<usize>,
    /// Leave out paths with less than this share of the total, in percent [default: 1, and at least some functions of
    /// the program are shown]
    #[arg(long, value_name = "PERCENT")]
    pub(crate) min: Option<f64>,
    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TopArguments {
    /// Recordings to read, together
    #[arg(value_name = "RECORDING", required = true)]
    pub(crate) recordings: Vec<PathBuf>,
    #[command(flatten, next_help_heading = "Selection")]
    pub(crate) selection: SelectionArguments,
    /// Show this many functions
    #[arg(short = 'n', long, value_name = "NUMBER", default_value_t = 20)]
    pub(crate) limit: usize,
    /// The column to sort by
    #[arg(long, value_enum, default_value_t = Sort::SelfCost)]
    pub(crate) sort: Sort,
    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArguments {
    /// The recording before the change
    pub(crate) before: PathBuf,
    /// The recording after it
    pub(crate) after: PathBuf,
    #[command(flatten, next_help_heading = "Selection")]
    pub(crate) selection: SelectionArguments,
    /// Show this many functions
    #[arg(short = 'n', long, value_name = "NUMBER", default_value_t = 20)]
    pub(crate) limit: usize,
    /// Compare shares of the total, for recordings of different length
    #[arg(long)]
    pub(crate) shares: bool,
    /// Compare call paths instead of functions
    #[arg(long)]
    pub(crate) paths: bool,
    #[command(flatten)]
    pub(crate) gate: GateLimits,
    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The limits of a gate.
#[derive(Debug, Args)]
pub(crate) struct GateLimits {
    /// Fail, with status 3, if the selected total grew by more than this
    #[arg(long, value_name = "PERCENT", value_parser = percent, allow_negative_numbers = true)]
    pub(crate) fail_above: Option<f64>,
    /// Fail, with status 3, if the self cost of a function grew by more than this share of the total before
    #[arg(long, value_name = "PERCENT", value_parser = percent, allow_negative_numbers = true)]
    pub(crate) fail_above_each: Option<f64>,
    /// Let gates compare recordings that are truncated, not closed, damaged or lack events
    #[arg(long)]
    pub(crate) allow_incomplete: bool,
}

/// Whether a report contains the texts of source files.
#[derive(Debug, Args)]
pub(crate) struct SourceTextOptions {
    /// Include the texts of source files, even if the recording is from another user or machine; by default they are
    /// included if this user made the recording on this machine
    #[arg(long, overrides_with = "no_sources")]
    pub(crate) sources: bool,
    /// Leave out the texts of source files
    #[arg(long, overrides_with = "sources")]
    pub(crate) no_sources: bool,
}

impl SourceTextOptions {
    /// Returns the choice of the user, if there is one.
    pub(crate) const fn chosen(&self) -> Option<bool> {
        match (self.sources, self.no_sources) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// Recordings to show, together
    #[arg(value_name = "RECORDING", required = true)]
    pub(crate) recordings: Vec<PathBuf>,
    /// The file to write, - for standard output; by default the recording's name with .html. An older report is
    /// replaced
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Show what changed since this recording
    #[arg(long, value_name = "RECORDING")]
    pub(crate) before: Option<PathBuf>,
    /// The title; by default the command line of the program
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    #[command(flatten)]
    pub(crate) sources: SourceTextOptions,
    /// Open the report in the browser that BROWSER names, or in that of the desktop
    #[arg(long)]
    pub(crate) open: bool,
    /// Replace the file if it exists, even if it is not a report
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Stop beyond this size, like 4GB (none: no limit); by default 1 GiB
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_size: Option<SizeLimit>,
    #[command(flatten, next_help_heading = "Selection")]
    pub(crate) scope: Scope,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArguments {
    /// Recordings to export, together
    #[arg(value_name = "RECORDING", required = true)]
    pub(crate) recordings: Vec<PathBuf>,
    /// The format: report, pstats, chrome, perfetto, speedscope, pprof, folded, flamegraph, callgraph, dot, firefox,
    /// json, parquet; for memory pytorch, allocations, memory-curve; by default the suffix of the output's name selects
    /// it
    #[arg(long, value_name = "NAME")]
    pub(crate) format: Option<String>,
    /// The file to write, - for standard output; for parquet a folder; by default the recording's name with the
    /// format's suffix
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace the file if it exists; a folder only if it is an older export with nothing else in it
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Stop beyond this size, like 4GB (none: no limit); by default what readers of the format can open
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_size: Option<SizeLimit>,
    /// For pytorch: leave out smaller blocks that are freed (0: none); by default, of more than 200,000 blocks the
    /// smallest
    #[arg(long, value_name = "SIZE", value_parser = stackweave_export::parse_bytes)]
    pub(crate) min_block: Option<u64>,
    /// The title; by default the command line of the program
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    /// Draw a flame graph in the order of time, without merging equal stacks
    #[arg(long)]
    pub(crate) time_order: bool,
    /// Show what changed since this recording: in a report, or by the colours of a flame graph
    #[arg(long, value_name = "RECORDING")]
    pub(crate) before: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) sources: SourceTextOptions,
    #[command(flatten, next_help_heading = "Selection")]
    pub(crate) selection: SelectionArguments,
}

#[derive(Debug, Args)]
pub(crate) struct HeapArguments {
    /// Recordings to read, together
    #[arg(value_name = "RECORDING", required = true)]
    pub(crate) recordings: Vec<PathBuf>,
    /// The view
    #[arg(long, value_enum, default_value_t = HeapView::Summary)]
    pub(crate) view: HeapView,
    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Show this many stacks, threads or tags
    #[arg(short = 'n', long, value_name = "NUMBER", default_value_t = 10)]
    pub(crate) limit: usize,
    /// The memory of this device instead of the process's heap; by default the first device if only devices were
    /// recorded
    #[arg(long, value_name = "NUMBER")]
    pub(crate) device: Option<u32>,
    /// Only blocks that were allocated under this tag
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,
    /// A block is temporary if its thread allocated at most this many others before it was freed; by default as
    /// recorded
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(..1024))]
    pub(crate) temporary: Option<u32>,
    #[command(flatten, next_help_heading = "Selection")]
    pub(crate) filters: Filters,
}

#[derive(Debug, Args)]
pub(crate) struct PhasesArguments {
    /// Recordings to read, together
    #[arg(value_name = "RECORDING", required = true)]
    pub(crate) recordings: Vec<PathBuf>,
    /// Show all runs, and nothing else
    #[arg(long)]
    pub(crate) runs: bool,
    /// Write JSON, with all phases and runs whatever the number
    #[arg(long)]
    pub(crate) json: bool,
    /// Show this many runs, and this many functions
    #[arg(short = 'n', long, value_name = "NUMBER", default_value_t = 20)]
    pub(crate) limit: usize,
    /// The column to sort the functions by
    #[arg(long, value_enum, default_value_t = PhaseSort::SelfCost)]
    pub(crate) sort: PhaseSort,
    #[command(flatten, next_help_heading = "Selection")]
    pub(crate) filters: Filters,
}

#[derive(Debug, Args)]
pub(crate) struct MergeArguments {
    /// Recordings to merge; damaged parts are left out
    #[arg(value_name = "RECORDING", required = true)]
    pub(crate) recordings: Vec<PathBuf>,
    /// The file to write, - for standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    pub(crate) overwrite: bool,
}

/// The part of a recording that a command shows, and the measure.
#[derive(Debug, Args)]
pub(crate) struct SelectionArguments {
    /// The measure: time, calls, samples, bytes or allocations (all), live (not freed), peak or temporary (freed
    /// soon); by default the main measure of the recording
    #[arg(long, value_enum, value_name = "WHAT", hide_possible_values = true)]
    pub(crate) measure: Option<MeasureChoice>,
    /// For measures of memory: this device instead of the process's heap
    #[arg(long, value_name = "NUMBER")]
    pub(crate) device: Option<u32>,
    #[command(flatten, next_help_heading = "Selection")]
    pub(crate) filters: Filters,
}

/// Filters of processes, threads, times and frames.
#[derive(Debug, Args)]
pub(crate) struct Filters {
    /// Show frames inside the interpreter and libraries too
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten, next_help_heading = "Selection")]
    pub(crate) scope: Scope,
    /// Only functions that match: a part of the name, file or module, or a pattern like function:Model.* or
    /// file:*/nn/*; function:=f matches exactly f
    #[arg(long, value_name = "PATTERN")]
    pub(crate) include: Vec<String>,
    /// Hide functions that match
    #[arg(long, value_name = "PATTERN")]
    pub(crate) exclude: Vec<String>,
    /// Only frames of this kind
    #[arg(long, value_name = "KIND", value_parser = frame_kind())]
    pub(crate) kind: Vec<FrameKind>,
}

/// Filters of processes, threads and times.
#[derive(Debug, Args)]
pub(crate) struct Scope {
    /// Only this process
    #[arg(long, value_name = "PID")]
    pub(crate) process: Vec<u32>,
    /// Only this thread, by name or number
    #[arg(long, value_name = "THREAD")]
    pub(crate) thread: Vec<String>,
    /// Only from this time on, since the start of the recording: 1.5s, 200ms
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) start: Option<Duration>,
    /// Only up to this time
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) end: Option<Duration>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum MeasureChoice {
    /// Wall time of calls and spans
    Time,
    /// The number of calls: the same on every machine
    Calls,
    /// Sampled stacks
    Samples,
    /// Allocated bytes
    Bytes,
    /// Allocations
    Allocations,
    /// Bytes that were live at the end
    Live,
    /// Bytes that were live at the peak
    Peak,
    /// Bytes that were freed soon after their allocation
    Temporary,
}

/// Returns the parser of a kind of frames; the most common kind is listed first.
fn frame_kind() -> impl TypedValueParser<Value = FrameKind> {
    let names = PossibleValuesParser::new(["python", "native", "script", "extra", "span"]);
    names.try_map(|name| FrameKind::from_name(&name).ok_or("not a kind of frames"))
}

/// Parses a time in seconds, or with a unit.
fn time(text: &str) -> Result<Duration, String> {
    let units = [("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("", 1.0)];
    let (number, seconds) =
        units.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds))).unwrap_or((text, &1.0));
    let value: f64 = number.trim().parse().map_err(|_| "write a time like 1.5s or 200ms".to_owned())?;
    Duration::try_from_secs_f64(value * seconds).map_err(|_| "a time can't be negative".to_owned())
}

/// Parses a number that is not negative, with or without a percent sign.
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
        ProgramArguments::command().debug_assert();
    }

    #[test]
    fn times_have_units() {
        let seconds = |text| time(text).map(|time| time.as_secs_f64());
        assert_eq!([seconds("2"), seconds("1.5s"), seconds("250ms"), seconds("7us")], [2.0, 1.5, 0.25, 7e-6].map(Ok));
        assert!(["", "s", "one", "-1s", "1h"].iter().all(|text| time(text).is_err()));
    }
}

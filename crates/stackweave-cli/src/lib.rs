//! The `stackweave` command: records programs, and shows recordings.
//!
//! The Rust binary and the command of the Python package both call [`run`]. The text output for profiles is in
//! [`text`], which the Python package uses too.
#![forbid(unsafe_code)]

mod argument_errors;
mod arguments;
mod browser;
mod calendar;
mod completions;
mod diff;
mod diff_gate;
mod diff_json;
mod examples;
mod export;
mod failure;
mod flame;
mod flame_json;
mod heap;
mod heap_json;
mod heap_json_devices;
mod help;
mod info;
mod info_json;
mod info_text;
mod interrupt;
mod json_tree;
mod json_values;
mod live;
mod merge;
mod open_recordings;
mod output;
mod phases;
mod phases_json;
mod progress;
mod python_commands;
mod report;
mod run_python;
mod safe_output;
mod screen;
mod selection;
mod stacks;
mod stacks_json;
mod stacks_text;
mod table_notes;
pub mod text;
mod top;
mod tree;
mod tree_json;

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches};

use arguments::{Command, ProgramArguments};
use failure::Failure;
use safe_output::say;
use screen::ColourChoice;

/// Runs the command with these arguments; the first is the name of the program. Writes to standard output and error.
///
/// The exit status is 0, or 1 after one sentence on standard error; 2 if the arguments are wrong, 3 if a gate did not
/// pass.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let given = arguments.into_iter().skip(1);
    let arguments = help::with_help_flag(std::iter::once("stackweave".into()).chain(given).collect());
    let colour = ColourChoice::from_arguments(&arguments);
    colour.choose();
    let mut command = help::with_page(ProgramArguments::command(), colour);
    if arguments.len() <= 1 {
        return status(command.print_help().map_err(|error| Failure::output(&error)));
    }
    let parsed = command.try_get_matches_from_mut(&arguments);
    let program = match parsed.and_then(|matches| ProgramArguments::from_arg_matches(&matches)) {
        Ok(program) => program,
        // clap returns help and version as errors, which go to standard output.
        Err(text) if !text.use_stderr() => return status(text.print().map_err(|error| Failure::output(&error))),
        Err(wrong) => {
            say(argument_errors::sentence(&wrong, &command, &arguments));
            return 2;
        }
    };
    status(execute(program.command))
}

/// Returns the exit status, after printing the failure.
fn status(done: Result<(), Failure>) -> u8 {
    match done {
        Ok(()) => 0,
        Err(failure) => {
            if !matches!(failure, Failure::Closed) {
                say(format_args!("stackweave: {failure}"));
            }
            failure.status()
        }
    }
}

fn execute(command: Command) -> Result<(), Failure> {
    match command {
        Command::Trace(arguments) => run_python::run("trace", arguments),
        Command::Memory(arguments) => run_python::run("memory", arguments),
        Command::Record(arguments) => run_python::run("record", arguments),
        Command::Dynamo(arguments) => run_python::run("dynamo", arguments),
        Command::Doctor(arguments) => run_python::run("doctor", arguments),
        Command::Stacks(arguments) => stacks::run(&arguments),
        Command::Live(arguments) => live::run(&arguments),
        Command::Info(arguments) => info::run(&arguments),
        Command::Heap(arguments) => heap::run(&arguments),
        Command::Phases(arguments) => phases::run(&arguments),
        Command::Tree(arguments) => tree::run(&arguments),
        Command::Top(arguments) => top::run(&arguments),
        Command::Flame(arguments) => flame::run(&arguments),
        Command::Diff(arguments) => diff::run(&arguments),
        Command::Report(arguments) => report::run(&arguments),
        Command::Export(arguments) => export::run(&arguments),
        Command::Merge(arguments) => merge::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments),
        // `with_help_flag` has rewritten it to that command's --help.
        Command::Help(_) => Ok(()),
    }
}

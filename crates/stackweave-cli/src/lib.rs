//! The `stackweave` command: records programs, and shows what is in a recording and what it cost.
//!
//! The Rust binary and the command of the Python package are this one function, [`run`].
#![forbid(unsafe_code)]

mod arguments;
mod browser;
mod calendar;
mod completions;
mod diff;
mod export;
mod failure;
mod flame;
mod heap;
mod heap_json;
mod info;
mod info_json;
mod info_text;
mod live;
mod merge;
mod phases;
mod phases_json;
mod progress;
mod report;
mod run_python;
mod selection;
mod short_name;
mod stacks;
mod stacks_json;
mod stacks_text;
mod top;
mod tree;

use std::ffi::OsString;
use std::io::{self, Write};

use clap::Parser;

use arguments::{Command, Program};
use failure::Failure;

/// Runs the command with these arguments, the name of the program first. Writes to standard output and error.
///
/// The exit status is 0, or 1 after one sentence on standard error; 2 where the arguments are wrong.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let program = match Program::try_parse_from(arguments) {
        Ok(program) => program,
        Err(said) => {
            // Help and version are told in the same way, on standard output and with status 0.
            let _ = said.print();
            return if said.use_stderr() { 2 } else { 0 };
        }
    };
    match execute(program.command) {
        Ok(()) | Err(Failure::Closed) => 0,
        Err(failure) => {
            let _ = writeln!(io::stderr(), "stackweave: {failure}");
            1
        }
    }
}

fn execute(command: Command) -> Result<(), Failure> {
    match command {
        Command::Trace(arguments) => run_python::run("trace", arguments),
        Command::Memory(arguments) => run_python::run("memory", arguments),
        Command::Run(arguments) => run_python::run("run", arguments),
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
    }
}

//! `stackweave stacks`: the current stacks of the threads of a running process.

use clap::Args;
use stackweave_core::text_matches;
use stackweave_remote::{InspectionOptions, ProcessStacks, ThreadStack, stacks_of};

use crate::failure::Failure;
use crate::screen::{OutputFeatures, show, show_json};
use crate::{stacks_json, stacks_text};

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a word of the command line")]
#[command(after_help = "\
Examples:
  stackweave stacks 4711
  stackweave stacks 4711 --thread MainThread --all
  stackweave stacks $(pgrep -f train.py) --json

The process is stopped for some milliseconds, and not changed. It needs no preparation.")]
pub(crate) struct StacksArguments {
    /// The process id, or the id of one of its threads
    #[arg(value_name = "PID")]
    pub(crate) process: u32,
    /// Show frames inside the interpreter and libraries too
    #[arg(long)]
    pub(crate) all: bool,
    /// Show Python frames only
    #[arg(long, conflicts_with = "native")]
    pub(crate) python: bool,
    /// Show native frames only
    #[arg(long)]
    pub(crate) native: bool,
    /// Show only threads with this number or name: a part of it, or a pattern with *; may be given several times
    #[arg(long, value_name = "THREAD")]
    pub(crate) thread: Vec<String>,
    /// Write JSON: every frame of every thread
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(arguments: &StacksArguments) -> Result<(), Failure> {
    let mut options = InspectionOptions::default();
    options.symbolize = stackweave_symbolize::SymbolizerOptions::from_environment().map_err(Failure::new)?;
    options.python = !arguments.native;
    options.native = !arguments.python;
    let mut stacks = stacks_of(arguments.process, &options).map_err(Failure::new)?;
    arguments.choose_threads(&mut stacks)?;
    if arguments.json {
        return show_json(|out| stacks_json::write(out, &stacks));
    }
    let OutputFeatures { colour, .. } = OutputFeatures::of_output();
    show(&stacks.remarks, |out| stacks_text::write(out, &stacks, arguments.all, colour))
}

impl StacksArguments {
    /// Keeps the selected threads.
    fn choose_threads(&self, stacks: &mut ProcessStacks) -> Result<(), Failure> {
        let is = |thread: &ThreadStack, wanted: &str| {
            let names = [&thread.name, &thread.kernel_name];
            wanted.parse() == Ok(thread.task) || names.iter().any(|name| text_matches(wanted, name))
        };
        for wanted in &self.thread {
            if !stacks.threads.iter().any(|thread| is(thread, wanted)) {
                let process = stacks.process;
                return Err(Failure::new(format!(
                    "process {process} has no thread {wanted}; without --thread all are shown"
                )));
            }
        }
        if !self.thread.is_empty() {
            stacks.threads.retain(|thread| self.thread.iter().any(|wanted| is(thread, wanted)));
        }
        Ok(())
    }
}

//! `stackweave completions`: completions for shells.

use std::io;

use clap::{Args, Command, CommandFactory};
use clap_complete::{Shell, generate};

use crate::arguments::ProgramArguments;
use crate::failure::Failure;
use crate::python_commands::PythonCommand;
use crate::screen::show;

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: Shell,
}

pub(crate) fn run(arguments: &Completions) -> Result<(), Failure> {
    let mut text = Vec::new();
    generate(arguments.shell, &mut command(), "stackweave", &mut text);
    let text = if arguments.shell == Shell::Bash { without_names(&text) } else { text };
    show(&[], |out| io::Write::write_all(out, &text))
}

/// Returns the command with the options of the Python package's commands.
fn command() -> Command {
    let command = ProgramArguments::command();
    let names: Vec<String> = command.get_subcommands().map(|one| one.get_name().to_owned()).collect();
    names.iter().fold(command, |command, name| match PythonCommand::of(name) {
        Some(python) => command.mut_subcommand(name, |one| python.completed(one)),
        None => command,
    })
}

/// Removes the names of arguments, which bash would offer as words; without them it completes files.
fn without_names(script: &[u8]) -> Vec<u8> {
    let script = String::from_utf8_lossy(script);
    let line = |line: &str| match line.trim_start().strip_prefix("opts=\"") {
        Some(words) => {
            let indent = &line[..line.len() - line.trim_start().len()];
            let kept = words.trim_end_matches('"').split(' ').filter(|word| !word.starts_with(['<', '[']));
            let kept: Vec<&str> = kept.filter(|word| !word.ends_with(['>', ']']) && !word.ends_with("...")).collect();
            format!("{indent}opts=\"{}\"", kept.join(" "))
        }
        None => line.to_owned(),
    };
    script.lines().map(line).map(|line| line + "\n").collect::<String>().into_bytes()
}

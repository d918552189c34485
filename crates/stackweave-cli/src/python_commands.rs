//! The options of the Python package's commands, as far as they are known without a Python.
//!
//! `python_commands.json` is written by scripts/write-command-reference from the package's own parsers.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::sync::LazyLock;

use clap::{Arg, ArgAction, Command, ValueHint};
use serde_json::Value;

static TABLE: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("python_commands.json")).unwrap_or_default());

/// A command of the Python package.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PythonCommand(&'static Value);

impl PythonCommand {
    /// Returns the command of this name, if the package had it when the table was written.
    pub(crate) fn of(name: &str) -> Option<Self> {
        TABLE.get(name).map(Self)
    }

    fn groups(self) -> impl Iterator<Item = (&'static str, &'static [Value])> {
        self.0["groups"].as_array().map_or(&[][..], Vec::as_slice).iter().map(|group| {
            (group["title"].as_str().unwrap_or_default(), group["options"].as_array().map_or(&[][..], Vec::as_slice))
        })
    }

    fn options(self) -> impl Iterator<Item = &'static Value> {
        self.groups().flat_map(|(_, options)| options)
    }

    /// Returns whether the arguments before the program request help.
    pub(crate) fn is_help(self, arguments: &[OsString]) -> bool {
        let mut words = arguments.iter().map(|word| word.to_string_lossy());
        while let Some(word) = words.next() {
            if word == "-h" || word == "--help" {
                return true;
            }
            if !word.starts_with('-') || word == "--" || word.starts_with("-m") || word.starts_with("-c") {
                return false;
            }
            let is_it = |option: &&'static Value| texts(&option["flags"]).any(|flag| flag == word);
            if self.options().find(is_it).is_some_and(|option| option["value"].is_string()) {
                words.next();
            }
        }
        false
    }

    /// Returns the help as the package itself would print it.
    pub(crate) fn help(self) -> String {
        let text = |name: &str| self.0[name].as_str().unwrap_or_default();
        let mut help = format!("{}\n\nUsage: {}\n", text("description"), text("usage"));
        for (title, options) in self.groups() {
            let _ = write!(help, "\n{}:\n", capitalised(title));
            for option in options {
                put_option(&mut help, option);
            }
        }
        if !text("examples").is_empty() {
            let _ = write!(help, "\n{}\n", capitalised(text("examples")));
        }
        help
    }

    /// Adds the options to a command, for shell completions.
    pub(crate) fn completed(self, command: Command) -> Command {
        let mut command = command.mut_arg("arguments", |arg| arg.value_hint(ValueHint::FilePath));
        let known: Vec<String> = command.get_arguments().filter_map(Arg::get_long).map(str::to_owned).collect();
        for option in self.options() {
            let Some(flag) = texts(&option["flags"]).find(|flag| flag.starts_with("--")) else { continue };
            let long = flag.trim_start_matches('-');
            if known.iter().any(|other| other == long) {
                continue;
            }
            let short = texts(&option["flags"]).find_map(|flag| flag.strip_prefix('-').filter(|rest| rest.len() == 1));
            let mut arg = Arg::new(flag).long(long).help(option["help"].as_str().unwrap_or_default());
            arg = arg.action(if option["value"].is_string() { ArgAction::Set } else { ArgAction::SetTrue });
            if let Some(short) = short.and_then(|short| short.chars().next()) {
                arg = arg.short(short);
            }
            if let Some(value) = option["value"].as_str() {
                arg = arg.value_name(value);
                let is_file = value.contains("FILE");
                arg = arg.value_hint(if is_file { ValueHint::FilePath } else { ValueHint::Other });
                let choices: Vec<&str> = texts(&option["choices"]).collect();
                if !choices.is_empty() {
                    arg = arg.value_parser(clap::builder::PossibleValuesParser::new(choices));
                }
            }
            command = command.arg(arg);
        }
        command
    }
}

fn texts(list: &'static Value) -> impl Iterator<Item = &'static str> {
    list.as_array().map_or(&[][..], Vec::as_slice).iter().filter_map(Value::as_str)
}

/// The width of the column of flags.
const FLAGS: usize = 28;

fn put_option(help: &mut String, option: &'static Value) {
    let mut flags = texts(&option["flags"]).collect::<Vec<_>>().join(", ");
    if let Some(value) = option["value"].as_str() {
        flags = format!("{flags} {value}");
    }
    let text = option["help"].as_str().unwrap_or_default();
    if flags.chars().count() + 2 > FLAGS {
        let _ = write!(help, "  {flags}\n  {:FLAGS$}{text}\n", "");
    } else {
        let _ = writeln!(help, "  {flags:<FLAGS$}{text}");
    }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_options_and_examples() {
        for name in ["trace", "memory", "dynamo"] {
            let help = PythonCommand::of(name).map(PythonCommand::help).unwrap_or_default();
            assert!(help.contains("--output FILE") && help.contains("\nExamples:"), "{help}");
        }
        assert!(PythonCommand::of("paint").is_none());
    }

    #[test]
    fn help_is_recognized_only_before_the_program() {
        let Some(trace) = PythonCommand::of("trace") else { panic!("no trace") };
        let is_help = |words: &[&str]| trace.is_help(&words.iter().map(OsString::from).collect::<Vec<_>>());
        assert!(is_help(&["--help"]) && is_help(&["-o", "x.swv", "-h"]) && is_help(&["--demote", "-h", "a.py"]));
        assert!(
            !is_help(&["a.py", "--help"])
                && !is_help(&["-m", "pack", "-h"])
                && !is_help(&["-o", "-h"])
                && !is_help(&[])
        );
    }
}

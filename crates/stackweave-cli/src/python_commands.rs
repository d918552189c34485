//! The options of the Python package's commands, as far as they are known without a Python.
//!
//! `python_commands.json` is written by scripts/write-command-reference from the package's own parsers.

use std::ffi::OsString;
use std::sync::LazyLock;

use clap::builder::{PossibleValuesParser, StyledStr};
use clap::{Arg, ArgAction, Command, ValueHint};
use serde_json::Value;

use crate::help::WIDTH;

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
            let takes_next = |option: &Value| option["value"].is_string() && !has_optional_value(option);
            if self.options().find(is_it).is_some_and(takes_next) {
                words.next();
            }
        }
        false
    }

    /// Returns the help, which differs from that of the package only in its layout.
    pub(crate) fn help(self) -> StyledStr {
        let text = |name: &str| self.0[name].as_str().unwrap_or_default();
        let command = Command::new("stackweave").about(text("description")).override_usage(text("usage"));
        let command = command.after_help(text("examples")).disable_help_flag(true).max_term_width(WIDTH);
        self.with_options(command).render_help()
    }

    /// Adds the options to a command, for shell completions.
    pub(crate) fn completed(self, command: Command) -> Command {
        self.with_options(command.mut_arg("arguments", |arg| arg.value_hint(ValueHint::FilePath)))
    }

    fn with_options(self, mut command: Command) -> Command {
        let known: Vec<String> = command.get_arguments().filter_map(Arg::get_long).map(str::to_owned).collect();
        for (title, options) in self.groups() {
            let args = options.iter().filter_map(argument);
            let new = args.filter(|arg| !known.iter().any(|other| arg.get_long() == Some(other)));
            command = command.args(new.map(|arg| arg.help_heading(title)));
        }
        command
    }
}

/// Returns an option, unless it has no long name.
fn argument(option: &'static Value) -> Option<Arg> {
    let flag = texts(&option["flags"]).find(|flag| flag.starts_with("--"))?;
    let short = texts(&option["flags"]).find_map(|flag| flag.strip_prefix('-').filter(|rest| rest.len() == 1));
    let arg = Arg::new(flag).long(flag.trim_start_matches('-')).short(short.and_then(|short| short.chars().next()));
    let arg = arg.help(option["help"].as_str().unwrap_or_default());
    let Some(value) = option["value"].as_str() else { return Some(arg.action(ArgAction::SetTrue)) };
    let hint = if value.contains("FILE") { ValueHint::FilePath } else { ValueHint::Other };
    let arg = arg.action(ArgAction::Set).value_name(value).value_hint(hint).hide_possible_values(true);
    let arg = if has_optional_value(option) { arg.num_args(0..=1).require_equals(true) } else { arg };
    let choices: Vec<&str> = texts(&option["choices"]).collect();
    Some(if choices.is_empty() { arg } else { arg.value_parser(PossibleValuesParser::new(choices)) })
}

/// Returns whether a value follows only after an equals sign.
fn has_optional_value(option: &Value) -> bool {
    option["optional"].as_bool().unwrap_or(false)
}

fn texts(list: &'static Value) -> impl Iterator<Item = &'static str> {
    list.as_array().map_or(&[][..], Vec::as_slice).iter().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_options_and_examples() {
        for name in ["trace", "memory", "dynamo"] {
            let help = PythonCommand::of(name).map(PythonCommand::help).unwrap_or_default().to_string();
            assert!(help.contains("--output <FILE>") && help.contains("\nExamples:"), "{help}");
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

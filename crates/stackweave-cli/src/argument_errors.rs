//! Messages about wrong arguments, in one sentence.

use std::error::Error as _;
use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};

/// Returns the message about wrong arguments, which names the command and its help.
pub(crate) fn sentence(error: &Error, command: &Command, arguments: &[OsString]) -> String {
    let name = match command_of(command, arguments) {
        Some(name) if error.kind() != ErrorKind::InvalidSubcommand => format!("stackweave {name}"),
        _ => "stackweave".to_owned(),
    };
    let problem = match error.kind() {
        ErrorKind::InvalidSubcommand => no_command(error, command),
        _ => problem(error),
    };
    let see = if problem.ends_with('?') { " See" } else { "; see" };
    format!("{name}: {problem}{see} {name} --help")
}

/// Returns the first command that the arguments name.
fn command_of<'a>(command: &'a Command, arguments: &[OsString]) -> Option<&'a str> {
    let words = arguments.iter().skip(1).filter_map(|word| word.to_str());
    words.into_iter().find_map(|word| command.find_subcommand(word)).map(Command::get_name)
}

/// The number of letters in which a suggested command may differ.
const MAX_DISTANCE: usize = 2;

fn no_command(error: &Error, command: &Command) -> String {
    let wrong = error.get(ContextKind::InvalidSubcommand).map(shown).unwrap_or_default();
    let distance = |name: &str| strsim::damerau_levenshtein(&wrong, name);
    let names = command.get_subcommands().map(Command::get_name);
    let nearest =
        names.min_by_key(|name| distance(name)).filter(|name| distance(name) <= MAX_DISTANCE.min(name.len() / 2));
    let meant = nearest.map_or_else(String::new, |name| format!("; did you mean {name}?"));
    format!("there is no command {wrong}{meant}")
}

/// Rewrites the message about a wrong number.
fn in_words(why: &str) -> String {
    if why.contains("invalid digit") || why.contains("empty string") {
        return "write a whole number".to_owned();
    }
    if let Some((_, range)) = why.split_once(" is not in ")
        && let Some((least, most)) = range.split_once("..")
    {
        let least = if least.is_empty() { "0" } else { least };
        let (most, is_in) = most.strip_prefix('=').map_or((most, false), |most| (most, true));
        return if is_in {
            format!("write a number from {least} to {most}")
        } else {
            format!("write a number below {most}")
        };
    }
    why.to_owned()
}

fn problem(error: &Error) -> String {
    let text = |kind| error.get(kind).map(shown).unwrap_or_default();
    let option = || bare(&text(ContextKind::InvalidArg));
    let value = || text(ContextKind::InvalidValue);
    let message = match error.kind() {
        ErrorKind::UnknownArgument if option().starts_with('-') => format!("there is no option {}", option()),
        ErrorKind::UnknownArgument => format!("'{}' is one argument too many", option()),
        ErrorKind::MissingRequiredArgument => format!("{} is missing", option()),
        ErrorKind::InvalidValue if value().is_empty() => format!("{} needs a value{}", option(), choices(error)),
        ErrorKind::InvalidValue => format!("{} can't be '{}'{}", option(), value(), choices(error)),
        ErrorKind::ValueValidation => {
            let why = error.source().map(ToString::to_string).unwrap_or_default();
            format!("{} can't be '{}': {}", option(), value(), in_words(&why))
        }
        ErrorKind::ArgumentConflict if option() == bare(&text(ContextKind::PriorArg)) => {
            format!("{} is given twice", option())
        }
        ErrorKind::ArgumentConflict => {
            format!("{} can't be given together with {}", option(), bare(&text(ContextKind::PriorArg)))
        }
        ErrorKind::TooManyValues => format!("'{}' is one value too many for {}", value(), option()),
        ErrorKind::TooFewValues | ErrorKind::WrongNumberOfValues => {
            format!("{} needs another number of values", option())
        }
        _ => first_line(error),
    };
    format!("{message}{}", suggestion(error))
}

/// Returns the values that the option takes, if they are few.
fn choices(error: &Error) -> String {
    match error.get(ContextKind::ValidValue).map(shown) {
        Some(words) if !words.is_empty() => format!(", only {words}"),
        _ => String::new(),
    }
}

fn suggestion(error: &Error) -> String {
    let kinds = [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue];
    match kinds.into_iter().find_map(|kind| error.get(kind)).map(shown) {
        Some(words) if !words.is_empty() => format!("; did you mean {}?", words.replace(", ", " or ")),
        _ => String::new(),
    }
}

/// Returns an argument without the name of its value: `--measure`, `RECORDING`.
fn bare(argument: &str) -> String {
    let first = |one: &str| -> String {
        let word = one.split_whitespace().next().unwrap_or(one);
        word.trim_matches(|letter| matches!(letter, '<' | '>' | '[' | ']' | '.')).to_owned()
    };
    argument.split(", ").map(first).collect::<Vec<_>>().join(" and ")
}

fn shown(value: &ContextValue) -> String {
    match value {
        ContextValue::String(text) => text.clone(),
        ContextValue::Strings(texts) => texts.join(", "),
        other => other.to_string(),
    }
}

fn first_line(error: &Error) -> String {
    let text = error.render().to_string();
    text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

//! The help page with all commands, by purpose.

use std::ffi::OsString;
use std::fmt::Write as _;

use clap::builder::StyledStr;
use clap::{Arg, ArgAction, ColorChoice, Command};

use crate::screen::ColourChoice;

/// The groups of commands. Each command is in one of them.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Record", &["record", "trace", "memory", "dynamo"]),
    ("Inspect", &["top", "tree", "flame", "heap", "phases", "diff", "info", "live"]),
    ("Share", &["report", "export", "merge"]),
    ("Diagnose, set up", &["stacks", "doctor", "completions", "help"]),
];

const HEAD: &str = "\x1b[1;4m";
const WORD: &str = "\x1b[1m";
const RESET: &str = "\x1b[0m";

/// Adds the help page to the command.
pub(crate) fn with_page(command: Command, colour: ColourChoice) -> Command {
    let choice = match colour {
        ColourChoice::Auto => ColorChoice::Auto,
        ColourChoice::Always => ColorChoice::Always,
        ColourChoice::Never => ColorChoice::Never,
    };
    let page = page(&command);
    let names: Vec<String> = command.get_subcommands().map(|one| one.get_name().to_owned()).collect();
    let command = names.iter().fold(command, |command, name| command.mut_subcommand(name, with_short_help));
    command.help_template(page).color(choice).max_term_width(WIDTH)
}

/// The maximum width of help texts, however wide the screen is.
pub(crate) const WIDTH: usize = 100;

/// Gives `-h` and `--help` the same short help.
fn with_short_help(command: Command) -> Command {
    if command.is_disable_help_flag_set() {
        return command;
    }
    let help = Arg::new("help").short('h').long("help").action(ArgAction::HelpShort).help("Print help");
    command.disable_help_flag(true).arg(help)
}

fn page(command: &Command) -> StyledStr {
    let mut page = format!("{{about-with-newline}}\n{HEAD}Usage:{RESET} {WORD}stackweave{RESET} COMMAND [OPTIONS]\n");
    for (title, names) in GROUPS {
        let _ = write!(page, "\n{HEAD}{title}:{RESET}\n");
        for one in names.iter().filter_map(|name| command.find_subcommand(name)) {
            let about = one.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(page, "  {WORD}{:<13}{RESET}{about}", one.get_name());
        }
    }
    let _ = write!(page, "\n{HEAD}Options:{RESET}\n{{options}}{{after-help}}");
    page.into()
}

/// Rewrites `help COMMAND` to that command's `--help`.
pub(crate) fn with_help_flag(mut arguments: Vec<OsString>) -> Vec<OsString> {
    if arguments.get(1).is_some_and(|word| word == "help") {
        arguments.remove(1);
        arguments.truncate(2);
        if !arguments.get(1).is_some_and(|word| word.to_string_lossy().starts_with('-')) {
            arguments.push("--help".into());
        }
    }
    arguments
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::arguments::ProgramArguments;

    #[test]
    fn every_command_is_in_one_group() {
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let command = ProgramArguments::command();
        let mut known: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        grouped.sort_unstable();
        known.sort_unstable();
        assert_eq!(grouped, known);
    }

    #[test]
    fn the_page_fits_on_a_screen() {
        let mut command = with_page(ProgramArguments::command(), ColourChoice::Never);
        let page = command.render_help().to_string();
        assert!(page.lines().count() <= 40, "{page}");
        assert!(page.lines().all(|line| line.chars().count() <= 100), "{page}");
    }

    #[test]
    fn help_with_a_command_is_the_help_of_that_command() {
        let rewritten = |words: &[&str]| {
            let words = with_help_flag(words.iter().map(OsString::from).collect());
            words.into_iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(rewritten(&["stackweave", "help"]), "stackweave --help");
        assert_eq!(rewritten(&["stackweave", "help", "top"]), "stackweave top --help");
        assert_eq!(rewritten(&["stackweave", "help", "--help"]), "stackweave --help");
        assert_eq!(rewritten(&["stackweave", "top", "help"]), "stackweave top help");
    }
}

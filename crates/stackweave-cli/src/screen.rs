//! The abilities of standard output, and writing to it.

use std::env;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicU8, Ordering};

use clap::ValueEnum;

use crate::failure::Failure;
use crate::safe_output::{Content, SafeOutput, say};
use crate::text::Palette;

/// The choice of when to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColourChoice {
    /// On a terminal, unless `NO_COLOR` is set; anywhere if `CLICOLOR_FORCE` is
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

static CHOICE: AtomicU8 = AtomicU8::new(0);

impl ColourChoice {
    /// Returns the choice on the command line before it is parsed, so that parse errors follow it too.
    pub(crate) fn from_arguments(arguments: &[OsString]) -> Self {
        let mut words = arguments.iter().skip(1).take_while(|word| *word != "--").filter_map(|word| word.to_str());
        while let Some(word) = words.next() {
            let value = match word.strip_prefix("--color") {
                Some("") => words.next(),
                Some(rest) => rest.strip_prefix('='),
                None => None,
            };
            if let Some(choice) = value.and_then(|value| Self::from_str(value, false).ok()) {
                return choice;
            }
        }
        Self::Auto
    }

    /// Makes this the choice of the process.
    pub(crate) fn choose(self) {
        CHOICE.store(self as u8, Ordering::Relaxed);
    }

    /// Returns whether a stream is written with colours.
    pub(crate) fn allows(self, is_terminal: bool) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => by_environment(is_terminal, |name| env::var(name).ok().filter(|value| !value.is_empty())),
        }
    }

    fn chosen() -> Self {
        match CHOICE.load(Ordering::Relaxed) {
            1 => Self::Always,
            2 => Self::Never,
            _ => Self::Auto,
        }
    }
}

fn by_environment(is_terminal: bool, variable: impl Fn(&str) -> Option<String>) -> bool {
    if variable("NO_COLOR").is_some() {
        return false;
    }
    if variable("CLICOLOR_FORCE").is_some_and(|value| value != "0") {
        return true;
    }
    let is_refused = variable("CLICOLOR").is_some_and(|value| value == "0");
    is_terminal && !is_refused && variable("TERM").is_none_or(|name| name != "dumb")
}

/// The abilities of standard output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutputFeatures {
    /// The maximum number of columns; `None` if the output is not a terminal.
    pub(crate) width: Option<usize>,
    /// The number of lines on the screen.
    pub(crate) height: Option<usize>,
    pub(crate) colour: bool,
}

impl OutputFeatures {
    pub(crate) fn of_output() -> Self {
        let is_terminal = io::stdout().is_terminal();
        let size = is_terminal.then(|| console::Term::stdout().size());
        Self {
            width: size.map(|(_, width)| width.into()),
            height: size.map(|(height, _)| height.into()),
            colour: ColourChoice::chosen().allows(is_terminal),
        }
    }

    /// Returns the colours for flame graphs that the terminal supports.
    pub(crate) fn palette(self) -> Palette {
        let has = |name: &str, words: &[&str]| {
            env::var(name).is_ok_and(|value| words.iter().any(|word| value.contains(word)))
        };
        let is_full = has("COLORTERM", &["truecolor", "24bit"]) || has("TERM", &["direct"]);
        let is_fixed = has("TERM", &["256", "kitty", "alacritty", "ghostty", "wezterm"]);
        if self.colour && is_full {
            Palette::Full
        } else if self.colour && (is_fixed || ColourChoice::chosen() == ColourChoice::Always) {
            Palette::Fixed
        } else {
            Palette::Plain
        }
    }
}

/// Writes text to standard output, and then the remarks to standard error.
pub(crate) fn show(remarks: &[String], write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    show_as(Content::Text { colour: OutputFeatures::of_output().colour }, write)?;
    for remark in remarks {
        say(format_args!("stackweave: {remark}"));
    }
    Ok(())
}

/// Writes JSON to standard output.
pub(crate) fn show_json(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    show_as(Content::Json, write)
}

fn show_as(content: Content, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let mut out = SafeOutput::new(io::BufWriter::new(io::stdout().lock()), content);
    write(&mut out).and_then(|()| out.flush()).map_err(|error| Failure::output(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environment_variables_have_an_order_of_precedence() {
        let with = |variables: &[(&str, &str)], is_terminal| {
            let value =
                |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string());
            by_environment(is_terminal, value)
        };
        assert!(with(&[], true) && !with(&[], false));
        assert!(!with(&[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")], true));
        assert!(with(&[("CLICOLOR_FORCE", "1")], false) && !with(&[("CLICOLOR_FORCE", "0")], false));
        assert!(!with(&[("CLICOLOR", "0")], true) && !with(&[("TERM", "dumb")], true));
    }

    #[test]
    fn the_colour_choice_is_found_before_the_arguments_are_parsed() {
        let choice =
            |words: &[&str]| ColourChoice::from_arguments(&words.iter().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(choice(&["stackweave", "top", "--color", "always"]), ColourChoice::Always);
        assert_eq!(choice(&["stackweave", "--color=never", "paint"]), ColourChoice::Never);
        assert_eq!(choice(&["stackweave", "top", "--color", "blue"]), ColourChoice::Auto);
        assert_eq!(choice(&["stackweave", "trace", "--", "--color=always"]), ColourChoice::Auto);
    }
}

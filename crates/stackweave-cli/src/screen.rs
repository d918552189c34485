//! What standard output can show, and what is written to it.

use std::env;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicU8, Ordering};

use clap::ValueEnum;

use crate::failure::Failure;
use crate::safe_output::{Content, SafeOutput, say};
use crate::text::Palette;

/// When colours are used.
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
    /// What is said on the command line, before it is understood: also its errors have colours, or none.
    pub(crate) fn said(arguments: &[OsString]) -> Self {
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

    /// Makes it the choice of all that follows.
    pub(crate) fn choose(self) {
        CHOICE.store(self as u8, Ordering::Relaxed);
    }

    /// Whether a stream has colours.
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

/// What standard output can show.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Screen {
    /// How many columns a line may have: as many as it needs, where nobody looks.
    pub(crate) width: Option<usize>,
    /// How many lines are seen at once.
    pub(crate) height: Option<usize>,
    pub(crate) colour: bool,
}

impl Screen {
    pub(crate) fn of_output() -> Self {
        let is_terminal = io::stdout().is_terminal();
        let size = is_terminal.then(|| console::Term::stdout().size());
        Self {
            width: size.map(|(_, width)| width.into()),
            height: size.map(|(height, _)| height.into()),
            colour: ColourChoice::chosen().allows(is_terminal),
        }
    }

    /// The colours for what is painted, as far as the terminal says that it has them.
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

/// Writes lines for people to standard output, and behind that what has to be said to standard error.
pub(crate) fn show(remarks: &[String], write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    show_as(Content::Text { colour: Screen::of_output().colour }, write)?;
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
    fn the_environment_is_asked_in_its_order() {
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
    fn the_choice_is_known_before_the_rest_is_understood() {
        let said = |words: &[&str]| ColourChoice::said(&words.iter().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(said(&["stackweave", "top", "--color", "always"]), ColourChoice::Always);
        assert_eq!(said(&["stackweave", "--color=never", "paint"]), ColourChoice::Never);
        assert_eq!(said(&["stackweave", "top", "--color", "blue"]), ColourChoice::Auto);
        assert_eq!(said(&["stackweave", "trace", "--", "--color=always"]), ColourChoice::Auto);
    }
}

//! What a function is called in a picture, and where it is.

use stackweave_profile::{FrameKind, Function};

/// Longer names are cut in their middle: a generated name of kilobytes tells nobody anything.
const LONGEST: usize = 240;

/// A function as a picture shows it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Named {
    pub(crate) name: String,
    /// File and line, or module; empty if neither is known.
    pub(crate) place: String,
}

impl Named {
    /// `line` is of a frame, where lines are told apart.
    pub(crate) fn of(function: &Function, line: Option<u32>) -> Self {
        let place = match function.kind {
            FrameKind::Native => function.module_name(),
            _ => function.filename.as_ref(),
        };
        let first = function.first_line.filter(|_| function.kind != FrameKind::Native);
        let line = line.or(first);
        Self { name: one_line(function.full_name()), place: place_text(place.map_or("", |text| text), line) }
    }

    /// A function of which no more is known.
    pub(crate) fn at(name: &str, file: &str, line: Option<u32>) -> Self {
        Self { name: one_line(name), place: place_text(file, line) }
    }

    /// Both, in one line.
    pub(crate) fn full(&self) -> String {
        if self.place.is_empty() { self.name.clone() } else { format!("{} ({})", self.name, self.place) }
    }
}

fn place_text(file: &str, line: Option<u32>) -> String {
    let file = file.rsplit('/').next().unwrap_or_default();
    match line {
        Some(line) if !file.is_empty() => format!("{}:{line}", one_line(file)),
        _ if file.is_empty() => String::new(),
        _ => one_line(file),
    }
}

/// A name that takes one line and not too much of it, and can be seen.
pub(crate) fn one_line(name: &str) -> String {
    if name.is_empty() {
        return "(no name)".to_owned();
    }
    let letter = |letter: char| if letter.is_control() { '\u{fffd}' } else { letter };
    let count = name.chars().take(LONGEST + 1).count();
    if count <= LONGEST {
        return name.chars().map(letter).collect();
    }
    let tail: Vec<char> = name.chars().rev().take(LONGEST / 3).map(letter).collect();
    let head = name.chars().take(LONGEST - tail.len() - 1).map(letter);
    head.chain(core::iter::once('…')).chain(tail.into_iter().rev()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_takes_one_line() {
        assert_eq!(one_line("a\nb\0c"), "a\u{fffd}b\u{fffd}c");
        assert_eq!(one_line(""), "(no name)");
        let long = one_line(&"0123456789".repeat(1000));
        assert_eq!(long.chars().count(), LONGEST);
        assert!(long.starts_with("0123") && long.ends_with("6789") && long.contains('…'));
    }
}

//! The name and location of a function in a picture.

use stackweave_profile::{FrameKind, Function};

/// Longer names are cut in the middle, such as generated names of kilobytes.
const MAX_LENGTH: usize = 240;

/// The label of a function.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FunctionLabel {
    pub(crate) name: String,
    /// File and line, or module; empty if neither is known.
    pub(crate) location: String,
}

impl FunctionLabel {
    /// Returns the label of a function, or of a frame at `line`, if lines are separate.
    pub(crate) fn of(function: &Function, line: Option<u32>) -> Self {
        let location = match function.kind {
            FrameKind::Native => function.module_name(),
            _ => function.filename.as_ref(),
        };
        let first = function.first_line.filter(|_| function.kind != FrameKind::Native);
        let line = line.or(first);
        Self { name: one_line(function.full_name()), location: location_text(location.map_or("", |text| text), line) }
    }

    /// Returns the label for a name and a file.
    pub(crate) fn at(name: &str, file: &str, line: Option<u32>) -> Self {
        Self { name: one_line(name), location: location_text(file, line) }
    }

    /// Returns name and location in one line.
    pub(crate) fn full(&self) -> String {
        if self.location.is_empty() { self.name.clone() } else { format!("{} ({})", self.name, self.location) }
    }
}

fn location_text(file: &str, line: Option<u32>) -> String {
    let file = file.rsplit('/').next().unwrap_or_default();
    match line {
        Some(line) if !file.is_empty() => format!("{}:{line}", one_line(file)),
        _ if file.is_empty() => String::new(),
        _ => one_line(file),
    }
}

/// Reduces a name to one line of limited length, with control characters made visible.
pub(crate) fn one_line(name: &str) -> String {
    if name.is_empty() {
        return "(no name)".to_owned();
    }
    let letter = |letter: char| if letter.is_control() { '\u{fffd}' } else { letter };
    let count = name.chars().take(MAX_LENGTH + 1).count();
    if count <= MAX_LENGTH {
        return name.chars().map(letter).collect();
    }
    let tail: Vec<char> = name.chars().rev().take(MAX_LENGTH / 3).map(letter).collect();
    let head = name.chars().take(MAX_LENGTH - tail.len() - 1).map(letter);
    head.chain(core::iter::once('…')).chain(tail.into_iter().rev()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_reduced_to_one_line() {
        assert_eq!(one_line("a\nb\0c"), "a\u{fffd}b\u{fffd}c");
        assert_eq!(one_line(""), "(no name)");
        let long = one_line(&"0123456789".repeat(1000));
        assert_eq!(long.chars().count(), MAX_LENGTH);
        assert!(long.starts_with("0123") && long.ends_with("6789") && long.contains('…'));
    }
}

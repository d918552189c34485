//! Colours, and texts of a given width.

/// The style of a text, if colours are enabled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Style {
    #[default]
    Plain,
    Head,
    Dim,
    Hot,
    Warm,
    Good,
}

impl Style {
    /// Returns the style of a share of the total: hot, warm, plain, or dim for a negligible one.
    pub(crate) fn of_share(share: f64) -> Self {
        match share.abs() {
            share if share >= 0.25 => Self::Hot,
            share if share >= 0.05 => Self::Warm,
            share if share >= 0.01 => Self::Plain,
            _ => Self::Dim,
        }
    }

    const fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Head => "\x1b[1m",
            Self::Dim => "\x1b[2m",
            Self::Hot => "\x1b[31;1m",
            Self::Warm => "\x1b[33m",
            Self::Good => "\x1b[32m",
        }
    }

    /// Appends the text in this style.
    pub(crate) fn put(self, line: &mut String, text: &str, colour: bool) {
        let is_styled = colour && self != Self::Plain && !text.is_empty();
        if is_styled {
            line.push_str(self.code());
        }
        line.push_str(text);
        if is_styled {
            line.push_str("\x1b[0m");
        }
    }
}

pub(crate) use stackweave_core::printable;

/// Returns the number of columns, one for each character.
pub(crate) fn width(text: &str) -> usize {
    text.chars().count()
}

/// Cuts the text to a number of columns in the middle, with a mark.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    let length = width(text);
    if length <= columns {
        return text.to_owned();
    }
    let kept = columns.saturating_sub(1);
    let (head, tail) = (kept.div_ceil(2), kept / 2);
    text.chars().take(head).chain(['…']).chain(text.chars().skip(length - tail)).collect()
}

/// Cuts the text to a number of columns at the start, with a mark.
pub(crate) fn cut_start(text: &str, columns: usize) -> String {
    let length = width(text);
    if length <= columns {
        return text.to_owned();
    }
    ['…'].into_iter().chain(text.chars().skip(length - columns.saturating_sub(1))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_to_a_width() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdefgh", 5), "ab…gh");
        assert_eq!(cut("äöüäöü", 4), "äö…ü");
        assert_eq!(cut_start("/srv/me/model.py", 9), "…model.py");
        assert_eq!((cut("abc", 1), cut_start("abc", 1)), ("…".to_owned(), "…".to_owned()));
        assert_eq!(printable("a\x1b[31m\nb"), "a\u{fffd}[31m\u{fffd}b");
    }

    #[test]
    fn colours_are_written_only_if_enabled() {
        let mut line = String::new();
        Style::Hot.put(&mut line, "a", false);
        Style::Plain.put(&mut line, "b", true);
        Style::Dim.put(&mut line, "", true);
        assert_eq!(line, "ab");
        Style::Good.put(&mut line, "c", true);
        assert_eq!(line, "ab\x1b[32mc\x1b[0m");
    }
}

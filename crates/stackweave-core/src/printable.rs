//! Untrusted text for a terminal.

/// Returns whether a terminal only displays this character: it moves no cursor, changes no colour, ends no line
/// and does not change the direction of writing. Names and paths in a recording are untrusted, and terminals obey
/// control characters.
pub const fn is_printable(letter: char) -> bool {
    let is_control = matches!(letter, '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}');
    let is_direction = matches!(
        letter,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    !is_control && !is_direction
}

/// Returns the text on one line, with `U+FFFD` for each character that is not printable.
pub fn printable(text: &str) -> String {
    text.chars().map(|letter| if is_printable(letter) { letter } else { '\u{fffd}' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_terminals_obey_are_replaced() {
        assert_eq!(printable("a\x1b[31m\nb\u{9b}c\u{7f}"), "a\u{fffd}[31m\u{fffd}b\u{fffd}c\u{fffd}");
        assert_eq!(printable("abc\u{202e}txt\u{2066}\u{2069}\u{200f}"), "abc\u{fffd}txt\u{fffd}\u{fffd}\u{fffd}");
        assert_eq!(printable("Größe \u{1f600} 日本 \u{200d}"), "Größe \u{1f600} 日本 \u{200d}");
        assert!(!('\0'..='\u{10ffff}').any(|letter| letter.is_control() && is_printable(letter)));
    }
}

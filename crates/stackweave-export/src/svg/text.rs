//! Widths of texts in monospaced fonts.

/// The width of a letter, in font sizes: the widest of the common fonts.
pub(crate) const CHARACTER: f64 = 0.61;

/// The width of an East Asian letter or an emoji, which come from other fonts.
const WIDE: f64 = 1.3;

fn character_width(letter: char) -> f64 {
    let is_wide = matches!(letter,
        '\u{1100}'..='\u{115f}' | '\u{2600}'..='\u{27bf}' | '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe6f}' | '\u{ff00}'..='\u{ff60}' | '\u{1f000}'..);
    if is_wide { WIDE } else { CHARACTER }
}

/// Returns the maximum width of a text.
pub(crate) fn text_width(text: &str, font_size: f64) -> f64 {
    text.chars().map(character_width).sum::<f64>() * font_size
}

/// Cuts the middle of the text if it is wider than `width`.
pub(crate) fn fit(text: &str, width: f64, font_size: f64) -> String {
    if text_width(text, font_size) <= width {
        return text.to_owned();
    }
    let room = (width / font_size - CHARACTER).max(0.0);
    let head = prefix(text.chars(), room * 0.6);
    let tail = prefix(text.chars().rev(), room - text_width(&head, 1.0));
    head.chars().chain(core::iter::once('…')).chain(tail.chars().rev()).collect()
}

fn prefix(letters: impl Iterator<Item = char>, room: f64) -> String {
    let mut used = 0.0;
    letters
        .take_while(|letter| {
            used += character_width(*letter);
            used <= room
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_in_the_middle() {
        assert_eq!(fit("short", 100.0, 10.0), "short");
        let cut = fit("a_name_that_is_too_long", 62.0, 10.0);
        assert_eq!(cut, "a_nam…long");
        assert!(text_width(&cut, 10.0) <= 62.0);
        assert_eq!(fit("abc", 0.0, 10.0), "…");
        assert!(text_width("\u{1f9f5}", 10.0) > text_width("ab", 10.0));
    }
}

//! Escapes text for XML.

use core::fmt;

/// A text for an element or an attribute. Characters that XML can't contain become U+FFFD.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Escaped<'a>(pub(crate) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write as _;
        for letter in self.0.chars() {
            match letter {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\t' | '\n' | '\r' => write!(f, "&#{};", u32::from(letter))?,
                '\0'..' ' | '\u{fffe}' | '\u{ffff}' => f.write_char('\u{fffd}')?,
                _ => f.write_char(letter)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_of_xml_are_escaped() {
        let escaped = Escaped("</a> & \"b\" 'c' ]]>\n\0\u{1b}\u{ffff}é").to_string();
        assert_eq!(escaped, "&lt;/a&gt; &amp; &quot;b&quot; &#39;c&#39; ]]&gt;&#10;\u{fffd}\u{fffd}\u{fffd}é");
    }
}

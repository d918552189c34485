//! Output without the control characters that a terminal would obey.
//!
//! Everything that goes to standard output and standard error passes through here. Names, paths and notes in a
//! recording are untrusted, and so no writer has to clean them.

use std::fmt::{Display, Write as _};
use std::io::{self, Write};

use stackweave_core::is_printable;

/// The form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Text lines, with or without the colours of this command.
    Text { colour: bool },
    /// JSON, whose strings can contain a character as an escape.
    Json,
}

/// Writes lines with unprintable characters replaced; see [`Content`].
#[derive(Debug)]
pub(crate) struct SafeOutput<W: Write> {
    out: W,
    content: Content,
    /// The incomplete line.
    line: Vec<u8>,
}

impl<W: Write> SafeOutput<W> {
    pub(crate) const fn new(out: W, content: Content) -> Self {
        Self { out, content, line: Vec::new() }
    }

    fn write_line(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&line);
        self.out.write_all(clean(&text, self.content).as_bytes())
    }
}

impl<W: Write> Write for SafeOutput<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                self.write_line()?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_line()?;
        self.out.flush()
    }
}

/// Writes a message to standard error, and ignores that it may be closed.
pub(crate) fn say(sentence: impl Display) {
    let text = sentence.to_string();
    let mut error = io::stderr().lock();
    for line in text.lines() {
        let _ = writeln!(error, "{}", clean(line, Content::Text { colour: false }));
    }
}

fn clean(text: &str, content: Content) -> String {
    let mut cleaned = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let code = if content == (Content::Text { colour: true }) { colour_code(rest) } else { 0 };
        if code > 0 {
            cleaned.push_str(&rest[..code]);
            rest = &rest[code..];
            continue;
        }
        rest = &rest[letter.len_utf8()..];
        match content {
            _ if is_printable(letter) || letter == '\n' => cleaned.push(letter),
            Content::Text { .. } => cleaned.push('\u{fffd}'),
            Content::Json => {
                let _ = write!(cleaned, "\\u{:04x}", u32::from(letter));
            }
        }
    }
    cleaned
}

/// Returns the length of the colour code at the start of the text; 0 if there is none.
fn colour_code(text: &str) -> usize {
    let Some(rest) = text.strip_prefix("\x1b[") else { return 0 };
    let numbers = rest.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b';').count();
    if rest[numbers..].starts_with('m') { numbers + 3 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(parts: &[&str], content: Content) -> String {
        let mut out = Vec::new();
        let mut safe = SafeOutput::new(&mut out, content);
        for part in parts {
            safe.write_all(part.as_bytes()).unwrap_or_default();
        }
        safe.flush().unwrap_or_default();
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn only_colours_and_line_ends_are_kept() {
        let pieces = ["a\x1b[31;1mb\x1b[0m\n\x1b]0;t\x07\x1b[2J", "\r\tc\u{202e}\n\u{9b}31m end"];
        let plain = written(&pieces, Content::Text { colour: false });
        assert_eq!(
            plain,
            "a\u{fffd}[31;1mb\u{fffd}[0m\n\u{fffd}]0;t\u{fffd}\u{fffd}[2J\u{fffd}\u{fffd}c\u{fffd}\n\u{fffd}31m end"
        );
        let coloured = written(&pieces, Content::Text { colour: true });
        assert!(coloured.starts_with("a\x1b[31;1mb\x1b[0m\n\u{fffd}]0;t"), "{coloured:?}");
        assert_eq!(coloured.matches('\x1b').count(), 2);
    }

    #[test]
    fn json_keeps_its_meaning() {
        let value = serde_json::json!({"name": "a\u{202e}\u{9b}\x1b b\u{7f}"});
        let text = written(&[&value.to_string()], Content::Json);
        assert!(text.is_ascii() && text.bytes().all(|byte| (0x20..0x7f).contains(&byte)), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap_or_default(), value);
    }

    #[test]
    fn letters_split_over_two_writes_stay_whole() {
        let mut out = Vec::new();
        let mut safe = SafeOutput::new(&mut out, Content::Text { colour: false });
        for byte in "é\n".as_bytes() {
            safe.write_all(&[*byte]).unwrap_or_default();
        }
        drop(safe);
        assert_eq!(out, "é\n".as_bytes());
    }
}

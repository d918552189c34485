//! Recognition of other kinds of files, so that errors about a wrong path are clear.

/// The number of bytes that are examined.
pub(crate) const LOOK_LEN: usize = 512;

const SIGNATURES: [(&[u8], &str); 16] = [
    (b"\x1f\x8b", "gzip data; unpack it first"),
    (b"\x28\xb5\x2f\xfd", "zstd data; unpack it first"),
    (b"\xfd7zXZ\0", "xz data; unpack it first"),
    (b"BZh", "bzip2 data; unpack it first"),
    (b"\x04\x22\x4d\x18", "lz4 data; unpack it first"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\x7fELF", "an ELF program or library"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"PERFILE2", "data of perf"),
    (b"memray\0", "data of memray"),
    (b"PAR1", "a Parquet file"),
    (b"%PDF-", "a PDF document"),
    (b"\x89PNG", "a picture"),
    (b"<?xml", "XML"),
    (b"<svg", "an SVG picture"),
    (b"#!", "a script"),
];

/// Returns what `start`, the first [`LOOK_LEN`] bytes of a file, looks like; `None` if it is unknown.
pub(crate) fn looks_like(start: &[u8]) -> Option<&'static str> {
    if let Some((_, what)) = SIGNATURES.iter().find(|(signature, _)| start.starts_with(signature)) {
        return Some(what);
    }
    if is_marshalled(start) {
        return Some("marshal data, such as a .prof file of cProfile");
    }
    if matches!(start, [0x80, 2..=5, ..]) {
        return Some("pickled Python data");
    }
    if !is_text(start) {
        return None;
    }
    let first = start.iter().find(|byte| !byte.is_ascii_whitespace());
    Some(if matches!(first, Some(b'{' | b'[')) { "JSON" } else { "text" })
}

/// Returns whether it is a dict with tuples as keys, as `pstats` writes it: `{` and `(` with or without the bit for references.
fn is_marshalled(start: &[u8]) -> bool {
    let [first, second, ..] = start else { return false };
    first & 0x7f == b'{' && matches!(second & 0x7f, b'(' | b')') && start.iter().any(|byte| matches!(byte, 0 | 0x80..))
}

fn is_text(start: &[u8]) -> bool {
    // The last character may be incomplete.
    let whole = match std::str::from_utf8(start) {
        Ok(_) => start,
        Err(error) if error.error_len().is_none() => &start[..error.valid_up_to()],
        Err(_) => return false,
    };
    let is_control = |byte: &u8| byte.is_ascii_control() && !byte.is_ascii_whitespace() && *byte != 0x1b;
    !whole.is_empty() && !whole.iter().any(is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_files_are_recognised() {
        for (start, what) in [
            (&b"\x1f\x8b\x08\0\0"[..], "gzip"),
            (b"\x7fELF\x02\x01", "ELF"),
            (b"{\"traceEvents\": [", "JSON"),
            (b"\n  [1, 2]", "JSON"),
            (b"import os\n", "text"),
            (b"#!/bin/sh\n", "script"),
            (b"{\xa9\x03\xda\x01~\xe9\x00\0\0\0", "cProfile"),
            (b"\xfb(\x03\0\0\0", "cProfile"),
            (b"\x80\x04\x95\x10", "pickled"),
        ] {
            assert!(looks_like(start).is_some_and(|found| found.contains(what)), "{start:?}");
        }
    }

    #[test]
    fn unknown_files_are_not_guessed() {
        for start in [&b""[..], b"\0\0\0\0", b"\xff\xfe\x01", b"\x80\x01"] {
            assert_eq!(looks_like(start), None, "{start:?}");
        }
    }

    #[test]
    fn text_may_be_truncated_inside_a_character() {
        let text = "grün".as_bytes();
        assert_eq!(looks_like(&text[..3]), Some("text"));
    }
}

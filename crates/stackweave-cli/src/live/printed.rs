//! What the program has printed: the last lines of it.

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use stackweave_core::is_printable;

/// So many bytes of a file are looked at at once; of what was printed meanwhile, the last.
const PIECE: u64 = 64 << 10;
/// So many lines are kept.
const LINES: usize = 200;
/// A line is cut here.
const LONGEST: usize = 1000;

/// The files that a program's output is collected in, one for each stream, and the lines that came last.
#[derive(Debug)]
pub(super) struct Printed {
    streams: Vec<Stream>,
    lines: VecDeque<String>,
}

#[derive(Debug)]
struct Stream {
    file: File,
    at: u64,
    /// The line that has no end yet.
    open: Vec<u8>,
}

impl Printed {
    pub(super) fn new(paths: &[PathBuf]) -> Self {
        let stream = |path: &PathBuf| Some(Stream { file: File::open(path).ok()?, at: 0, open: Vec::new() });
        Self { streams: paths.iter().filter_map(stream).collect(), lines: VecDeque::new() }
    }

    /// The last lines; `None` if nothing is new.
    pub(super) fn look(&mut self) -> Option<Vec<String>> {
        let mut is_new = false;
        for stream in &mut self.streams {
            is_new |= stream.look(&mut self.lines);
        }
        while self.lines.len() > LINES {
            self.lines.pop_front();
        }
        let open = self.streams.iter().map(|stream| readable(&stream.open)).filter(|line| !line.is_empty());
        is_new.then(|| self.lines.iter().cloned().chain(open).collect())
    }
}

impl Stream {
    fn look(&mut self, lines: &mut VecDeque<String>) -> bool {
        let size = self.file.metadata().map_or(0, |metadata| metadata.len());
        if size <= self.at {
            return false;
        }
        if size - self.at > PIECE {
            self.at = size - PIECE;
            self.open.clear();
        }
        let mut buffer = vec![0; usize::try_from(size - self.at).unwrap_or(0)];
        let read = self.file.read_at(&mut buffer, self.at).unwrap_or(0);
        self.at += read as u64;
        for byte in &buffer[..read] {
            if *byte == b'\n' {
                lines.push_back(readable(&self.open));
                self.open.clear();
            } else if self.open.len() < LONGEST {
                self.open.push(*byte);
            }
        }
        read > 0
    }
}

/// A line as a terminal would leave it: what overwrites its beginning counts, and colours do not.
fn readable(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let line = line.rsplit(|byte| *byte == b'\r').next().unwrap_or(line);
    let text = String::from_utf8_lossy(line);
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\u{1b}' => skip_escape(&mut letters),
            '\t' => plain.push_str("    "),
            letter if !is_printable(letter) => {}
            letter => plain.push(letter),
        }
    }
    plain
}

/// `ESC [ ... letter`, or `ESC letter`.
fn skip_escape(letters: &mut std::str::Chars<'_>) {
    if letters.next() == Some('[') {
        let _ = letters.find(|letter| ('@'..='~').contains(letter));
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use stackweave_testkit::folder::Folder;

    use super::*;

    #[test]
    fn lines_are_shown_as_a_terminal_leaves_them() {
        assert_eq!(readable(b"plain"), "plain");
        assert_eq!(readable(b"10%\r50%\r100% done\r"), "100% done");
        assert_eq!(readable(b"\x1b[31;1mred\x1b[0m\tx\x07"), "red    x");
    }

    #[test]
    fn the_streams_come_as_they_are_printed() {
        let folder = Folder::new();
        let paths = ["out", "err"].map(|name| folder.write(name, b""));
        let mut printed = Printed::new(&paths);
        assert_eq!(printed.look(), None);
        let mut files = paths.each_ref().map(|path| File::options().append(true).open(path).unwrap());
        files[0].write_all(b"one\ntw").unwrap();
        assert_eq!(printed.look(), Some(vec!["one".to_owned(), "tw".to_owned()]));
        files[1].write_all(b"oops\n").unwrap();
        files[0].write_all(b"o\n").unwrap();
        assert_eq!(printed.look(), Some(["one", "two", "oops"].map(str::to_owned).to_vec()));
        assert_eq!(printed.look(), None);
        files[0].write_all(&[b"x".repeat(200_000), b"\nlast\n".to_vec()].concat()).unwrap();
        assert_eq!(printed.look().unwrap().last().unwrap(), "last");
    }
}

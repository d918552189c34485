//! The last lines of the program's output.

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use stackweave_core::is_printable;

/// At most this many bytes of a file are read at once; of more, the last.
const MAX_READ: u64 = 64 << 10;
/// The number of lines that are kept.
const LINES: usize = 200;
/// Longer lines are cut.
const LONGEST: usize = 1000;

/// The files that collect the output of the program, one for each stream, and the last lines.
#[derive(Debug)]
pub(super) struct ProgramOutput {
    streams: Vec<OutputStream>,
    lines: VecDeque<String>,
}

#[derive(Debug)]
struct OutputStream {
    file: File,
    at: u64,
    /// The incomplete line.
    open: Vec<u8>,
}

impl ProgramOutput {
    pub(super) fn new(paths: &[PathBuf]) -> Self {
        let stream = |path: &PathBuf| Some(OutputStream { file: File::open(path).ok()?, at: 0, open: Vec::new() });
        Self { streams: paths.iter().filter_map(stream).collect(), lines: VecDeque::new() }
    }

    /// Reads new output, and returns the last lines; `None` if there is nothing new.
    pub(super) fn read_new(&mut self) -> Option<Vec<String>> {
        let mut is_new = false;
        for stream in &mut self.streams {
            is_new |= stream.read_new(&mut self.lines);
        }
        while self.lines.len() > LINES {
            self.lines.pop_front();
        }
        let open = self.streams.iter().map(|stream| readable(&stream.open)).filter(|line| !line.is_empty());
        is_new.then(|| self.lines.iter().cloned().chain(open).collect())
    }
}

impl OutputStream {
    fn read_new(&mut self, lines: &mut VecDeque<String>) -> bool {
        let size = self.file.metadata().map_or(0, |metadata| metadata.len());
        if size <= self.at {
            return false;
        }
        if size - self.at > MAX_READ {
            self.at = size - MAX_READ;
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

/// Returns a line as a terminal shows it: after a carriage return it is overwritten, and colours are removed.
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

/// Skips `ESC [ ... letter`, or `ESC letter`.
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
    fn lines_are_shown_as_by_a_terminal() {
        assert_eq!(readable(b"plain"), "plain");
        assert_eq!(readable(b"10%\r50%\r100% done\r"), "100% done");
        assert_eq!(readable(b"\x1b[31;1mred\x1b[0m\tx\x07"), "red    x");
    }

    #[test]
    fn output_of_both_streams_is_in_order() {
        let folder = Folder::new();
        let paths = ["out", "err"].map(|name| folder.write(name, b""));
        let mut printed = ProgramOutput::new(&paths);
        assert_eq!(printed.read_new(), None);
        let mut files = paths.each_ref().map(|path| File::options().append(true).open(path).unwrap());
        files[0].write_all(b"one\ntw").unwrap();
        assert_eq!(printed.read_new(), Some(vec!["one".to_owned(), "tw".to_owned()]));
        files[1].write_all(b"oops\n").unwrap();
        files[0].write_all(b"o\n").unwrap();
        assert_eq!(printed.read_new(), Some(["one", "two", "oops"].map(str::to_owned).to_vec()));
        assert_eq!(printed.read_new(), None);
        files[0].write_all(&[b"x".repeat(200_000), b"\nlast\n".to_vec()].concat()).unwrap();
        assert_eq!(printed.read_new().unwrap().last().unwrap(), "last");
    }
}

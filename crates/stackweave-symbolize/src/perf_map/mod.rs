//! Names of just-in-time compiled code, from the files that compilers write for `perf`.

mod code_ranges;
mod growing_file;
pub(crate) mod jitdump;
mod jitdump_record;
mod jitdump_search;

use std::path::PathBuf;
use std::sync::Arc;

use code_ranges::CodeRanges;
use growing_file::{Growth, PerfMapFile};

/// The maximum number of bytes that are read of a map.
const MAX_BYTES: u64 = 256 << 20;
/// The maximum number of ranges.
const MAX_RANGES: usize = 2 << 20;
/// The size of a read, and the maximum length of a line.
const CHUNK: usize = 256 << 10;

/// The names in `/tmp/perf-PID.map`, a text file whose lines have start, size and name.
#[derive(Debug)]
pub(crate) struct PerfMap {
    file: PerfMapFile,
    max_bytes: u64,
    ranges: CodeRanges<Arc<str>>,
    /// Whether the next bytes belong to a line that was too long.
    is_in_long_line: bool,
    skipped_lines: u64,
    is_cut: bool,
}

/// A function in a perf map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PerfSymbol {
    pub(crate) name: Arc<str>,
    /// Its first address.
    pub(crate) start: u64,
}

impl PerfMap {
    /// Reads the map of process `pid`; empty if it has none.
    pub(crate) fn of_process(pid: u32) -> Self {
        let mut candidates = vec![PathBuf::from(format!("/tmp/perf-{pid}.map"))];
        if let Some(inner) = pid_in_container(pid) {
            candidates.push(format!("/proc/{pid}/root/tmp/perf-{inner}.map").into());
        }
        Self::at(candidates, pid, MAX_BYTES)
    }

    fn at(candidates: Vec<PathBuf>, pid: u32, max_bytes: u64) -> Self {
        let file = PerfMapFile::new(candidates, pid);
        let ranges = CodeRanges::default();
        let mut map = Self { file, max_bytes, ranges, is_in_long_line: false, skipped_lines: 0, is_cut: false };
        map.refresh();
        map
    }

    /// Reads what was appended; everything if the file is a different one.
    pub(crate) fn refresh(&mut self) {
        match self.file.check() {
            Growth::Same => {}
            Growth::Appended => self.read_appended(),
            Growth::Replaced => {
                self.ranges.clear();
                (self.is_in_long_line, self.skipped_lines, self.is_cut) = (false, 0, false);
                self.read_appended();
            }
        }
    }

    /// Returns the function at `address`.
    pub(crate) fn lookup(&self, address: u64) -> Option<PerfSymbol> {
        self.ranges.find(address).map(|(start, name)| PerfSymbol { name: Arc::clone(name), start })
    }

    /// Returns the number of malformed lines.
    pub(crate) fn skipped_lines(&self) -> u64 {
        self.skipped_lines
    }

    /// Returns whether the map is so large that its end was ignored.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    fn read_appended(&mut self) {
        let mut buffer = vec![0; CHUNK];
        let mut offset = self.file.consumed();
        while !self.is_cut {
            let filled = self.file.read_at(offset, &mut buffer);
            let newline = buffer[..filled].iter().rposition(|&byte| byte == b'\n');
            let taken = match newline {
                Some(newline) => {
                    self.read_lines(&buffer[..newline]);
                    newline + 1
                }
                None if filled == buffer.len() => {
                    self.skipped_lines += u64::from(!self.is_in_long_line);
                    self.is_in_long_line = true;
                    filled
                }
                None => break,
            };
            offset += taken as u64;
            self.is_cut = offset >= self.max_bytes || self.ranges.len() >= MAX_RANGES;
        }
        self.file.consume_to(offset);
    }

    fn read_lines(&mut self, lines: &[u8]) {
        for line in lines.split(|&byte| byte == b'\n') {
            if std::mem::take(&mut self.is_in_long_line) || line.is_empty() {
                continue;
            }
            match parse_line(line) {
                Some((start, end, name)) => self.ranges.insert(start, end, name),
                None => self.skipped_lines += 1,
            }
        }
    }
}

fn parse_line(line: &[u8]) -> Option<(u64, u64, Arc<str>)> {
    let (start, rest) = split_word(line)?;
    let (size, name) = split_word(rest)?;
    let (start, size) = (parse_hex(start)?, parse_hex(size)?);
    let name = name.trim_ascii();
    (size > 0 && !name.is_empty()).then_some(())?;
    Some((start, start.checked_add(size)?, String::from_utf8_lossy(name).into()))
}

fn split_word(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = line.trim_ascii_start();
    let end = line.iter().position(u8::is_ascii_whitespace)?;
    Some(line.split_at(end))
}

fn parse_hex(word: &[u8]) -> Option<u64> {
    let word = std::str::from_utf8(word).ok()?;
    let digits = word.strip_prefix("0x").unwrap_or(word);
    (!digits.starts_with('+')).then(|| u64::from_str_radix(digits, 16).ok())?
}

/// Returns the process's own id, if it is in a different pid namespace.
fn pid_in_container(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let pids = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    let inner = pids.split_whitespace().next_back()?.parse().ok()?;
    (inner != pid).then_some(inner)
}

#[cfg(test)]
mod tests;

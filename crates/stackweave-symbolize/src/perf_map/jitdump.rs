//! Names and lines of just-in-time compiled code, from a jitdump.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use super::code_ranges::CodeRanges;
use super::growing_file::{Growth, PerfMapFile};
pub(crate) use super::jitdump_record::JitDumpFault;
use super::jitdump_record::{
    HEADER_SIZE, RECORD_HEAD_SIZE, RecordKind, parse_debug_info, parse_head, parse_header, parse_load, parse_move,
};
use super::jitdump_search;

/// The maximum number of functions.
const MAX_RANGES: usize = 2 << 20;
/// The maximum number of entries of debug information.
const MAX_LINES: usize = 8 << 20;
/// The maximum number of bytes of names.
const MAX_NAME_BYTES: usize = 256 << 20;
/// The maximum size of a debug information record.
const MAX_DEBUG_INFO: usize = 16 << 20;
/// The part of a load record that is read: its fields and its name. The code after them is not needed.
const MAX_LOAD: usize = 64 << 10;

/// The current code, according to a jitdump.
#[derive(Debug)]
pub(crate) struct JitDump {
    pid: u32,
    file: PerfMapFile,
    functions: CodeRanges<Arc<JitFunction>>,
    /// The lines of functions whose load records have not been read yet: lines come first.
    lines_ahead: HashMap<u64, Box<[JitLine]>>,
    file_names: HashSet<Arc<str>>,
    line_count: usize,
    name_bytes: usize,
    is_closed: bool,
    is_cut: bool,
    skipped_records: u64,
    fault: Option<JitDumpFault>,
}

#[derive(Debug)]
struct JitFunction {
    name: Arc<str>,
    /// The lines, by offset.
    lines: Box<[JitLine]>,
}

#[derive(Debug)]
struct JitLine {
    /// The offset from the function's start, because code can move.
    offset: u64,
    number: u32,
    file: Arc<str>,
}

/// A function in a jitdump, and the line at an address in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JitSymbol {
    pub(crate) name: Arc<str>,
    /// Its first address.
    pub(crate) start: u64,
    pub(crate) file: Option<Arc<str>>,
    pub(crate) line: Option<u32>,
}

impl JitDump {
    /// Reads the jitdump of process `pid`; empty if it has none.
    pub(crate) fn of_process(pid: u32) -> Self {
        Self::at(jitdump_search::candidates(pid), pid)
    }

    pub(super) fn at(candidates: Vec<PathBuf>, pid: u32) -> Self {
        let mut dump = Self::empty(PerfMapFile::new(candidates, pid), pid);
        dump.read_grown();
        dump
    }

    fn empty(file: PerfMapFile, pid: u32) -> Self {
        Self {
            pid,
            file,
            functions: CodeRanges::default(),
            lines_ahead: HashMap::new(),
            file_names: HashSet::new(),
            line_count: 0,
            name_bytes: 0,
            is_closed: false,
            is_cut: false,
            skipped_records: 0,
            fault: None,
        }
    }

    /// Reads what was appended; everything if the file is a different one. Searches for the file if there was
    /// none.
    pub(crate) fn refresh(&mut self) {
        if !self.file.is_open() {
            self.file = PerfMapFile::new(jitdump_search::candidates(self.pid), self.pid);
        }
        self.read_grown();
    }

    /// Returns the function at `address`, and the line if the dump has debug information.
    pub(crate) fn lookup(&self, address: u64) -> Option<JitSymbol> {
        let (start, function) = self.functions.find(address)?;
        let after = function.lines.partition_point(|line| line.offset <= address - start);
        let line = after.checked_sub(1).map(|index| &function.lines[index]);
        Some(JitSymbol {
            name: Arc::clone(&function.name),
            start,
            file: line.map(|line| Arc::clone(&line.file)).filter(|file| !file.is_empty()),
            line: line.map(|line| line.number).filter(|&number| number > 0),
        })
    }

    /// Returns why the dump is not read, or not to its end.
    pub(crate) fn fault(&self) -> Option<JitDumpFault> {
        self.fault
    }

    /// Returns the number of malformed records.
    pub(crate) fn skipped_records(&self) -> u64 {
        self.skipped_records
    }

    /// Returns whether the dump is so large that a part was ignored.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    fn read_grown(&mut self) {
        match self.file.check() {
            Growth::Same => return,
            Growth::Appended => {}
            Growth::Replaced => {
                let file = std::mem::replace(&mut self.file, PerfMapFile::new(Vec::new(), self.pid));
                *self = Self::empty(file, self.pid);
            }
        }
        if self.fault.is_none() {
            self.fault = self.read_records().err();
        }
    }

    fn read_records(&mut self) -> Result<(), JitDumpFault> {
        let mut offset = self.file.consumed();
        if offset == 0 {
            let mut header = [0; HEADER_SIZE];
            if self.file.read_at(0, &mut header) < HEADER_SIZE {
                return Ok(());
            }
            offset = parse_header(&header)?;
        }
        let (length, mut buffer) = (self.file.length(), Vec::new());
        while !self.is_closed && !self.is_full() {
            let mut head = [0; RECORD_HEAD_SIZE];
            if self.file.read_at(offset, &mut head) < RECORD_HEAD_SIZE {
                break;
            }
            let head = parse_head(&head)?;
            let next = offset + u64::from(head.size);
            if next > length {
                break;
            }
            self.read_body(head.kind, offset + RECORD_HEAD_SIZE as u64, next, &mut buffer);
            offset = next;
        }
        self.is_cut |= self.is_full();
        if offset <= length {
            self.file.consume_to(offset);
        }
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.functions.len() >= MAX_RANGES || self.name_bytes >= MAX_NAME_BYTES
    }

    fn read_body(&mut self, kind: RecordKind, start: u64, end: u64, buffer: &mut Vec<u8>) {
        let size = usize::try_from(end - start).unwrap_or(usize::MAX);
        let wanted = match kind {
            RecordKind::Load | RecordKind::Move => size.min(MAX_LOAD),
            RecordKind::DebugInfo if size <= MAX_DEBUG_INFO => size,
            RecordKind::DebugInfo => {
                self.is_cut = true;
                return;
            }
            RecordKind::Close => {
                self.is_closed = true;
                return;
            }
            RecordKind::Other => return,
        };
        buffer.resize(wanted, 0);
        let filled = self.file.read_at(start, buffer);
        let body = &buffer[..filled];
        let read = match kind {
            RecordKind::Load => self.load(body),
            RecordKind::Move => self.move_code(body),
            _ => self.debug_info(body),
        };
        self.skipped_records += u64::from(read.is_none());
    }

    fn load(&mut self, body: &[u8]) -> Option<()> {
        let load = parse_load(body)?;
        self.name_bytes += load.name.len();
        let name = String::from_utf8_lossy(load.name).into();
        let lines = self.lines_ahead.remove(&load.start).unwrap_or_default();
        self.functions.insert(load.start, load.end, Arc::new(JitFunction { name, lines }));
        Some(())
    }

    fn move_code(&mut self, body: &[u8]) -> Option<()> {
        let moved = parse_move(body)?;
        let function = self.functions.remove(moved.from, moved.from + moved.size)?;
        self.functions.insert(moved.to, moved.to + moved.size, function);
        Some(())
    }

    fn debug_info(&mut self, body: &[u8]) -> Option<()> {
        let (start, entries) = parse_debug_info(body)?;
        self.line_count += entries.len().max(1);
        if self.line_count > MAX_LINES {
            self.is_cut = true;
            return Some(());
        }
        let mut lines = Vec::with_capacity(entries.len());
        for entry in entries {
            let Some(offset) = entry.address.checked_sub(start) else { continue };
            lines.push(JitLine { offset, number: entry.line, file: self.file_name(entry.file) });
        }
        lines.sort_by_key(|line| line.offset);
        self.lines_ahead.insert(start, lines.into());
        Some(())
    }

    fn file_name(&mut self, name: &[u8]) -> Arc<str> {
        let name = String::from_utf8_lossy(name);
        if let Some(known) = self.file_names.get(&*name) {
            return Arc::clone(known);
        }
        let name: Arc<str> = name.into();
        self.name_bytes += name.len();
        self.file_names.insert(Arc::clone(&name));
        name
    }
}

#[cfg(test)]
#[path = "jitdump_tests.rs"]
mod tests;

//! The tables that samples and markers of a thread refer to: strings, functions, frames, stacks.

use core::fmt::Display;
use std::collections::HashMap;
use std::io::{self, Write};

use serde_json::json;
use stackweave_profile::{Frame, FrameKind};
use stackweave_recording::file::RecordedFrame;

use crate::activity::NamedProcess;
use crate::formats::firefox::libs::Libs;

/// The categories, in the order of their numbers.
pub(super) const CATEGORIES: [(&str, &str); 6] = [
    ("other", "grey"),
    ("python", "blue"),
    ("native", "orange"),
    ("script", "green"),
    ("extra", "lightblue"),
    ("span", "purple"),
];

/// Returns the index of the category for a kind.
pub(super) fn category(kind: FrameKind) -> usize {
    CATEGORIES.iter().position(|(name, _)| *name == kind.as_str()).unwrap_or(0)
}

#[derive(Debug, Default)]
pub(super) struct ThreadTables {
    strings: Vec<String>,
    by_string: HashMap<String, usize>,
    functions: Vec<FirefoxFunction>,
    by_function: HashMap<FirefoxFunction, usize>,
    frames: Vec<FrameRow>,
    /// By number in the recording: the first frame here, and the number of frames, outermost first.
    by_frame: HashMap<u32, (usize, usize)>,
    /// Callers and frame.
    stacks: Vec<(Option<usize>, usize)>,
    by_stack: HashMap<(Option<usize>, usize), usize>,
    by_recorded_stack: HashMap<u32, Option<usize>>,
    /// The libraries of the functions.
    resources: Vec<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct FirefoxFunction {
    name: usize,
    file: Option<usize>,
    line: Option<u32>,
    resource: Option<usize>,
}

#[derive(Clone, Copy, Debug)]
struct FrameRow {
    function: usize,
    category: usize,
    address: i64,
    inline_depth: usize,
    line: Option<u32>,
    column: Option<u32>,
}

impl ThreadTables {
    pub(super) fn string(&mut self, text: &str) -> usize {
        if let Some(index) = self.by_string.get(text) {
            return *index;
        }
        self.strings.push(text.to_owned());
        self.by_string.insert(text.to_owned(), self.strings.len() - 1);
        self.strings.len() - 1
    }

    /// Returns the frames here for a frame of the recording, outermost first.
    pub(super) fn frames(&mut self, process: &NamedProcess<'_>, number: u32, libs: &Libs) -> core::ops::Range<usize> {
        if let Some((first, count)) = self.by_frame.get(&number) {
            return *first..first + count;
        }
        let first = self.frames.len();
        let recorded = process.recording.dictionary().frame(number);
        for frame in process.chain(number) {
            self.add_frame(frame, recorded, (process, libs));
        }
        if self.frames.len() == first {
            let name = self.string(Frame::UNKNOWN);
            let function = self.function(FirefoxFunction { name, file: None, line: None, resource: None });
            let row = FrameRow { function, category: 0, address: -1, inline_depth: 0, line: None, column: None };
            self.frames.push(row);
        }
        self.by_frame.insert(number, (first, self.frames.len() - first));
        first..self.frames.len()
    }

    fn add_frame(
        &mut self,
        frame: &Frame,
        recorded: Option<&RecordedFrame>,
        (process, libs): (&NamedProcess<'_>, &Libs),
    ) {
        let native = match recorded {
            Some(RecordedFrame::Native { address, module: Some(module) }) => {
                let module = process.recording.dictionary().module(*module);
                module.and_then(|module| Some((libs.find(module)?, module.stated(address.address()))))
            }
            _ => None,
        };
        let resource = native.map(|(lib, _)| self.resource(lib));
        let name = self.string(frame.qualname.as_ref().unwrap_or(&frame.name));
        let file = frame.filename.as_deref().map(|file| self.string(file));
        let function = self.function(FirefoxFunction { name, file, line: frame.first_line, resource });
        self.frames.push(FrameRow {
            function,
            category: category(frame.kind),
            address: native.and_then(|(_, address)| i64::try_from(address).ok()).unwrap_or(-1),
            inline_depth: usize::from(frame.is_inlined),
            line: frame.position.line,
            column: frame.position.column,
        });
    }

    fn resource(&mut self, lib: usize) -> usize {
        self.resources.iter().position(|known| *known == lib).unwrap_or_else(|| {
            self.resources.push(lib);
            self.resources.len() - 1
        })
    }

    fn function(&mut self, function: FirefoxFunction) -> usize {
        let next = self.functions.len();
        let index = *self.by_function.entry(function.clone()).or_insert(next);
        if index == next {
            self.functions.push(function);
        }
        index
    }

    /// Returns the stack of these frames inside another one.
    pub(super) fn push(&mut self, callers: Option<usize>, frames: core::ops::Range<usize>) -> Option<usize> {
        let mut stack = callers;
        for frame in frames {
            let next = self.stacks.len();
            let index = *self.by_stack.entry((stack, frame)).or_insert(next);
            if index == next {
                self.stacks.push((stack, frame));
            }
            stack = Some(index);
        }
        stack
    }

    /// Returns the stack for a stack of the recording.
    pub(super) fn stack(&mut self, process: &NamedProcess<'_>, stack: u32, libs: &Libs) -> Option<usize> {
        let dictionary = process.recording.dictionary();
        let mut path = Vec::new();
        let mut next = stack;
        let mut index = loop {
            if let Some(known) = self.by_recorded_stack.get(&next) {
                break *known;
            }
            let Some((callers, frame)) = dictionary.stack(next) else { break None };
            path.push((next, frame));
            next = callers;
        };
        for (number, frame) in path.into_iter().rev() {
            let frames = self.frames(process, frame, libs);
            index = self.push(index, frames);
            self.by_recorded_stack.insert(number, index);
        }
        index
    }

    /// Writes the tables as members of the thread's object.
    pub(super) fn write(&mut self, out: &mut dyn Write, libs: &Libs) -> io::Result<()> {
        let resources = self.resources.clone();
        let names: Vec<usize> = resources.iter().map(|lib| self.string(libs.name(*lib))).collect();
        self.write_frames(out)?;
        self.write_functions(out)?;
        let rows = &self.stacks;
        write!(out, "\"stackTable\":{{\"length\":{}", rows.len())?;
        write_column(out, "prefix", rows.iter().map(|stack| stack.0))?;
        write_column(out, "frame", rows.iter().map(|stack| Some(stack.1)))?;
        write!(out, "}},\n\"resourceTable\":{{\"length\":{}", resources.len())?;
        write_column(out, "lib", resources.iter().copied().map(Some))?;
        write_column(out, "name", names.into_iter().map(Some))?;
        write_column(out, "host", resources.iter().map(|_| None::<u32>))?;
        write_column(out, "type", resources.iter().map(|_| Some(1)))?;
        let symbols = json!({ "length": 0, "address": [], "functionSize": [], "libIndex": [], "name": [] });
        write!(out, "}},\n\"nativeSymbols\":{symbols},\n\"stringArray\":")?;
        serde_json::to_writer(&mut *out, &self.strings)?;
        out.write_all(b",\n")
    }

    fn write_frames(&self, out: &mut dyn Write) -> io::Result<()> {
        let rows = &self.frames;
        write!(out, "\"frameTable\":{{\"length\":{}", rows.len())?;
        write_column(out, "address", rows.iter().map(|row| Some(row.address)))?;
        write_column(out, "inlineDepth", rows.iter().map(|row| Some(row.inline_depth)))?;
        write_column(out, "category", rows.iter().map(|row| Some(row.category)))?;
        write_column(out, "subcategory", rows.iter().map(|_| Some(0)))?;
        write_column(out, "func", rows.iter().map(|row| Some(row.function)))?;
        write_column(out, "nativeSymbol", rows.iter().map(|_| None::<u32>))?;
        write_column(out, "innerWindowID", rows.iter().map(|_| Some(0)))?;
        write_column(out, "line", rows.iter().map(|row| row.line))?;
        write_column(out, "column", rows.iter().map(|row| row.column))?;
        out.write_all(b"},\n")
    }

    fn write_functions(&self, out: &mut dyn Write) -> io::Result<()> {
        let rows = &self.functions;
        let resource = |row: &FirefoxFunction| row.resource.and_then(|index| i64::try_from(index).ok()).unwrap_or(-1);
        write!(out, "\"funcTable\":{{\"length\":{}", rows.len())?;
        write_column(out, "name", rows.iter().map(|row| Some(row.name)))?;
        write_column(out, "isJS", rows.iter().map(|_| Some(false)))?;
        write_column(out, "relevantForJS", rows.iter().map(|_| Some(false)))?;
        write_column(out, "resource", rows.iter().map(|row| Some(resource(row))))?;
        write_column(out, "fileName", rows.iter().map(|row| row.file))?;
        write_column(out, "lineNumber", rows.iter().map(|row| row.line))?;
        write_column(out, "columnNumber", rows.iter().map(|_| None::<u32>))?;
        out.write_all(b"},\n")
    }
}

/// Writes another column of a table. Missing values are null.
fn write_column<T: Display>(
    out: &mut dyn Write,
    name: &str,
    values: impl Iterator<Item = Option<T>>,
) -> io::Result<()> {
    write!(out, ",\"{name}\":")?;
    let mut before = "[";
    for value in values {
        match value {
            Some(value) => write!(out, "{before}{value}")?,
            None => write!(out, "{before}null")?,
        }
        before = ",";
    }
    out.write_all(if before == "[" { b"[]" } else { b"]" })
}

//! The functions, frames and strings of the whole report, without duplicates.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use serde_json::{Map, Value};
use stackweave_profile::{CodeOrigin, FrameIndex, Function, FunctionTable};

use super::blocks::{Columns, PageBlocks};
use crate::options::SourceText;

#[derive(Debug, Default)]
pub(super) struct Names {
    table: FunctionTable,
    strings: Strings,
    /// The name under which each file is shown.
    shown_files: HashMap<String, String>,
}

impl Names {
    /// Creates the table, with source texts that have display names.
    pub(super) fn new(texts: &[SourceText]) -> Self {
        let shown_files = texts.iter().map(|source| (source.file.clone(), source.name.clone())).collect();
        Self { shown_files, ..Self::default() }
    }

    /// Returns the index of a file's display name.
    pub(super) fn file(&mut self, file: &str) -> u64 {
        let name = self.shown_files.get(file).map_or(file, |name| name);
        self.strings.index(name)
    }

    /// Adds the functions of a profile, and returns for each of its frames the one here.
    pub(super) fn extend(&mut self, functions: &FunctionTable) -> Vec<FrameIndex> {
        self.table.extend(functions)
    }

    /// Adds the functions of a profile of another version of the program.
    pub(super) fn extend_by_version(&mut self, functions: &FunctionTable) -> Vec<FrameIndex> {
        self.table.extend_by_version(functions).1
    }

    /// Returns the index of a frame; a new frame gets one.
    pub(super) fn frame(&mut self, function: Function, line: Option<u32>) -> FrameIndex {
        let function = self.table.intern(function);
        self.table.intern_frame(function, line)
    }

    /// Returns all functions so far.
    pub(super) fn functions(&self) -> &[Function] {
        self.table.functions()
    }

    /// Returns the index of a frame's function.
    pub(super) fn function_of(&self, frame: FrameIndex) -> Option<usize> {
        self.table.frames().get(frame.index()).map(|frame| frame.function.index())
    }

    /// Returns the frame at an index: the index of its function, the function, and the line.
    pub(super) fn frame_at(&self, index: u32) -> Option<(usize, &Function, Option<u32>)> {
        let frame = self.table.frames().get(index as usize)?;
        Some((frame.function.index(), self.table.function(frame.function), frame.line))
    }

    /// Returns the index of a function; a new function gets one.
    pub(super) fn function(&mut self, function: Function) -> usize {
        self.table.intern(function).index()
    }

    /// Returns the lines of functions that occur in frames, with the indexes of the functions.
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, u32)> {
        self.table.frames().iter().filter_map(|frame| Some((frame.function.index(), frame.line?)))
    }

    /// Returns the frame of the same function without a line.
    pub(super) fn without_line(&mut self, frame: u32) -> Option<FrameIndex> {
        let function = self.table.frames().get(frame as usize)?.function;
        Some(self.table.intern_frame(function, None))
    }

    /// Writes all names, after the last one was added.
    pub(super) fn write(mut self, head: &mut Map<String, Value>, blocks: &mut PageBlocks<'_>) -> io::Result<()> {
        let Self { table, strings, shown_files } = &mut self;
        let functions = table.functions();
        let names: Vec<u64> = functions.iter().map(|function| strings.index(function.full_name())).collect();
        let file = |of: &'_ Function| {
            of.filename.as_deref().map(|file| shown_files.get(file).map_or(file, |name| name).to_owned())
        };
        let files: Vec<u64> = functions.iter().map(|of| strings.index_or_none(file(of).as_deref())).collect();
        let modules = functions.iter().map(|of| strings.index_or_none(of.module_name().map(|name| &**name)));
        let modules: Vec<u64> = modules.collect();
        let path = |of: &Function| of.module.as_ref().map(|module| module.path.to_string_lossy().into_owned());
        let paths: Vec<u64> = functions.iter().map(|of| strings.index_or_none(path(of).as_deref())).collect();
        let mut columns = Columns::default();
        columns.plain(names.into_iter());
        columns.plain(files.into_iter());
        columns.plain(functions.iter().map(|function| function.first_line.unwrap_or(0).into()));
        columns.plain(functions.iter().map(|function| function.kind as u64));
        columns.plain(functions.iter().map(|function| origin(function.origin)));
        columns.plain(modules.into_iter());
        columns.plain(paths.into_iter());
        head.insert("functions".to_owned(), blocks.columns(&columns)?.into());
        let mut columns = Columns::default();
        columns.plain(table.frames().iter().map(|frame| frame.function.index() as u64));
        columns.plain(table.frames().iter().map(|frame| frame.line.unwrap_or(0).into()));
        head.insert("frames".to_owned(), blocks.columns(&columns)?.into());
        let strings = Value::Array(self.strings.all.iter().map(|text| Value::from(&**text)).collect());
        head.insert("strings".to_owned(), blocks.json(&strings)?.into());
        Ok(())
    }
}

/// Strings without duplicates.
#[derive(Debug, Default)]
struct Strings {
    all: Vec<Arc<str>>,
    indexes: HashMap<Arc<str>, u64>,
}

impl Strings {
    fn index(&mut self, text: &str) -> u64 {
        if let Some(index) = self.indexes.get(text) {
            return *index;
        }
        let (text, index): (Arc<str>, u64) = (text.into(), self.all.len() as u64);
        self.all.push(Arc::clone(&text));
        self.indexes.insert(text, index);
        index
    }

    fn index_or_none(&mut self, text: Option<&str>) -> u64 {
        text.map_or(0, |text| self.index(text) + 1)
    }
}

const fn origin(origin: CodeOrigin) -> u64 {
    match origin {
        CodeOrigin::Program => 0,
        CodeOrigin::Library => 1,
        CodeOrigin::Interpreter => 2,
    }
}

//! Functions and frames of the whole report, each once, and their texts.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use serde_json::{Map, Value};
use stackweave_profile::{FrameIndex, Function, FunctionTable, Origin};

use super::blocks::{Blocks, Columns};
use crate::options::SourceText;

#[derive(Debug, Default)]
pub(super) struct Names {
    table: FunctionTable,
    strings: Strings,
    /// Files that people call something else.
    called: HashMap<String, String>,
}

impl Names {
    /// With sources that have names of their own.
    pub(super) fn new(texts: &[SourceText]) -> Self {
        let called = texts.iter().map(|source| (source.file.clone(), source.name.clone())).collect();
        Self { called, ..Self::default() }
    }

    /// The place of a file's name, as people say it.
    pub(super) fn file(&mut self, file: &str) -> u64 {
        let name = self.called.get(file).map_or(file, |name| name);
        self.strings.place(name)
    }

    /// Takes in the functions of a profile: for each of its frames, the one here.
    pub(super) fn extend(&mut self, functions: &FunctionTable) -> Vec<FrameIndex> {
        self.table.extend(functions)
    }

    /// The same for a profile of another version of the program.
    pub(super) fn extend_by_version(&mut self, functions: &FunctionTable) -> Vec<FrameIndex> {
        self.table.extend_by_version(functions).1
    }

    /// One frame, which is new or has a place already.
    pub(super) fn frame(&mut self, function: Function, line: Option<u32>) -> FrameIndex {
        let function = self.table.intern(function);
        self.table.intern_frame(function, line)
    }

    /// All functions so far.
    pub(super) fn functions(&self) -> &[Function] {
        self.table.functions()
    }

    /// The place of the function that a frame is of.
    pub(super) fn function_of(&self, frame: FrameIndex) -> Option<usize> {
        self.table.frames().get(frame.index()).map(|frame| frame.function.index())
    }

    /// What stands at a place of frames: the place of its function, that function, and the line.
    pub(super) fn frame_at(&self, place: u32) -> Option<(usize, &Function, Option<u32>)> {
        let frame = self.table.frames().get(place as usize)?;
        Some((frame.function.index(), self.table.function(frame.function), frame.line))
    }

    /// The place of a function, which is new or has one already.
    pub(super) fn function(&mut self, function: Function) -> usize {
        self.table.intern(function).index()
    }

    /// The lines of functions that frames are at: the function's place, and the line.
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, u32)> {
        self.table.frames().iter().filter_map(|frame| Some((frame.function.index(), frame.line?)))
    }

    /// The frame of the same function without a line.
    pub(super) fn without_line(&mut self, frame: u32) -> Option<FrameIndex> {
        let function = self.table.frames().get(frame as usize)?.function;
        Some(self.table.intern_frame(function, None))
    }

    /// Writes all, when nothing is added any more.
    pub(super) fn write(mut self, head: &mut Map<String, Value>, blocks: &mut Blocks<'_>) -> io::Result<()> {
        let Self { table, strings, called } = &mut self;
        let functions = table.functions();
        let names: Vec<u64> = functions.iter().map(|function| strings.place(function.full_name())).collect();
        let file =
            |of: &'_ Function| of.filename.as_deref().map(|file| called.get(file).map_or(file, |name| name).to_owned());
        let files: Vec<u64> = functions.iter().map(|of| strings.place_or_none(file(of).as_deref())).collect();
        let modules = functions.iter().map(|of| strings.place_or_none(of.module_name().map(|name| &**name)));
        let modules: Vec<u64> = modules.collect();
        let path = |of: &Function| of.module.as_ref().map(|module| module.path.to_string_lossy().into_owned());
        let paths: Vec<u64> = functions.iter().map(|of| strings.place_or_none(path(of).as_deref())).collect();
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

/// Texts, each once.
#[derive(Debug, Default)]
struct Strings {
    all: Vec<Arc<str>>,
    places: HashMap<Arc<str>, u64>,
}

impl Strings {
    fn place(&mut self, text: &str) -> u64 {
        if let Some(place) = self.places.get(text) {
            return *place;
        }
        let (text, place): (Arc<str>, u64) = (text.into(), self.all.len() as u64);
        self.all.push(Arc::clone(&text));
        self.places.insert(text, place);
        place
    }

    fn place_or_none(&mut self, text: Option<&str>) -> u64 {
        text.map_or(0, |text| self.place(text) + 1)
    }
}

const fn origin(origin: Origin) -> u64 {
    match origin {
        Origin::Program => 0,
        Origin::Library => 1,
        Origin::Interpreter => 2,
    }
}

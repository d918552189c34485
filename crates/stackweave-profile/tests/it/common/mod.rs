//! Shared parts of the tests: a made-up process, and the real one.

pub mod recording;
pub mod timing;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use stackweave_core::{
    BuildId, CodeAddress, CodeId, Module, ModuleList, Position, RawFrame, RawFrameKind, SourceLocation, StackId,
};
use stackweave_profile::{Frame, FrameNames, Resolver};
use stackweave_store::StackTable;
use stackweave_symbolize::SymbolizerOptions;
use stackweave_testkit::symbols::module_file::LibraryFile;

/// A made-up process. Its Python code number 7 is the function `py7` in `7.py`, and an instruction is a line; its
/// script word 9 of source 2 is `script2-9`.
#[derive(Debug, Default)]
pub struct MadeUp {
    pub modules: Mutex<ModuleList>,
    /// Whether there are code generators: each line 3 then has two frames of source code behind it.
    pub has_extra_frames: bool,
    pub located: AtomicUsize,
    pub extra_frame_queries: AtomicUsize,
    pub module_queries: AtomicUsize,
}

impl MadeUp {
    pub fn with_modules(modules: Vec<Module>) -> Self {
        Self { modules: Mutex::new(ModuleList::new(modules)), ..Self::default() }
    }

    pub fn load(&self, modules: Vec<Module>) {
        *self.modules.lock().unwrap() = ModuleList::new(modules);
    }
}

pub fn location(name: &str, filename: &str, line: u32) -> SourceLocation {
    let position = Position { line: Some(line), ..Position::default() };
    SourceLocation { name: name.into(), qualname: None, filename: filename.into(), first_line: None, position }
}

impl FrameNames for MadeUp {
    fn locate(&self, frame: RawFrame) -> Option<SourceLocation> {
        self.located.fetch_add(1, Ordering::Relaxed);
        match frame.kind() {
            RawFrameKind::Native(address) => panic!("{address:?} is not of an interpreter"),
            RawFrameKind::Python { code, .. } if code.get() > 1000 => None,
            RawFrameKind::Python { code, instruction, .. } => {
                Some(location(&format!("py{}", code.get()), &format!("{}.py", code.get()), instruction))
            }
            RawFrameKind::Script { source, word } => Some(location(&format!("script{source}-{word}"), "s", 1)),
            RawFrameKind::Label(label) => Some(location(&format!("label{}", label.get()), "", 1)),
        }
    }

    fn has_extra_frames(&self) -> bool {
        self.has_extra_frames
    }

    fn frames_behind(&self, filename: &str, line: u32) -> Vec<SourceLocation> {
        let query = self.extra_frame_queries.fetch_add(1, Ordering::Relaxed);
        assert!(self.has_extra_frames, "query {query} times for nothing");
        let behind = |name: &str| location(&format!("{name} of {filename}"), "original.py", line);
        if line == 3 { vec![behind("inner"), behind("outer")] } else { Vec::new() }
    }

    fn modules(&self) -> ModuleList {
        self.module_queries.fetch_add(1, Ordering::Relaxed);
        self.modules.lock().unwrap().clone()
    }
}

/// This process, which has no interpreter.
#[derive(Clone, Copy, Debug)]
pub struct ThisProcess;

impl FrameNames for ThisProcess {
    fn locate(&self, frame: RawFrame) -> Option<SourceLocation> {
        panic!("{frame:?} is not a native frame");
    }

    fn has_extra_frames(&self) -> bool {
        false
    }

    fn frames_behind(&self, _: &str, _: u32) -> Vec<SourceLocation> {
        Vec::new()
    }

    fn modules(&self) -> ModuleList {
        stackweave_unwind::modules()
    }
}

/// Captures and interns the stack of the caller.
#[inline(never)]
pub fn capture(stacks: &StackTable) -> StackId {
    let mut frames = [CodeAddress::default(); 512];
    let captured = stackweave_unwind::capture(&mut frames, 1);
    let frames: Vec<RawFrame> = frames[..captured.len].iter().map(|frame| RawFrame::native(*frame)).collect();
    stacks.intern(&frames).expect("there is memory")
}

pub fn resolver() -> Resolver {
    Resolver::new(SymbolizerOptions::default())
}

pub fn python(code: u32, line: u32) -> RawFrame {
    RawFrame::python(CodeId::new(code).unwrap(), line, false)
}

pub fn native(address: u64) -> RawFrame {
    RawFrame::native(CodeAddress::return_address(address))
}

/// Returns the file as a module whose addresses are increased by `bias`.
pub fn module(file: &Path, bias: u64) -> Module {
    let read = LibraryFile::read(file);
    let build_id = read.build_id.and_then(|id| BuildId::new(&id));
    Module { path: file.to_owned(), build_id, bias, start: bias, end: bias + read.end.next_multiple_of(4096) }
}

pub fn names(stack: &[Arc<Frame>]) -> Vec<&str> {
    stack.iter().map(|frame| &*frame.name).collect()
}

/// Returns the fixture, or prints why the test is skipped.
macro_rules! or_skip {
    ($fixture:expr) => {
        match $fixture {
            Ok(fixture) => fixture,
            Err(skipped) => return println!("{skipped}"),
        }
    };
}
pub(crate) use or_skip;

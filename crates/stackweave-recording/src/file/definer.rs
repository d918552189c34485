//! What a section has defined so far, and the numbers it gave.

use std::collections::HashMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use stackweave_core::{Call, FrameKind, Module, ModuleList, Names, RawFrame, RawFrameKind, SourceLocation, StackId};
use stackweave_store::{StackTable, locate_label};

use super::definition_runs::DefinitionRuns;
use super::numbers::{Given, Numbers, StackNumbers};
use super::pending::{Answered, Pending, PendingLine};
use super::recorded::{RecordedFrame, RecordedName, RecordedThread};
use super::transpose::Renumber;

/// The longest string that is written; what is longer is cut.
const MAX_STRING: usize = 1 << 20;

/// Numbers for strings, modules, frames and stacks, in the order in which they are met.
#[derive(Debug)]
pub(super) struct Definer {
    table: &'static StackTable,
    /// How many definers there were before in this section.
    pub(super) generation: u64,
    /// Its numbers begin behind these.
    base: Numbers,
    strings: HashMap<Arc<str>, u32>,
    modules: Vec<Module>,
    frames: FxHashMap<u64, u32>,
    /// By [`call_key`]: what is called, and what calls it.
    calls: FxHashMap<u64, (u32, u32)>,
    stacks: StackNumbers,
    last_stack: u32,
    pub(super) pending: Pending,
    pub(super) runs: DefinitionRuns,
}

impl Definer {
    pub(super) fn new(table: &'static StackTable) -> Self {
        Self {
            table,
            generation: 0,
            base: Numbers::default(),
            strings: HashMap::new(),
            modules: Vec::new(),
            frames: FxHashMap::default(),
            calls: FxHashMap::default(),
            stacks: StackNumbers::Dense(Vec::new()),
            last_stack: 0,
            pending: Pending::default(),
            runs: DefinitionRuns::default(),
        }
    }

    /// Returns a definer of the same section that has defined nothing, and whose numbers begin behind these.
    pub(super) fn following(&self, base: Numbers) -> Self {
        Self {
            generation: self.generation + 1,
            base,
            stacks: StackNumbers::Sparse(HashMap::new()),
            last_stack: base.stacks,
            runs: DefinitionRuns::of_section(self.runs.section),
            ..Self::new(self.table)
        }
    }

    /// Returns the numbers that it has given.
    pub(super) fn given(&self) -> Given {
        let last = |base: u32, count: usize| next_number(base, count) - 1;
        Given {
            base: self.base,
            last: Numbers {
                strings: last(self.base.strings, self.strings.len()),
                modules: last(self.base.modules, self.modules.len()),
                frames: last(self.base.frames, self.frames.len()),
                stacks: self.last_stack,
            },
        }
    }

    /// Definitions of what is met while `names` can be asked. Whole blocks go to `out` where there are many.
    pub(super) fn asking<'a>(&'a mut self, names: &'a dyn Names, out: &'a mut Vec<u8>) -> Asking<'a> {
        Asking { definer: self, names, out, loaded: None }
    }

    pub(super) fn thread(&mut self, number: u32, tid: u32, name: &str) {
        self.runs.thread(&RecordedThread { number, tid, name: cut(name).to_owned() });
    }

    /// Tells what was answered about frames that were met before.
    pub(super) fn describe(&mut self, answered: &Answered, out: &mut Vec<u8>) {
        for (frame, location) in &answered.scripts {
            let name = self.name(FrameKind::Script, location, out);
            self.runs.names(*frame, &[name], out);
        }
        for (line, behind) in &answered.lines {
            let mut names = vec![line.name];
            for location in behind {
                names.push(self.name(FrameKind::Extra, location, out));
            }
            self.runs.names(line.frame, &names, out);
        }
    }

    fn name(&mut self, kind: FrameKind, location: &SourceLocation, out: &mut Vec<u8>) -> RecordedName {
        RecordedName {
            kind,
            name: self.string(&location.name, out),
            qualname: location.qualname.as_ref().map(|qualname| self.string(qualname, out)),
            filename: (!location.filename.is_empty()).then(|| self.string(&location.filename, out)),
            first_line: location.first_line,
            position: location.position,
            module: None,
            is_inlined: false,
        }
    }

    fn string(&mut self, text: &Arc<str>, out: &mut Vec<u8>) -> u32 {
        if let Some(number) = self.strings.get(text) {
            return *number;
        }
        let number = next_number(self.base.strings, self.strings.len());
        self.strings.insert(Arc::clone(text), number);
        self.runs.string(number, cut(text), out);
        number
    }

    fn module(&mut self, module: &Module, out: &mut Vec<u8>) -> u32 {
        if let Some(known) = self.modules.iter().position(|known| known == module) {
            return next_number(self.base.modules, known);
        }
        let number = next_number(self.base.modules, self.modules.len());
        self.modules.push(module.clone());
        self.runs.module(number, module, out);
        number
    }
}

/// A definer with somebody to ask.
pub(super) struct Asking<'a> {
    definer: &'a mut Definer,
    names: &'a dyn Names,
    out: &'a mut Vec<u8>,
    /// The modules that are loaded, once a new native frame was met.
    loaded: Option<ModuleList>,
}

impl Asking<'_> {
    #[cold]
    #[inline(never)]
    fn new_frame(&mut self, frame: RawFrame) -> u32 {
        let number = next_number(self.definer.base.frames, self.definer.frames.len());
        self.definer.frames.insert(frame.to_bits(), number);
        let recorded = match frame.kind() {
            RawFrameKind::Native(address) => {
                let loaded = self.loaded.get_or_insert_with(|| self.names.modules());
                let module = loaded.find(address.lookup()).map(|(_, module)| self.definer.module(module, self.out));
                RecordedFrame::Native { address, module }
            }
            RawFrameKind::Python { code, instruction, entered_from_native } => {
                RecordedFrame::Python { code: code.get(), instruction, entered_from_native }
            }
            RawFrameKind::Script { source, word } => RecordedFrame::Script { source, word },
            RawFrameKind::Label(label) => RecordedFrame::Label { label: label.get() },
        };
        self.definer.runs.frame(number, recorded, self.out);
        self.name_frame(number, frame);
        number
    }

    /// Tells what a frame is called, as far as that can be asked here.
    fn name_frame(&mut self, number: u32, frame: RawFrame) {
        let (kind, location) = match frame.kind() {
            RawFrameKind::Native(_) => return,
            RawFrameKind::Script { .. } => return self.definer.pending.scripts.push((number, frame)),
            RawFrameKind::Python { .. } => (FrameKind::Python, self.names.locate(frame)),
            RawFrameKind::Label(_) => (FrameKind::Label, locate_label(frame)),
        };
        let Some(location) = location else { return };
        let name = self.definer.name(kind, &location, self.out);
        self.definer.runs.names(number, &[name], self.out);
        if let (FrameKind::Python, Some(line)) = (kind, location.position.line) {
            let filename = location.filename;
            self.definer.pending.lines.push(PendingLine { frame: number, name, filename, line });
        }
    }

    /// Gives numbers to a stack and to its callers, as far as they have none. 0 if nobody knows the stack.
    #[cold]
    #[inline(never)]
    fn new_stack(&mut self, id: StackId) -> u32 {
        let mut new = Vec::new();
        let (mut at, mut number) = (id, 0);
        while let Some(callers) = self.definer.table.parent(at) {
            number = self.definer.stacks.get(at.get().into());
            if number != 0 {
                break;
            }
            new.push(at);
            at = callers;
        }
        for id in new.into_iter().rev() {
            let Some(frame) = self.definer.table.frames(id).next() else { continue };
            let frame = self.known_frame(frame);
            let callers = number;
            self.definer.last_stack += 1;
            number = self.definer.last_stack;
            self.definer.stacks.set(id, number);
            self.definer.runs.stack(number, callers, frame, self.out);
        }
        number
    }

    #[cold]
    #[inline(never)]
    fn new_call(&mut self, word: u64) -> (u32, u32) {
        let Some(call) = Call::from_bits(word) else { return (0, 0) };
        let numbers = (self.known_frame(call.callee()), call.caller().map_or(0, |caller| self.known_frame(caller)));
        self.definer.calls.insert(call_key(word), numbers);
        numbers
    }

    #[inline]
    fn known_frame(&mut self, frame: RawFrame) -> u32 {
        match self.definer.frames.get(&frame.to_bits()) {
            Some(number) => *number,
            None => self.new_frame(frame),
        }
    }
}

impl Renumber for Asking<'_> {
    #[inline]
    fn stack(&mut self, word: u64) -> u64 {
        let known = self.definer.stacks.get(word);
        if known != 0 {
            return known.into();
        }
        let id = u32::try_from(word).ok().and_then(StackId::new);
        id.map_or(0, |id| self.new_stack(id).into())
    }

    #[inline]
    fn frame(&mut self, word: u64) -> u64 {
        let frame = RawFrame::from_bits(word).filter(|_| word != 0);
        frame.map_or(0, |frame| self.known_frame(frame).into())
    }

    #[inline]
    fn call(&mut self, word: u64) -> (u64, u64) {
        let (called, calling) = match self.definer.calls.get(&call_key(word)) {
            Some(numbers) => *numbers,
            None => self.new_call(word),
        };
        (called.into(), calling.into())
    }
}

fn cut(text: &str) -> &str {
    let end = (0..=text.len().min(MAX_STRING)).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

/// Returns the word of a call as a key. Calls without a caller differ in their high bits alone, which the hash would leave out of
/// its own low and high ones: they become the low bits.
const fn call_key(word: u64) -> u64 {
    word.rotate_left(24)
}

/// The number of what follows `count` others behind `base`.
fn next_number(base: u32, count: usize) -> u32 {
    u32::try_from(count + 1).unwrap_or(u32::MAX).saturating_add(base)
}

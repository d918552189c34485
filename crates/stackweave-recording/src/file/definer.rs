//! The definitions of a section so far, and the numbers that it has assigned.

use std::collections::HashMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use stackweave_core::{
    Call, FrameKind, FrameNames, Module, ModuleList, RawFrame, RawFrameKind, SourceLocation, StackId,
};
use stackweave_store::{StackTable, locate_label};

use super::definition_runs::DefinitionRuns;
use super::numbers::{AssignedNumbers, Numbers, StackNumbers};
use super::pending_names::{PendingLine, PendingNames, ResolvedNames};
use super::recorded_frames::{RecordedFrame, RecordedName, RecordedThread};
use super::transpose::Renumber;

/// The maximum length of a string; longer ones are truncated.
const MAX_STRING: usize = 1 << 20;

/// Assigns numbers to strings, modules, frames and stacks, in the order of their first use.
#[derive(Debug)]
pub(super) struct Definer {
    table: &'static StackTable,
    /// The number of earlier definers of this section.
    pub(super) generation: u64,
    /// The numbers that earlier definers have assigned; its own follow.
    base: Numbers,
    strings: HashMap<Arc<str>, u32>,
    modules: Vec<Module>,
    frames: FxHashMap<u64, u32>,
    /// By [`call_key`]: the frames of the callee and of the caller.
    calls: FxHashMap<u64, (u32, u32)>,
    stacks: StackNumbers,
    last_stack: u32,
    pub(super) pending: PendingNames,
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
            pending: PendingNames::default(),
            runs: DefinitionRuns::default(),
        }
    }

    /// Returns an empty definer for the same section, whose numbers follow `base`.
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

    /// Returns the numbers that it has assigned.
    pub(super) fn assigned(&self) -> AssignedNumbers {
        let last = |base: u32, count: usize| next_number(base, count) - 1;
        AssignedNumbers {
            base: self.base,
            last: Numbers {
                strings: last(self.base.strings, self.strings.len()),
                modules: last(self.base.modules, self.modules.len()),
                frames: last(self.base.frames, self.frames.len()),
                stacks: self.last_stack,
            },
        }
    }

    /// Returns a definer that resolves names by `names`. It writes blocks that are full to `out`.
    pub(super) fn with_names<'a>(&'a mut self, names: &'a dyn FrameNames, out: &'a mut Vec<u8>) -> NamingDefiner<'a> {
        NamingDefiner { definer: self, names, out, loaded: None }
    }

    pub(super) fn thread(&mut self, number: u32, tid: u32, name: &str) {
        self.runs.thread(&RecordedThread { number, tid, name: truncated(name).to_owned() });
    }

    /// Defines the names that were resolved for pending frames.
    pub(super) fn describe(&mut self, resolved: &ResolvedNames, out: &mut Vec<u8>) {
        for (frame, location) in &resolved.scripts {
            let name = self.name(FrameKind::Script, location, out);
            self.runs.names(*frame, &[name], out);
        }
        for (line, behind) in &resolved.lines {
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
        self.runs.string(number, truncated(text), out);
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

/// A definer that can resolve names.
pub(super) struct NamingDefiner<'a> {
    definer: &'a mut Definer,
    names: &'a dyn FrameNames,
    out: &'a mut Vec<u8>,
    /// The loaded modules, queried for the first new native frame.
    loaded: Option<ModuleList>,
}

impl NamingDefiner<'_> {
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

    /// Defines the names of a frame, or adds it to those that are pending.
    fn name_frame(&mut self, number: u32, frame: RawFrame) {
        let (kind, location) = match frame.kind() {
            RawFrameKind::Native(_) => return,
            RawFrameKind::Script { .. } => return self.definer.pending.scripts.push((number, frame)),
            RawFrameKind::Python { .. } => (FrameKind::Python, self.names.locate(frame)),
            RawFrameKind::Label(_) => (FrameKind::Span, locate_label(frame)),
        };
        let Some(location) = location else { return };
        let name = self.definer.name(kind, &location, self.out);
        self.definer.runs.names(number, &[name], self.out);
        if let (FrameKind::Python, Some(line)) = (kind, location.position.line) {
            let filename = location.filename;
            self.definer.pending.lines.push(PendingLine { frame: number, name, filename, line });
        }
    }

    /// Assigns numbers to a stack and to those of its callers that have none. Returns 0 for an unknown stack.
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

impl Renumber for NamingDefiner<'_> {
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

fn truncated(text: &str) -> &str {
    let end = (0..=text.len().min(MAX_STRING)).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

/// Returns the word of a call as a hash key. Calls without a caller differ only in their high bits, which the hash would ignore, so
/// these become the low bits.
const fn call_key(word: u64) -> u64 {
    word.rotate_left(24)
}

/// Returns the number of the definition that follows `base` and `count` others.
fn next_number(base: u32, count: usize) -> u32 {
    u32::try_from(count + 1).unwrap_or(u32::MAX).saturating_add(base)
}

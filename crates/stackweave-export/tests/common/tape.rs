//! Recordings that are made up, event by event, in memory.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use stackweave_core::{
    CodeAddress, CodeId, EventKind, Module, ModuleList, Names, Position, RawFrame, RawFrameKind, SourceLocation,
};
use stackweave_recording::Recording;
use stackweave_recording::file::{Encoded, Encoder, End, EndReason, LossReason, Lost, Start};
use stackweave_recording::read::Source;
use stackweave_store::{StackTable, label, locate_label};

use super::native_names::{NativeName, write_native_names};

static STACKS: StackTable = StackTable::new();

/// A process that records. A tick of its clock is a nanosecond.
pub struct Tape {
    encoder: Encoder,
    bytes: Vec<u8>,
    names: TapeNames,
    native_names: BTreeMap<u64, Vec<NativeName>>,
    /// Words that are not written yet, by thread.
    words: BTreeMap<u32, Vec<u64>>,
}

#[derive(Default)]
struct TapeNames {
    python: Vec<SourceLocation>,
    modules: Vec<Module>,
}

impl Names for TapeNames {
    fn locate(&self, frame: RawFrame) -> Option<SourceLocation> {
        match frame.kind() {
            RawFrameKind::Python { code, instruction, .. } => {
                let mut location = self.python.get(code.get() as usize - 1)?.clone();
                location.position.line = Some(instruction);
                Some(location)
            }
            _ => locate_label(frame),
        }
    }

    fn has_extra_frames(&self) -> bool {
        false
    }

    fn frames_behind(&self, _: &str, _: u32) -> Vec<SourceLocation> {
        Vec::new()
    }

    fn modules(&self) -> ModuleList {
        ModuleList::new(self.modules.clone())
    }
}

/// The kinds, in the order of their numbers.
const KINDS: [EventKind; 10] = EventKind::BUILT_IN;

/// The frame that a name stands for.
pub fn span(name: &str) -> RawFrame {
    label(name, "", 0).unwrap()
}

/// A native frame with this return address.
pub fn native(address: u64) -> RawFrame {
    RawFrame::native(CodeAddress::return_address(address))
}

/// Where and when an event happens: thread and ticks.
pub type At = (u32, u64);

impl Tape {
    pub fn new() -> Self {
        Self::started(&Start { pid: 1, ..Start::default() })
    }

    pub fn started(start: &Start) -> Self {
        let mut encoder = Encoder::new(&STACKS);
        let mut bytes = Vec::new();
        encoder.start(start, &mut bytes);
        for kind in &KINDS {
            encoder.kind(kind).unwrap();
        }
        let (names, native_names, words) = Default::default();
        Self { encoder, bytes, names, native_names, words }
    }

    /// A Python function: its number.
    pub fn python(&mut self, qualname: &str, filename: &str, first_line: u32) -> u32 {
        self.names.python.push(SourceLocation {
            name: qualname.rsplit('.').next().unwrap().into(),
            qualname: Some(qualname.into()),
            filename: filename.into(),
            first_line: Some(first_line),
            position: Position::default(),
        });
        u32::try_from(self.names.python.len()).unwrap()
    }

    /// A frame of a Python function, at this line.
    pub fn at(function: u32, line: u32) -> RawFrame {
        RawFrame::python(CodeId::new(function).unwrap(), line, false)
    }

    pub fn module(&mut self, module: Module) {
        self.names.modules.push(module);
    }

    /// What the native frame with this address is called, innermost first.
    pub fn name_native(&mut self, address: u64, names: Vec<NativeName>) {
        self.native_names.insert(address, names);
    }

    pub fn thread(&mut self, number: u32, tid: u32, name: &str) {
        self.encoder.thread(number, tid, name);
    }

    /// One more kind of events.
    pub fn kind(&mut self, kind: &EventKind) {
        self.encoder.kind(kind).unwrap();
    }

    pub fn event(&mut self, (thread, ticks): At, kind: u64, words: &[u64]) {
        let buffer = self.words.entry(thread).or_default();
        buffer.push(ticks << 8 | kind);
        buffer.extend(words);
    }

    fn event_with(&mut self, at: At, kind: u64, words: &[u64], details: &str) {
        let mut words = words.to_vec();
        words.push(details.len() as u64);
        for chunk in details.as_bytes().chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            words.push(u64::from_le_bytes(word));
        }
        self.event(at, kind, &words);
    }

    pub fn begin(&mut self, at: At, frame: RawFrame) {
        self.event(at, 1, &[frame.to_bits()]);
    }

    /// Stacks have their innermost frame first.
    pub fn begin_at(&mut self, at: At, frame: RawFrame, stack: &[RawFrame]) {
        self.event(at, 2, &[frame.to_bits(), stack_word(stack)]);
    }

    pub fn begin_with(&mut self, at: At, frame: RawFrame, stack: &[RawFrame], details: &str) {
        self.event_with(at, 3, &[frame.to_bits(), stack_word(stack)], details);
    }

    pub fn end(&mut self, at: At) {
        self.event(at, 4, &[]);
    }

    pub fn instant(&mut self, at: At, frame: RawFrame, stack: &[RawFrame]) {
        self.event(at, 5, &[frame.to_bits(), stack_word(stack)]);
    }

    pub fn instant_with(&mut self, at: At, frame: RawFrame, stack: &[RawFrame], details: &str) {
        self.event_with(at, 6, &[frame.to_bits(), stack_word(stack)], details);
    }

    pub fn counter(&mut self, at: At, frame: RawFrame, value: f64) {
        self.event(at, 7, &[frame.to_bits(), value.to_bits()]);
    }

    pub fn sample(&mut self, at: At, stack: &[RawFrame], weight: i64) {
        self.event(at, 8, &[stack_word(stack), weight.cast_unsigned()]);
    }

    pub fn allocate(&mut self, at: At, (address, size): (u64, u64), stack: &[RawFrame]) {
        self.event(at, 9, &[address, size, stack_word(stack)]);
    }

    pub fn free(&mut self, at: At, address: u64) {
        self.event(at, 10, &[address]);
    }

    /// Writes what a thread has recorded so far.
    pub fn flush(&mut self, thread: u32) {
        let mut encoded = Encoded::default();
        let words = self.words.remove(&thread).unwrap_or_default();
        let taken = self.encoder.events(thread, &words, &self.names, &mut encoded);
        assert_eq!(taken.words, words.len());
        self.bytes.extend(encoded.definitions);
        self.bytes.extend(encoded.events);
    }

    /// Says that events of a thread were lost at this time.
    pub fn lose(&mut self, (thread, ticks): At) {
        self.flush(thread);
        let lost = Lost { reason: LossReason::ALL[0], count: 1, thread, first_ticks: ticks, last_ticks: ticks };
        self.encoder.lost(&lost, &mut self.bytes);
    }

    /// The file.
    pub fn bytes(mut self) -> Vec<u8> {
        for thread in self.words.keys().copied().collect::<Vec<_>>() {
            self.flush(thread);
        }
        self.encoder.describe_pending(&self.names, &mut self.bytes);
        write_native_names(&self.native_names, &mut self.bytes);
        let end = End { events: 0, lost: 0, residual_ns: 0, reason: EndReason::ALL[0] };
        self.encoder.end(&end, &mut self.bytes);
        self.bytes
    }

    /// Reads it all back.
    pub fn recording(self) -> Recording {
        recording(self.bytes())
    }
}

/// Several processes, as they would lie in one file.
pub fn recording_of(tapes: Vec<Tape>) -> Recording {
    recording(tapes.into_iter().flat_map(Tape::bytes).collect())
}

pub fn recording(bytes: Vec<u8>) -> Recording {
    let source: Arc<dyn Source> = Arc::new(Arc::<[u8]>::from(bytes));
    Recording::from_source(&source, Path::new("made-up.swv")).unwrap()
}

pub fn stack_word(stack: &[RawFrame]) -> u64 {
    if stack.is_empty() { 0 } else { STACKS.intern(stack).unwrap().get().into() }
}

//! Hand-made recordings for tests, written event by event in memory.
#![expect(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a recording that cannot be made must fail the test"
)]

pub mod devices;
pub mod memory;
mod native_names;
pub mod phases;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use stackweave_core::{
    CodeAddress, CodeId, EventKind, FrameNames, Module, ModuleList, Position, RawFrame, RawFrameKind, SourceLocation,
};
use stackweave_recording::events::{self, Allocator};
use stackweave_recording::file::{Encoded, Encoder, EndReason, LossReason, Lost, ProcessStart, SectionEnd};
use stackweave_recording::read::RecordingSource;
use stackweave_recording::{ProcessRecording, Recording};
use stackweave_store::{StackTable, label, locate_label};

pub use native_names::NativeName;
use native_names::write_native_names;

static STACKS: StackTable = StackTable::new();

/// The recording of a process. A tick of its clock is a nanosecond.
#[derive(Debug)]
pub struct Tape {
    encoder: Encoder,
    bytes: Vec<u8>,
    names: TapeNames,
    /// The declared kinds, in the order of their numbers, which begin at 1.
    kinds: Vec<EventKind>,
    native_names: BTreeMap<u64, Vec<NativeName>>,
    /// Words of each thread that are not written yet.
    words: BTreeMap<u32, Vec<u64>>,
}

#[derive(Debug, Default)]
struct TapeNames {
    python: Vec<SourceLocation>,
    modules: Vec<Module>,
    /// The original frames of line 3 of each file, innermost first.
    behind: Vec<SourceLocation>,
}

impl FrameNames for TapeNames {
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
        !self.behind.is_empty()
    }

    fn frames_behind(&self, _: &str, line: u32) -> Vec<SourceLocation> {
        if line == 3 { self.behind.clone() } else { Vec::new() }
    }

    fn modules(&self) -> ModuleList {
        ModuleList::new(self.modules.clone())
    }
}

/// Returns the frame of a label with this name.
pub fn span(name: &str) -> RawFrame {
    label(name, "", 0).unwrap()
}

/// Returns a native frame with this return address.
pub fn native(address: u64) -> RawFrame {
    RawFrame::native(CodeAddress::return_address(address))
}

/// The thread and ticks of an event.
pub type TapeTime = (u32, u64);

impl Default for Tape {
    fn default() -> Self {
        Self::new()
    }
}

impl Tape {
    /// Creates the recording of process 1.
    pub fn new() -> Self {
        Self::started(&ProcessStart { pid: 1, ..ProcessStart::default() })
    }

    /// Creates a recording with this header. Declares the kinds that every recorder has.
    pub fn started(start: &ProcessStart) -> Self {
        let mut encoder = Encoder::new(&STACKS);
        let mut bytes = Vec::new();
        encoder.start(start, &mut bytes);
        let (names, kinds, native_names, words) = Default::default();
        let mut tape = Self { encoder, bytes, names, kinds, native_names, words };
        for kind in &events::BUILT_IN {
            tape.kind(kind);
        }
        tape
    }

    /// Adds a Python function, and returns its number.
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

    /// Returns a frame of a Python function at this line.
    pub fn at(function: u32, line: u32) -> RawFrame {
        RawFrame::python(CodeId::new(function).unwrap(), line, false)
    }

    /// Makes line 3 of each file generated from functions with these names, innermost first.
    pub fn behind_line_3(&mut self, names: &[&str]) {
        let location = |name: &&str| SourceLocation {
            name: (*name).into(),
            qualname: None,
            filename: "original.py".into(),
            first_line: None,
            position: Position { line: Some(1), ..Position::default() },
        };
        self.names.behind = names.iter().map(location).collect();
    }

    /// Loads a module.
    pub fn module(&mut self, module: Module) {
        self.names.modules.push(module);
    }

    /// Unloads all modules.
    pub fn unload(&mut self) {
        self.names.modules.clear();
    }

    /// Sets the names of the native frame with this address, innermost first.
    pub fn name_native(&mut self, address: u64, names: Vec<NativeName>) {
        self.native_names.insert(address, names);
    }

    /// Sets the id and name of a thread.
    pub fn thread(&mut self, number: u32, tid: u32, name: &str) {
        self.encoder.thread(number, tid, name);
    }

    /// Returns the number of a kind of event, and declares it if it is not declared yet.
    pub fn kind(&mut self, kind: &EventKind) -> u64 {
        let known = self.kinds.iter().position(|known| known == kind);
        let place = known.unwrap_or_else(|| {
            self.kinds.push(kind.clone());
            assert_eq!(self.encoder.kind(kind).map(usize::from), Some(self.kinds.len()));
            self.kinds.len() - 1
        });
        place as u64 + 1
    }

    /// Records an event. Stacks are words that [`stack_word`] returns, frames are the bits of raw frames.
    pub fn event(&mut self, (thread, ticks): TapeTime, kind: &EventKind, words: &[u64]) {
        let number = self.kind(kind);
        let buffer = self.words.entry(thread).or_default();
        buffer.push(ticks << 8 | number);
        buffer.extend(words);
    }

    /// Begins a span.
    pub fn begin(&mut self, at: TapeTime, frame: RawFrame) {
        self.event(at, &events::BEGIN, &[frame.to_bits()]);
    }

    /// Begins a span at this stack, whose innermost frame is first.
    pub fn begin_at(&mut self, at: TapeTime, frame: RawFrame, stack: &[RawFrame]) {
        self.event(at, &events::BEGIN_AT, &[frame.to_bits(), stack_word(stack)]);
    }

    /// Begins a span with details as JSON.
    pub fn begin_with(&mut self, at: TapeTime, frame: RawFrame, stack: &[RawFrame], details: &str) {
        self.event(at, &events::BEGIN_WITH, &with_bytes(&[frame.to_bits(), stack_word(stack)], details));
    }

    /// Ends the innermost span.
    pub fn end(&mut self, at: TapeTime) {
        self.event(at, &events::END, &[]);
    }

    /// Records an instant.
    pub fn instant(&mut self, at: TapeTime, frame: RawFrame, stack: &[RawFrame]) {
        self.event(at, &events::INSTANT, &[frame.to_bits(), stack_word(stack)]);
    }

    /// Records an instant with details as JSON.
    pub fn instant_with(&mut self, at: TapeTime, frame: RawFrame, stack: &[RawFrame], details: &str) {
        self.event(at, &events::INSTANT_WITH, &with_bytes(&[frame.to_bits(), stack_word(stack)], details));
    }

    /// Records the value of a counter.
    pub fn counter(&mut self, at: TapeTime, frame: RawFrame, value: f64) {
        self.event(at, &events::COUNTER, &[frame.to_bits(), value.to_bits()]);
    }

    /// Records a sample with this weight.
    pub fn sample(&mut self, at: TapeTime, stack: &[RawFrame], weight: i64) {
        self.event(at, &events::SAMPLE, &[stack_word(stack), weight.cast_unsigned()]);
    }

    /// Records the allocation of a block.
    pub fn allocate(&mut self, at: TapeTime, (address, size): (u64, u64), stack: &[RawFrame]) {
        self.event(at, &events::ALLOCATE, &[address, size, stack_word(stack)]);
    }

    /// Records the allocation of a block by this allocator.
    pub fn allocate_by(&mut self, at: TapeTime, by: Allocator, (address, size): (u64, u64), stack: &[RawFrame]) {
        self.event(at, &by.kind(), &[address, size, stack_word(stack)]);
    }

    /// Sets the tag of the thread's next allocations, or none.
    pub fn tag(&mut self, at: TapeTime, name: Option<&str>) {
        self.event(at, &events::MEMORY_TAG, &[name.map_or(0, |name| span(name).to_bits())]);
    }

    /// Records the free of a block.
    pub fn free(&mut self, at: TapeTime, address: u64) {
        self.event(at, &events::FREE, &[address]);
    }

    /// Writes the buffered events of a thread.
    pub fn flush(&mut self, thread: u32) {
        let encoded = self.encode(thread);
        self.bytes.extend(encoded.definitions);
        self.bytes.extend(encoded.events);
    }

    /// Writes the buffered events of a thread, but omits the block of definitions that they refer to.
    pub fn flush_undefined(&mut self, thread: u32) {
        let encoded = self.encode(thread);
        self.bytes.extend(encoded.events);
    }

    fn encode(&mut self, thread: u32) -> Encoded {
        let mut encoded = Encoded::default();
        let words = self.words.remove(&thread).unwrap_or_default();
        let taken = self.encoder.events(thread, &words, &self.names, &mut encoded);
        assert_eq!(taken.words, words.len());
        encoded
    }

    /// Records that events of a thread were lost at this time.
    pub fn lose(&mut self, (thread, ticks): TapeTime) {
        self.flush(thread);
        let lost = Lost { reason: LossReason::ALL[0], count: 1, thread, first_ticks: ticks, last_ticks: ticks };
        self.encoder.lost(&lost, &mut self.bytes);
    }

    /// Returns the bytes of the file.
    pub fn bytes(mut self) -> Vec<u8> {
        self.write_all();
        let end = SectionEnd { events: 0, lost: 0, residual_ns: 0, reason: EndReason::ALL[0] };
        self.encoder.end(&end, &mut self.bytes);
        self.bytes
    }

    /// Returns the bytes of the file of a killed process, which has no end.
    pub fn unended_bytes(mut self) -> Vec<u8> {
        self.write_all();
        self.bytes
    }

    fn write_all(&mut self) {
        for thread in self.words.keys().copied().collect::<Vec<_>>() {
            self.flush(thread);
        }
        self.encoder.describe_pending(&self.names, &mut self.bytes);
        write_native_names(&self.native_names, &mut self.bytes);
    }

    /// Opens the recording for reading.
    pub fn recording(self) -> Recording {
        recording(self.bytes())
    }

    /// Opens the recording for reading, and returns its only process.
    pub fn process(self) -> ProcessRecording {
        self.recording().processes()[0].clone()
    }
}

/// Appends a byte string to words: its length, and its bytes in whole words.
pub fn with_bytes(words: &[u64], text: &str) -> Vec<u64> {
    let word = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    };
    words.iter().copied().chain([text.len() as u64]).chain(text.as_bytes().chunks(8).map(word)).collect()
}

/// Joins several processes to one recording.
pub fn recording_of(tapes: Vec<Tape>) -> Recording {
    recording(tapes.into_iter().flat_map(Tape::bytes).collect())
}

/// Opens the bytes of a file for reading.
pub fn recording(bytes: Vec<u8>) -> Recording {
    let source: Arc<dyn RecordingSource> = Arc::new(Arc::<[u8]>::from(bytes));
    Recording::from_source(&source, Path::new("test.swv")).unwrap()
}

/// Returns the word of an event that represents a stack; 0 for an empty stack.
pub fn stack_word(stack: &[RawFrame]) -> u64 {
    if stack.is_empty() { 0 } else { STACKS.intern(stack).unwrap().get().into() }
}

//! Recordings that are made up, event by event, in memory.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use stackweave_core::{
    Call, CodeAddress, CodeId, EventKind, Field, FieldType, Module, ModuleList, Names, Position, RawFrame,
    RawFrameKind, Role, SourceLocation,
};
use stackweave_profile::{AggregateOptions, Profile, aggregate};
use stackweave_recording::file::{Encoded, Encoder, End, EndReason, LossReason, Lost, Start};
use stackweave_recording::read::Source;
use stackweave_recording::{ProcessRecording, Recording};
use stackweave_store::{StackTable, label, locate_label};

static STACKS: StackTable = StackTable::new();

/// A process that records. A tick of its clock is a nanosecond.
pub struct Tape {
    encoder: Encoder,
    bytes: Vec<u8>,
    names: TapeNames,
    /// The numbers of kinds that were added, by name.
    kinds: BTreeMap<String, u64>,
    /// Words that are not written yet, by thread.
    words: BTreeMap<u32, Vec<u64>>,
}

#[derive(Default)]
struct TapeNames {
    python: Vec<SourceLocation>,
    modules: Vec<Module>,
    /// What lies behind line 3 of each file, innermost first.
    behind: Vec<SourceLocation>,
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
        !self.behind.is_empty()
    }

    fn frames_behind(&self, _: &str, line: u32) -> Vec<SourceLocation> {
        if line == 3 { self.behind.clone() } else { Vec::new() }
    }

    fn modules(&self) -> ModuleList {
        ModuleList::new(self.modules.clone())
    }
}

const FRAME: Field = Field::new("frame", FieldType::Frame);

/// Something goes on: `resume(frame, object)`.
const RESUME: EventKind = EventKind {
    name: Cow::Borrowed("resume"),
    role: Role::Resume,
    fields: Cow::Borrowed(const { &[FRAME, Field::new("object", FieldType::Address)] }),
};

/// Something is open: `open(call, depth)`.
const OPEN: EventKind = EventKind {
    name: Cow::Borrowed("open"),
    role: Role::Open,
    fields: Cow::Borrowed(const { &[Field::new("call", FieldType::Call), Field::new("depth", FieldType::Unsigned)] }),
};

/// The kinds, in the order of their numbers.
const KINDS: [EventKind; 9] = [
    EventKind::BEGIN,
    EventKind::BEGIN_AT,
    EventKind::END,
    EventKind::SAMPLE,
    EventKind::ALLOCATE,
    EventKind::FREE,
    EventKind::INSTANT,
    RESUME,
    OPEN,
];

/// The frame that a name stands for.
pub fn span(name: &str) -> RawFrame {
    label(name, "", 0).unwrap()
}

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
        Self { encoder, bytes, names: TapeNames::default(), kinds: BTreeMap::new(), words: BTreeMap::new() }
    }

    /// A Python function.
    pub fn python(&mut self, name: &str, filename: &str, first_line: u32) -> u32 {
        self.names.python.push(SourceLocation {
            name: name.rsplit('.').next().unwrap().into(),
            qualname: Some(name.into()),
            filename: filename.into(),
            first_line: Some(first_line),
            position: Position::default(),
        });
        u32::try_from(self.names.python.len()).unwrap()
    }

    /// Line 3 of each file was made from these, innermost first.
    pub fn behind_line_3(&mut self, names: &[&str]) {
        self.names.behind = names.iter().map(|name| super::location(name, "original.py", 1)).collect();
    }

    /// A frame of a Python function, at this line.
    pub fn at(function: u32, line: u32) -> RawFrame {
        RawFrame::python(CodeId::new(function).unwrap(), line, false)
    }

    pub fn module(&mut self, module: Module) {
        self.names.modules.push(module);
    }

    /// Unloads all modules.
    pub fn unload(&mut self) {
        self.names.modules.clear();
    }

    pub fn thread(&mut self, number: u32, tid: u32, name: &str) {
        self.encoder.thread(number, tid, name);
    }

    /// Another kind of events, and its number.
    pub fn kind(&mut self, kind: &EventKind) -> u64 {
        let encoder = &mut self.encoder;
        *self.kinds.entry(kind.name.to_string()).or_insert_with(|| encoder.kind(kind).unwrap().into())
    }

    /// Any event; stacks are words that [`stack_word`] gives, frames are the bits of raw ones.
    pub fn event(&mut self, thread: u32, ticks: u64, kind: u64, words: &[u64]) {
        let buffer = self.words.entry(thread).or_default();
        buffer.push(ticks << 8 | kind);
        buffer.extend(words);
    }

    pub fn begin(&mut self, thread: u32, ticks: u64, frame: RawFrame) {
        self.event(thread, ticks, 1, &[frame.to_bits()]);
    }

    pub fn begin_at(&mut self, thread: u32, ticks: u64, frame: RawFrame, stack: &[RawFrame]) {
        self.event(thread, ticks, 2, &[frame.to_bits(), stack_word(stack)]);
    }

    pub fn end(&mut self, thread: u32, ticks: u64) {
        self.event(thread, ticks, 3, &[]);
    }

    pub fn resume(&mut self, thread: u32, ticks: u64, frame: RawFrame) {
        self.event(thread, ticks, 8, &[frame.to_bits(), 0x7000]);
    }

    /// The label is open, with so many around it; nothing is if there is none.
    pub fn open(&mut self, thread: u32, ticks: u64, name: Option<RawFrame>, depth: u64) {
        let call = name.map(|name| match name.kind() {
            RawFrameKind::Label(label) => Call::to_label(label).unwrap(),
            RawFrameKind::Python { code, .. } => Call::to_code(code).unwrap(),
            other => panic!("{other:?} is never called"),
        });
        self.event(thread, ticks, 9, &[call.map_or(0, Call::to_bits), depth]);
    }

    /// Innermost frame first.
    pub fn sample(&mut self, thread: u32, ticks: u64, stack: &[RawFrame], weight: i64) {
        self.event(thread, ticks, 4, &[stack_word(stack), weight.cast_unsigned()]);
    }

    pub fn allocate(&mut self, thread: u32, ticks: u64, (address, size): (u64, u64), stack: &[RawFrame]) {
        self.event(thread, ticks, 5, &[address, size, stack_word(stack)]);
    }

    pub fn free(&mut self, thread: u32, ticks: u64, address: u64) {
        self.event(thread, ticks, 6, &[address]);
    }

    pub fn instant(&mut self, thread: u32, ticks: u64, frame: RawFrame) {
        self.event(thread, ticks, 7, &[frame.to_bits(), 0]);
    }

    /// Writes what a thread has recorded so far.
    pub fn flush(&mut self, thread: u32) {
        let encoded = self.encode(thread);
        self.bytes.extend(encoded.definitions);
        self.bytes.extend(encoded.events);
    }

    /// The same, as if the block with what the events refer to were lost.
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

    /// Says that events of a thread were lost at this time.
    pub fn lose(&mut self, thread: u32, ticks: u64) {
        self.flush(thread);
        let reason = LossReason::ALL[0];
        let lost = Lost { reason, count: 1, thread, first_ticks: ticks, last_ticks: ticks };
        self.encoder.lost(&lost, &mut self.bytes);
    }

    /// Reads it all back.
    pub fn process(self) -> ProcessRecording {
        self.recording(true).processes()[0].clone()
    }

    /// The same, as a recording; one that was killed has no end.
    pub fn recording(self, is_ended: bool) -> Recording {
        let source: Arc<dyn Source> = Arc::new(Arc::<[u8]>::from(self.bytes(is_ended)));
        Recording::from_source(&source, Path::new("made-up.swv")).unwrap()
    }

    /// The same, as it is in a file.
    pub fn bytes(mut self, is_ended: bool) -> Vec<u8> {
        for thread in self.words.keys().copied().collect::<Vec<_>>() {
            self.flush(thread);
        }
        self.encoder.describe_pending(&self.names, &mut self.bytes);
        let end = End { events: 0, lost: 0, residual_ns: 0, reason: EndReason::ALL[0] };
        if is_ended {
            self.encoder.end(&end, &mut self.bytes);
        }
        self.bytes
    }

    pub fn profile(self, options: &AggregateOptions) -> Profile {
        profile(&[self.process()], options)
    }
}

pub fn profile(processes: &[ProcessRecording], options: &AggregateOptions) -> Profile {
    aggregate(processes, options, None, &mut |_| {}).unwrap().merged()
}

pub fn native(address: u64) -> RawFrame {
    RawFrame::native(CodeAddress::return_address(address))
}

pub fn stack_word(stack: &[RawFrame]) -> u64 {
    if stack.is_empty() { 0 } else { STACKS.intern(stack).unwrap().get().into() }
}

/// Each path of the tree, from the outermost name to the innermost, with calls, own and total cost, sorted by path.
pub fn paths(profile: &Profile) -> Vec<(String, u64, i64, i64)> {
    let tree = profile.tree();
    let mut names = vec![String::new(); tree.nodes().len()];
    let mut paths = Vec::new();
    for (id, node) in tree.iter() {
        let frame = profile.functions().frame(node.frame);
        let above = &names[node.parent.index()];
        let separator = if above.is_empty() { "" } else { ";" };
        let line = frame.line.map_or_else(String::new, |line| format!(":{line}"));
        names[id.index()] =
            format!("{above}{separator}{}{line}", profile.functions().function(frame.function).full_name());
        paths.push((names[id.index()].clone(), node.cost.calls, node.cost.own, node.cost.total));
    }
    paths.sort();
    paths
}

/// The same as tuples of `&str`, for comparisons.
pub fn path(path: &str, calls: u64, own: i64, total: i64) -> (String, u64, i64, i64) {
    (path.to_owned(), calls, own, total)
}

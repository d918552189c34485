//! Names the frames of a recording: from the file, and native ones else from their modules.

use std::sync::Arc;

use stackweave_core::{CodeAddress, Module, ModuleList};
use stackweave_recording::ProcessRecording;
use stackweave_recording::file::{Dictionary, ProcessStart, RecordedFrame, RecordedName};
use stackweave_symbolize::{Resolved, Symbolizer};

use crate::frame::{Frame, FrameKind};
use crate::live::NativeNames;
use crate::native_frames;
use crate::word_hash::WordMap;

/// The names of a process's frames, by their numbers in its recording.
#[derive(Debug, Default)]
pub struct RecordedNames {
    frames: Vec<Frame>,
    /// The index and the number of the frames for each number.
    ranges: WordMap<u32, (u32, u32)>,
}

/// The maximum number of functions of one frame: each is a node in a tree.
const MAX_NAMES: usize = 64;

impl RecordedNames {
    /// Names these frames, once each. Without a symbolizer, native frames without a name in the file are named by their
    /// address in the module.
    pub fn resolve(process: &ProcessRecording, numbers: &[u32], symbolizer: Option<&Symbolizer>) -> Self {
        let mut of = FrameNamer::new(process);
        of.resolve(numbers.iter().copied(), symbolizer);
        let mut names = Self::default();
        for &number in numbers {
            if !names.ranges.contains_key(&number) {
                names.put(number, of.of(number));
            }
        }
        names
    }

    /// Returns the functions of the frame with this number, innermost first: more than one if calls were inlined, or if
    /// a code generator has described the source of generated code. Empty if the frame was not named.
    pub fn of(&self, number: u32) -> &[Frame] {
        let (start, length) = self.ranges.get(&number).copied().unwrap_or_default();
        &self.frames[start as usize..(start + length) as usize]
    }

    #[expect(clippy::cast_possible_truncation, reason = "that many frames do not fit into memory")]
    fn put(&mut self, number: u32, frames: Vec<Frame>) {
        let start = self.frames.len();
        self.frames.extend(frames);
        self.ranges.insert(number, (start as u32, (self.frames.len() - start) as u32));
    }
}

/// Names the frames of a process one at a time, and keeps only what is shared by several.
#[derive(Debug)]
pub(crate) struct FrameNamer<'a> {
    process: &'a ProcessRecording,
    /// The folder of the Python package that made the recording.
    package: Option<&'a str>,
    texts: WordMap<u32, Arc<str>>,
    /// The names of modules.
    modules: WordMap<u32, Arc<str>>,
    /// The results for native frames without a name in the file.
    resolved: WordMap<u32, Arc<Resolved>>,
    /// The names of such frames that were resolved before.
    known: Option<&'a NativeNames>,
}

impl<'a> FrameNamer<'a> {
    pub(crate) fn new(process: &'a ProcessRecording) -> Self {
        let (texts, modules, resolved) = Default::default();
        let package = process.start().package();
        Self { process, package, texts, modules, resolved, known: None }
    }

    /// Returns the names of a process that is still recording.
    pub(crate) fn with_known(process: &'a ProcessRecording, known: &'a NativeNames) -> Self {
        Self { known: Some(known), ..Self::new(process) }
    }

    pub(crate) fn dictionary(&self) -> &'a Dictionary {
        self.process.dictionary()
    }

    /// Resolves the native ones of these frames that have no name in the file.
    pub(crate) fn resolve(&mut self, numbers: impl IntoIterator<Item = u32>, symbolizer: Option<&Symbolizer>) {
        let Some(symbolizer) = symbolizer else { return };
        let dictionary = self.dictionary();
        let mut unnamed: Vec<UnnamedFrame> =
            numbers.into_iter().filter_map(|number| UnnamedFrame::of(number, dictionary)).collect();
        unnamed.sort_unstable_by_key(|frame| frame.number);
        unnamed.dedup_by_key(|frame| frame.number);
        let moved = MovedModules::of(&unnamed, dictionary, self.process.start());
        unnamed.retain(|frame| moved.address(frame).is_some());
        let addresses: Vec<CodeAddress> = unnamed.iter().filter_map(|frame| moved.address(frame)).collect();
        let resolved = symbolizer.resolve(&addresses, &moved.list);
        self.resolved.extend(unnamed.iter().map(|frame| frame.number).zip(resolved));
    }

    /// Returns the functions of a frame, as [`RecordedNames::of`] does.
    pub(crate) fn of(&mut self, number: u32) -> Vec<Frame> {
        let dictionary = self.dictionary();
        let (frame, recorded) = (dictionary.frame(number), dictionary.names(number));
        if !recorded.is_empty() {
            return recorded.iter().take(MAX_NAMES).map(|name| self.frame(name, frame)).collect();
        }
        if let Some(known) = self.known.and_then(|known| known.get(number)) {
            return known.to_vec();
        }
        match (frame, self.resolved.get(&number)) {
            (Some(RecordedFrame::Native { address, .. }), Some(resolved)) => native_frames::frames(*address, resolved),
            (Some(RecordedFrame::Native { address, module }), None) => {
                vec![unresolved(*address, module.and_then(|module| dictionary.module(module)))]
            }
            _ => vec![Frame::named(kind_of(frame), Frame::UNKNOWN.into())],
        }
    }

    fn frame(&mut self, name: &RecordedName, recorded: Option<&RecordedFrame>) -> Frame {
        let native = match recorded {
            Some(RecordedFrame::Native { address, module }) => (Some(address.address()), *module),
            _ => (None, None),
        };
        let mut frame = Frame {
            qualname: name.qualname.map(|text| self.text(text)),
            filename: name.filename.map(|text| self.text(text)).filter(|text| !text.is_empty()),
            first_line: name.first_line,
            position: name.position,
            module: name.module.or(native.1).and_then(|module| self.module(module)),
            is_inlined: name.is_inlined,
            address: native.0,
            ..Frame::named(name.kind, self.text(name.name))
        };
        frame.is_own = self.package.is_some_and(|package| frame.is_in(package));
        frame
    }

    fn text(&mut self, number: u32) -> Arc<str> {
        let text = || self.process.dictionary().string(number).unwrap_or(Frame::UNKNOWN).into();
        Arc::clone(self.texts.entry(number).or_insert_with(text))
    }

    fn module(&mut self, number: u32) -> Option<Arc<str>> {
        let module = self.dictionary().module(number)?;
        Some(Arc::clone(self.modules.entry(number).or_insert_with(|| module.name().into())))
    }
}

/// A native frame without a name in the file.
#[derive(Clone, Copy, Debug)]
struct UnnamedFrame {
    number: u32,
    address: CodeAddress,
    module: Option<u32>,
}

impl UnnamedFrame {
    /// Returns the frame with this number, if it is native and has no name.
    fn of(number: u32, dictionary: &Dictionary) -> Option<Self> {
        match dictionary.frame(number) {
            Some(&RecordedFrame::Native { address, module }) if dictionary.names(number).is_empty() => {
                Some(Self { number, address, module })
            }
            _ => None,
        }
    }
}

/// Modules at separate addresses: in their process, one may have been loaded at the place of an earlier one.
#[derive(Debug, Default)]
struct MovedModules {
    list: ModuleList,
    /// For each module that can be resolved, the distance by which it was moved.
    distances: WordMap<u32, u64>,
}

/// The addresses at which modules are placed one after another.
const FIRST_ADDRESS: u64 = 1 << 20;
const LAST_ADDRESS: u64 = 1 << 56;

impl MovedModules {
    fn of(unnamed: &[UnnamedFrame], dictionary: &Dictionary, start: &ProcessStart) -> Self {
        let mut numbers: Vec<u32> = unnamed.iter().filter_map(|frame| frame.module).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let (mut next, mut modules, mut distances) = (FIRST_ADDRESS, Vec::new(), WordMap::default());
        for number in numbers {
            let Some(module) = dictionary.module(number).filter(|module| is_same_file(module, start)) else { continue };
            let end = module.end.checked_sub(module.start).and_then(|length| next.checked_add(length));
            let Some(end) = end.filter(|end| *end < LAST_ADDRESS) else { continue };
            let distance = next.wrapping_sub(module.start);
            let bias = module.bias.wrapping_add(distance);
            modules.push(Module { bias, start: next, end, ..module.clone() });
            distances.insert(number, distance);
            next = end + 1;
        }
        Self { list: ModuleList::new(modules), distances }
    }

    /// Returns the moved address; `None` if its module can't be resolved, or does not contain it.
    fn address(&self, frame: &UnnamedFrame) -> Option<CodeAddress> {
        let distance = self.distances.get(&frame.module?)?;
        let address = frame.address.address().wrapping_add(*distance);
        let moved =
            if frame.address.is_exact() { CodeAddress::instruction_pointer } else { CodeAddress::return_address };
        (address < LAST_ADDRESS).then(|| moved(address))
    }
}

/// Returns whether the file at a module's path can be assumed to be the loaded one. The symbolizer compares build ids;
/// without one, the file must be of this machine and older than the recording. The kernel's module was in the memory of
/// a process that has ended.
fn is_same_file(module: &Module, start: &ProcessStart) -> bool {
    if module.path.to_string_lossy().starts_with('[') {
        return false;
    }
    if module.build_id.is_some() {
        return true;
    }
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let written = std::fs::metadata(&module.path).and_then(|file| file.modified()).ok();
    let written = written.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    let started = u128::try_from(start.started_wall_ns).unwrap_or(0);
    host.trim_end() == start.host && written.is_some_and(|written| written.as_nanos() < started)
}

fn unresolved(address: CodeAddress, module: Option<&Module>) -> Frame {
    let name = match module {
        Some(module) => format!("{}+{:#x}", module.name(), module.stated(address.address())),
        None => format!("{:#x}", address.address()),
    };
    Frame {
        module: module.map(|module| module.name().into()),
        address: Some(address.address()),
        ..Frame::named(FrameKind::Native, name.into())
    }
}

fn kind_of(frame: Option<&RecordedFrame>) -> FrameKind {
    match frame {
        Some(RecordedFrame::Native { .. }) => FrameKind::Native,
        Some(RecordedFrame::Python { .. }) => FrameKind::Python,
        Some(RecordedFrame::Script { .. }) => FrameKind::Script,
        Some(RecordedFrame::Label { .. }) | None => FrameKind::Span,
    }
}

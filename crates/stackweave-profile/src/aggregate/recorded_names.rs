//! Names the frames of a recording: from the file, and native ones else from their modules.

use std::sync::Arc;

use stackweave_core::{CodeAddress, Module, ModuleList};
use stackweave_recording::ProcessRecording;
use stackweave_recording::file::{Dictionary, RecordedFrame, RecordedName, Start};
use stackweave_symbolize::Symbolizer;

use crate::frame::{Frame, FrameKind};
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
        let dictionary = process.dictionary();
        let mut names = Self::default();
        let mut strings = Strings { dictionary, texts: WordMap::default(), modules: WordMap::default() };
        let mut unnamed = Vec::new();
        for &number in numbers {
            if names.ranges.contains_key(&number) {
                continue;
            }
            let recorded = dictionary.names(number);
            match dictionary.frame(number) {
                Some(&RecordedFrame::Native { address, module }) if recorded.is_empty() => {
                    unnamed.push(UnnamedFrame { number, address, module });
                    names.ranges.insert(number, (0, 0));
                }
                frame if recorded.is_empty() => {
                    names.put(number, [Frame::named(kind_of(frame), Frame::UNKNOWN.into())]);
                }
                frame => names.put(number, recorded.iter().take(MAX_NAMES).map(|name| strings.frame(name, frame))),
            }
        }
        names.resolve_native(&unnamed, process, symbolizer);
        names
    }

    /// Returns the functions of the frame with this number, innermost first: more than one if calls were inlined, or if
    /// a code generator has described the source of generated code. Empty if the frame was not named.
    pub fn of(&self, number: u32) -> &[Frame] {
        let (start, length) = self.ranges.get(&number).copied().unwrap_or_default();
        &self.frames[start as usize..(start + length) as usize]
    }

    /// Replaces the names of a frame by ones that were resolved later.
    pub(crate) fn rename(&mut self, number: u32, frames: &[Frame]) {
        self.put(number, frames.iter().cloned());
    }

    #[expect(clippy::cast_possible_truncation, reason = "that many frames do not fit into memory")]
    fn put(&mut self, number: u32, frames: impl IntoIterator<Item = Frame>) {
        let start = self.frames.len();
        self.frames.extend(frames);
        self.ranges.insert(number, (start as u32, (self.frames.len() - start) as u32));
    }

    fn resolve_native(
        &mut self,
        unnamed: &[UnnamedFrame],
        process: &ProcessRecording,
        symbolizer: Option<&Symbolizer>,
    ) {
        let moved = MovedModules::of(unnamed, process.dictionary(), process.start());
        let addresses: Vec<CodeAddress> = unnamed.iter().filter_map(|frame| moved.address(frame)).collect();
        let resolved = symbolizer.map(|symbolizer| symbolizer.resolve(&addresses, &moved.list)).unwrap_or_default();
        let mut resolved = resolved.iter();
        for frame in unnamed {
            let found = moved.address(frame).and_then(|_| resolved.next());
            let named = found.map(|found| native_frames::frames(frame.address, found));
            let module = frame.module.and_then(|module| process.dictionary().module(module));
            self.put(frame.number, named.unwrap_or_else(|| vec![unresolved(frame.address, module)]));
        }
    }
}

/// A native frame without a name in the file.
#[derive(Clone, Copy, Debug)]
struct UnnamedFrame {
    number: u32,
    address: CodeAddress,
    module: Option<u32>,
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
    fn of(unnamed: &[UnnamedFrame], dictionary: &Dictionary, start: &Start) -> Self {
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
fn is_same_file(module: &Module, start: &Start) -> bool {
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
        Some(RecordedFrame::Label { .. }) | None => FrameKind::Label,
    }
}

/// The strings of a recording, allocated once each.
struct Strings<'a> {
    dictionary: &'a Dictionary,
    texts: WordMap<u32, Arc<str>>,
    /// The names of modules.
    modules: WordMap<u32, Arc<str>>,
}

impl Strings<'_> {
    fn text(&mut self, number: u32) -> Arc<str> {
        let text = || self.dictionary.string(number).unwrap_or(Frame::UNKNOWN).into();
        Arc::clone(self.texts.entry(number).or_insert_with(text))
    }

    fn module(&mut self, number: u32) -> Option<Arc<str>> {
        let module = self.dictionary.module(number)?;
        Some(Arc::clone(self.modules.entry(number).or_insert_with(|| module.name().into())))
    }

    fn frame(&mut self, name: &RecordedName, recorded: Option<&RecordedFrame>) -> Frame {
        let native = match recorded {
            Some(RecordedFrame::Native { address, module }) => (Some(address.address()), *module),
            _ => (None, None),
        };
        Frame {
            qualname: name.qualname.map(|text| self.text(text)),
            filename: name.filename.map(|text| self.text(text)).filter(|text| !text.is_empty()),
            first_line: name.first_line,
            position: name.position,
            module: name.module.or(native.1).and_then(|module| self.module(module)),
            is_inlined: name.is_inlined,
            address: native.0,
            ..Frame::named(name.kind, self.text(name.name))
        }
    }
}

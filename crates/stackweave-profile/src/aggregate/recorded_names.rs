//! The frames of a recording, named: by what the file says, and native ones else by the files of their modules.

use std::sync::Arc;

use stackweave_core::{CodeAddress, Module, ModuleList};
use stackweave_recording::ProcessRecording;
use stackweave_recording::file::{Dictionary, RecordedFrame, RecordedName, Start};
use stackweave_symbolize::Symbolizer;

use crate::frame::{Frame, FrameKind};
use crate::native_frames;
use crate::word_hash::WordMap;

/// The names of frames of one process, by their numbers in its recording.
#[derive(Debug, Default)]
pub struct RecordedNames {
    frames: Vec<Frame>,
    /// Where the frames of each number begin, and how many they are.
    places: WordMap<u32, (u32, u32)>,
}

/// One frame stands for no more than this: each use of it in a tree is as many nodes.
const MOST_NAMES: usize = 64;

impl RecordedNames {
    /// Names these frames, each once. Without a symbolizer, native frames that have no name in the file are known by
    /// their place in their module.
    pub fn resolve(process: &ProcessRecording, numbers: &[u32], symbolizer: Option<&Symbolizer>) -> Self {
        let dictionary = process.dictionary();
        let mut names = Self::default();
        let mut strings = Strings { dictionary, texts: WordMap::default(), modules: WordMap::default() };
        let mut nameless = Vec::new();
        for &number in numbers {
            if names.places.contains_key(&number) {
                continue;
            }
            let said = dictionary.names(number);
            match dictionary.frame(number) {
                Some(&RecordedFrame::Native { address, module }) if said.is_empty() => {
                    nameless.push(Nameless { number, address, module });
                    names.places.insert(number, (0, 0));
                }
                frame if said.is_empty() => {
                    names.put(number, [Frame::named(kind_of(frame), Frame::UNKNOWN.into())]);
                }
                frame => names.put(number, said.iter().take(MOST_NAMES).map(|name| strings.frame(name, frame))),
            }
        }
        names.resolve_native(&nameless, process, symbolizer);
        names
    }

    /// What the frame with this number stands for, innermost first: one frame, or more where calls were inlined or a code
    /// generator knows what is behind it. None if its name was not asked for.
    pub fn of(&self, number: u32) -> &[Frame] {
        let (start, length) = self.places.get(&number).copied().unwrap_or_default();
        &self.frames[start as usize..(start + length) as usize]
    }

    /// Names a frame as somebody has found out meanwhile.
    pub(crate) fn rename(&mut self, number: u32, frames: &[Frame]) {
        self.put(number, frames.iter().cloned());
    }

    #[expect(clippy::cast_possible_truncation, reason = "as many frames do not fit into memory")]
    fn put(&mut self, number: u32, frames: impl IntoIterator<Item = Frame>) {
        let start = self.frames.len();
        self.frames.extend(frames);
        self.places.insert(number, (start as u32, (self.frames.len() - start) as u32));
    }

    fn resolve_native(&mut self, nameless: &[Nameless], process: &ProcessRecording, symbolizer: Option<&Symbolizer>) {
        let moved = MovedModules::of(nameless, process.dictionary(), process.start());
        let addresses: Vec<CodeAddress> = nameless.iter().filter_map(|frame| moved.address(frame)).collect();
        let resolved = symbolizer.map(|symbolizer| symbolizer.resolve(&addresses, &moved.list)).unwrap_or_default();
        let mut resolved = resolved.iter();
        for frame in nameless {
            let found = moved.address(frame).and_then(|_| resolved.next());
            let named = found.map(|found| native_frames::frames(frame.address, found));
            let module = frame.module.and_then(|module| process.dictionary().module(module));
            self.put(frame.number, named.unwrap_or_else(|| vec![unresolved(frame.address, module)]));
        }
    }
}

/// A native frame that has no name in the file.
#[derive(Clone, Copy, Debug)]
struct Nameless {
    number: u32,
    address: CodeAddress,
    module: Option<u32>,
}

/// Modules side by side: in their process one may have lain where another did later.
#[derive(Debug, Default)]
struct MovedModules {
    list: ModuleList,
    /// For each module that can be asked about, how far it was moved.
    distances: WordMap<u32, u64>,
}

/// Modules are put behind each other from here on.
const FIRST_PLACE: u64 = 1 << 20;
const LAST_PLACE: u64 = 1 << 56;

impl MovedModules {
    fn of(nameless: &[Nameless], dictionary: &Dictionary, start: &Start) -> Self {
        let mut numbers: Vec<u32> = nameless.iter().filter_map(|frame| frame.module).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let (mut next, mut modules, mut distances) = (FIRST_PLACE, Vec::new(), WordMap::default());
        for number in numbers {
            let Some(module) = dictionary.module(number).filter(|module| is_same_file(module, start)) else { continue };
            let end = module.end.checked_sub(module.start).and_then(|length| next.checked_add(length));
            let Some(end) = end.filter(|end| *end < LAST_PLACE) else { continue };
            let distance = next.wrapping_sub(module.start);
            let bias = module.bias.wrapping_add(distance);
            modules.push(Module { bias, start: next, end, ..module.clone() });
            distances.insert(number, distance);
            next = end + 1;
        }
        Self { list: ModuleList::new(modules), distances }
    }

    /// Where the address is now; `None` if its module can't be asked about, or does not hold it.
    fn address(&self, frame: &Nameless) -> Option<CodeAddress> {
        let distance = self.distances.get(&frame.module?)?;
        let address = frame.address.address().wrapping_add(*distance);
        let moved =
            if frame.address.is_exact() { CodeAddress::instruction_pointer } else { CodeAddress::return_address };
        (address < LAST_PLACE).then(|| moved(address))
    }
}

/// Whether the file at a module's path can be taken for the one that was loaded. The symbolizer compares build ids; where
/// there is none, the file must be of this machine and older than the recording. The kernel's own module was in the
/// memory of a process that is gone.
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

/// The strings of a recording, each kept once.
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

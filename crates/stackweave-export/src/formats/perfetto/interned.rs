//! Interned data: written once in a sequence of packets, and referred to by number.

use std::collections::{HashMap, HashSet};
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;

use stackweave_core::Module;
use stackweave_profile::{Frame, FrameKind};
use stackweave_recording::file::RecordedFrame;

use crate::activity::NamedProcess;
use crate::formats::perfetto::fields::{callstack, frame as frame_fields, interned, mapping, source_location};
use crate::protobuf::Message;

/// The interned data of a sequence.
#[derive(Debug, Default)]
pub(super) struct Interned {
    /// New data that is not written yet.
    pub(super) fresh: Message,
    /// For each frame of the recording its functions.
    functions: HashMap<u32, Rc<[InternedFunction]>>,
    /// The number of functions.
    count: u64,
    /// The frames of the recording that are frames of stacks.
    framed: HashSet<u32>,
    texts: HashMap<(u32, Vec<u8>), u64>,
    /// For each calling frame, the text of its line.
    callers: HashMap<u32, Option<u64>>,
    stacks: HashSet<u32>,
    mappings: HashSet<u64>,
}

/// A function of a frame, as events refer to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InternedFunction {
    pub(super) iid: u64,
    pub(super) category: u64,
    pub(super) has_location: bool,
}

/// The numbers of mappings are those of modules; mappings for code outside modules have greater ones.
const NO_MODULE: u64 = 1 << 40;

impl Interned {
    /// Returns the number of a text of a type.
    pub(super) fn text(&mut self, of: u32, text: &[u8]) -> u64 {
        if let Some(iid) = self.texts.get(&(of, text.to_vec())) {
            return *iid;
        }
        let iid = self.texts.len() as u64 + (1 << 32);
        self.texts.insert((of, text.to_vec()), iid);
        self.write_text(of, iid, text);
        iid
    }

    fn write_text(&mut self, of: u32, iid: u64, text: &[u8]) {
        self.fresh.message(of, |message| {
            message.unsigned(interned::IID, iid);
            message.bytes(interned::TEXT, text);
        });
    }

    /// Returns the functions of a frame, outermost first.
    pub(super) fn functions(&mut self, process: &NamedProcess<'_>, number: u32) -> Rc<[InternedFunction]> {
        if let Some(known) = self.functions.get(&number) {
            return Rc::clone(known);
        }
        let mut found: Vec<InternedFunction> = process.chain(number).map(|frame| self.function(frame)).collect();
        if found.is_empty() {
            self.count += 1;
            self.write_text(interned::EVENT_NAMES, self.count, Frame::UNKNOWN.as_bytes());
            let category = self.text(interned::CATEGORIES, FrameKind::Span.as_str().as_bytes());
            found.push(InternedFunction { iid: self.count, category, has_location: false });
        }
        let found: Rc<[InternedFunction]> = found.into();
        self.functions.insert(number, Rc::clone(&found));
        found
    }

    fn function(&mut self, frame: &Frame) -> InternedFunction {
        self.count += 1;
        let iid = self.count;
        let name = frame.qualname.as_ref().unwrap_or(&frame.name);
        self.write_text(interned::EVENT_NAMES, iid, name.as_bytes());
        let category = self.text(interned::CATEGORIES, frame.kind.as_str().as_bytes());
        let Some(file) = &frame.filename else { return InternedFunction { iid, category, has_location: false } };
        self.fresh.message(interned::SOURCE_LOCATIONS, |location| {
            location.unsigned(interned::IID, iid);
            location.text(source_location::FILE, file);
            location.text(source_location::FUNCTION, name);
            if let Some(line) = frame.first_line.or(frame.position.line) {
                location.unsigned(source_location::LINE, line.into());
            }
        });
        InternedFunction { iid, category, has_location: true }
    }

    /// Returns the text of the line from which a frame calls, if it is known.
    pub(super) fn caller(&mut self, process: &NamedProcess<'_>, number: u32) -> Option<u64> {
        if let Some(known) = self.callers.get(&number) {
            return *known;
        }
        let attributes = process.line_of(number).map(|line| self.text(interned::ANNOTATION_TEXTS, line.as_bytes()));
        self.callers.insert(number, attributes);
        attributes
    }

    /// Returns the number of a stack, which is that of the recording.
    pub(super) fn stack(&mut self, process: &NamedProcess<'_>, stack: u32) -> u64 {
        if self.stacks.insert(stack) {
            let mut numbers: Vec<u32> = process.recording.dictionary().frames_of(stack).collect();
            numbers.reverse();
            let frames: Vec<u64> = numbers.into_iter().flat_map(|number| self.frames(process, number)).collect();
            self.fresh.message(interned::CALLSTACKS, |message| {
                message.unsigned(interned::IID, stack.into());
                for iid in &frames {
                    message.unsigned(callstack::FRAME_IDS, *iid);
                }
            });
        }
        stack.into()
    }

    /// Returns the stack frames of a frame of the recording, outermost first. They have the numbers of functions.
    fn frames(&mut self, process: &NamedProcess<'_>, number: u32) -> Vec<u64> {
        let functions = self.functions(process, number);
        if self.framed.insert(number) {
            let recorded = process.recording.dictionary().frame(number);
            let mut chain = process.chain(number);
            for function in &*functions {
                self.write_frame(function.iid, process, recorded, chain.next());
            }
        }
        functions.iter().map(|function| function.iid).collect()
    }

    fn write_frame(
        &mut self,
        iid: u64,
        process: &NamedProcess<'_>,
        recorded: Option<&RecordedFrame>,
        frame: Option<&Frame>,
    ) {
        let name = frame.map_or(Frame::UNKNOWN, |frame| frame.qualname.as_ref().unwrap_or(&frame.name));
        let name = self.text(interned::FUNCTION_NAMES, name.as_bytes());
        let (mapping, pc) = self.mapping(process, recorded, frame);
        let file = frame.and_then(|frame| frame.filename.as_deref());
        let file = file.map(|file| self.text(interned::SOURCE_PATHS, file.as_bytes()));
        let line = frame.and_then(|frame| frame.position.line);
        self.fresh.message(interned::FRAMES, |message| {
            message.unsigned(interned::IID, iid);
            message.unsigned(frame_fields::FUNCTION_NAME_ID, name);
            message.unsigned(frame_fields::MAPPING_ID, mapping);
            // The address distinguishes frames of one mapping.
            message.unsigned(frame_fields::RELATIVE_PC, pc.unwrap_or(iid));
            if let Some(file) = file {
                message.unsigned(frame_fields::SOURCE_PATH_IID, file);
            }
            if let Some(line) = line {
                message.unsigned(frame_fields::LINE, line.into());
            }
        });
    }

    /// Returns the mapping of a frame, and the address in it. Frames without machine code have one mapping for each
    /// kind.
    fn mapping(
        &mut self,
        process: &NamedProcess<'_>,
        recorded: Option<&RecordedFrame>,
        frame: Option<&Frame>,
    ) -> (u64, Option<u64>) {
        let native = match recorded {
            Some(RecordedFrame::Native { address, module: Some(module) }) => Some((address, *module)),
            _ => None,
        };
        let found = native.and_then(|(address, number)| {
            process.recording.dictionary().module(number).map(|module| (address, number, module))
        });
        if let Some((address, number, module)) = found {
            let iid = u64::from(number);
            self.write_mapping(iid, module);
            return (iid, Some(module.stated(address.address())));
        }
        let kind = frame.map_or("unknown", |frame| frame.kind.as_str());
        let path = self.text(interned::MAPPING_PATHS, kind.as_bytes());
        let iid = NO_MODULE + path;
        if self.mappings.insert(iid) {
            self.fresh.message(interned::MAPPINGS, |message| {
                message.unsigned(interned::IID, iid);
                message.unsigned(mapping::PATH_STRING_IDS, path);
            });
        }
        (iid, None)
    }

    fn write_mapping(&mut self, iid: u64, module: &Module) {
        if !self.mappings.insert(iid) {
            return;
        }
        let parts = module.path.as_os_str().as_bytes().split(|byte| *byte == b'/').filter(|part| !part.is_empty());
        let path: Vec<u64> = parts.map(|part| self.text(interned::MAPPING_PATHS, part)).collect();
        let build_id = module.build_id.as_ref().map(|id| self.text(interned::BUILD_IDS, id.as_bytes()));
        self.fresh.message(interned::MAPPINGS, |message| {
            message.unsigned(interned::IID, iid);
            if let Some(id) = build_id {
                message.unsigned(mapping::BUILD_ID, id);
            }
            message.unsigned(mapping::START, module.start);
            message.unsigned(mapping::END, module.end);
            message.unsigned(mapping::LOAD_BIAS, module.bias);
            for part in &path {
                message.unsigned(mapping::PATH_STRING_IDS, *part);
            }
        });
    }
}

//! The tables that samples refer to by id: locations, functions, mappings, strings.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use stackweave_profile::{Frame, FrameKind, RecordedNames};
use stackweave_recording::ProcessRecording;
use stackweave_recording::file::RecordedFrame;

use super::id_table::UniqueValues;
use super::{Label, MeasuredCosts, fields};
use crate::protobuf::Message;
use crate::source::Source;
use crate::visible_frames::VisibleFrames;

/// Entries get ids from 1 when they are first used; the string 0 is the empty one.
pub(super) struct ProfileTables<'a> {
    processes: &'a [ProcessRecording],
    names: Vec<RecordedNames>,
    visible: Vec<VisibleFrames>,
    titles: Vec<String>,
    labels: HashMap<(usize, Option<u32>), Labels>,
    strings: UniqueValues<Arc<str>>,
    functions: UniqueValues<FunctionEntry>,
    locations: UniqueValues<Location>,
    /// Process and module.
    mappings: UniqueValues<(usize, u32)>,
}

/// Keys, as indexes of strings, and values.
type Labels = Arc<[(u64, Label)]>;

/// A frame of a process, with its visible functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Location {
    Frame {
        process: usize,
        frame: u32,
        visible_bits: u64,
    },
    /// A stack without frames.
    Unknown,
}

/// A function. All fields but the first line are indexes of strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct FunctionEntry {
    name: u64,
    system_name: u64,
    filename: u64,
    first_line: u32,
}

impl<'a> ProfileTables<'a> {
    pub(super) fn new(source: &Source<'a>, read: &MeasuredCosts<'a>) -> Self {
        let processes = source.processes();
        let mut frames: Vec<Vec<u32>> = vec![Vec::new(); processes.len()];
        for (costs, measures) in read {
            for (all, more) in frames.iter_mut().zip(costs.frames(measures)) {
                all.extend(more);
            }
        }
        let names: Vec<RecordedNames> =
            processes.iter().zip(frames).map(|(process, frames)| source.names(process, &frames)).collect();
        let visible = processes.iter().map(|process| VisibleFrames::new(process, source.view())).collect();
        let titles = processes.iter().map(|process| source.title_of(process)).collect();
        let (labels, strings, functions, locations, mappings) = Default::default();
        Self { processes, names, visible, titles, labels, strings, functions, locations, mappings }
    }

    pub(super) fn text(&mut self, text: &str) -> u64 {
        if text.is_empty() {
            return 0;
        }
        self.strings.known(text).unwrap_or_else(|| self.strings.id(text.into()))
    }

    /// Returns the id of a frame's location; `None` if no function of it is visible. `is_library` is the state of
    /// [`VisibleFrames::visible_bits`] between frames.
    pub(super) fn location(&mut self, process: usize, frame: u32, is_library: &mut bool) -> Option<u64> {
        let visible_bits = self.visible[process].visible_bits(frame, self.names[process].of(frame), is_library);
        (visible_bits != 0).then(|| self.locations.id(Location::Frame { process, frame, visible_bits }))
    }

    /// Returns the id of the location for stacks without frames.
    pub(super) fn unknown_location(&mut self) -> u64 {
        self.locations.id(Location::Unknown)
    }

    /// Returns the labels of a sample: its thread and process.
    pub(super) fn labels(&mut self, process: usize, thread: Option<u32>) -> Labels {
        if let Some(known) = self.labels.get(&(process, thread)) {
            return Arc::clone(known);
        }
        let recording = &self.processes[process];
        let title = self.titles[process].clone();
        let mut labels = vec![(self.text("process"), Label::Text(self.text(&title)))];
        labels.push((self.text("pid"), Label::Number(recording.start().pid.into())));
        if let Some(thread) = thread.and_then(|number| recording.dictionary().thread(number)) {
            labels.push((self.text("tid"), Label::Number(thread.tid.into())));
            if !thread.name.is_empty() {
                labels.push((self.text("thread"), Label::Text(self.text(&thread.name))));
            }
        }
        let labels = Labels::from(labels);
        self.labels.insert((process, thread), Arc::clone(&labels));
        labels
    }

    /// Writes all entries that samples have referred to. `flush` is called from time to time.
    pub(super) fn write(
        mut self,
        out: &mut Message,
        mut flush: impl FnMut(&mut Message) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut mapped: Vec<MappingFlags> = Vec::new();
        for (number, location) in (1..).zip(self.locations.take()) {
            self.write_location(number, location, &mut mapped, out);
            flush(out)?;
        }
        for ((number, (process, module)), flags) in (1..).zip(self.mappings.take()).zip(mapped) {
            self.write_mapping(number, (process, module), flags, out);
        }
        for (number, function) in (1..).zip(self.functions.take()) {
            write_function(number, function, out);
            flush(out)?;
        }
        out.text(fields::profile::STRING_TABLE, "");
        for text in self.strings.take() {
            out.text(fields::profile::STRING_TABLE, &text);
            flush(out)?;
        }
        Ok(())
    }

    fn write_location(&mut self, id: u64, location: Location, mapped: &mut Vec<MappingFlags>, out: &mut Message) {
        let Location::Frame { process, frame, visible_bits } = location else {
            let name = self.text("(unknown)");
            let function = self.functions.id(FunctionEntry { name, system_name: name, filename: 0, first_line: 0 });
            return out.message(fields::profile::LOCATION, |out| {
                out.unsigned(fields::location::ID, id);
                out.message(fields::location::LINE, |out| out.unsigned(fields::line::FUNCTION_ID, function));
            });
        };
        let recorded = self.processes[process].dictionary().frame(frame).copied();
        let is_known = |module: &u32| self.processes[process].dictionary().module(*module).is_some();
        let mapping = match recorded {
            Some(RecordedFrame::Native { module: Some(module), .. }) if is_known(&module) => {
                self.mappings.id((process, module))
            }
            _ => 0,
        };
        mapped.resize(self.mappings.len(), MappingFlags::ALL);
        let frames: Vec<Frame> = self.names[process].of(frame).to_vec();
        if let Some(flags) = usize::try_from(mapping).ok().and_then(|id| mapped.get_mut(id.checked_sub(1)?)) {
            for frame in &frames {
                flags.add(frame);
            }
        }
        out.message(fields::profile::LOCATION, |out| {
            out.unsigned(fields::location::ID, id);
            if mapping != 0 {
                out.unsigned(fields::location::MAPPING_ID, mapping);
            }
            if let Some(RecordedFrame::Native { address, .. }) = recorded {
                out.unsigned(fields::location::ADDRESS, address.lookup());
            }
            for (_, frame) in frames.iter().enumerate().filter(|(index, _)| visible_bits >> index & 1 == 1) {
                self.write_line(frame, out);
            }
        });
    }

    fn write_line(&mut self, frame: &Frame, out: &mut Message) {
        let function = FunctionEntry {
            name: self.text(frame.qualname.as_ref().unwrap_or(&frame.name)),
            system_name: self.text(&frame.name),
            filename: self.text(frame.filename.as_deref().unwrap_or_default()),
            first_line: frame.first_line.unwrap_or(0),
        };
        let function = self.functions.id(function);
        out.message(fields::location::LINE, |out| {
            out.unsigned(fields::line::FUNCTION_ID, function);
            if let Some(line) = frame.position.line {
                out.unsigned(fields::line::LINE, line.into());
            }
            if let Some(column) = frame.position.column {
                // Columns in Python start at 0.
                let first = u64::from(frame.kind == FrameKind::Python);
                out.unsigned(fields::line::COLUMN, u64::from(column) + first);
            }
        });
    }

    fn write_mapping(&mut self, id: u64, (process, module): (usize, u32), flags: MappingFlags, out: &mut Message) {
        let Some(module) = self.processes[process].dictionary().module(module) else { return };
        let filename = self.text(&module.path.to_string_lossy());
        let build_id = module.build_id.as_ref().map_or(0, |id| self.text(&id.to_string()));
        out.message(fields::profile::MAPPING, |out| {
            out.unsigned(fields::mapping::ID, id);
            out.unsigned(fields::mapping::MEMORY_START, module.start);
            out.unsigned(fields::mapping::MEMORY_LIMIT, module.end);
            out.unsigned(fields::mapping::FILENAME, filename);
            out.unsigned(fields::mapping::BUILD_ID, build_id);
            out.unsigned(fields::mapping::HAS_FUNCTIONS, flags.functions.into());
            out.unsigned(fields::mapping::HAS_FILENAMES, flags.filenames.into());
            out.unsigned(fields::mapping::HAS_LINE_NUMBERS, flags.lines.into());
            out.unsigned(fields::mapping::HAS_INLINE_FRAMES, flags.lines.into());
        });
    }
}

/// The details that all locations in a mapping have. Readers may look up the rest.
#[derive(Clone, Copy, Debug)]
struct MappingFlags {
    functions: bool,
    filenames: bool,
    lines: bool,
}

impl MappingFlags {
    const ALL: Self = Self { functions: true, filenames: true, lines: true };

    fn add(&mut self, frame: &Frame) {
        let module = frame.module.as_deref().unwrap_or_default();
        let is_place =
            frame.name.strip_prefix(module).is_some_and(|rest| rest.trim_start_matches('+').starts_with("0x"));
        self.functions &= !is_place;
        self.filenames &= frame.filename.is_some();
        self.lines &= frame.position.line.is_some();
    }
}

fn write_function(id: u64, function: FunctionEntry, out: &mut Message) {
    out.message(fields::profile::FUNCTION, |out| {
        out.unsigned(fields::function::ID, id);
        out.unsigned(fields::function::NAME, function.name);
        out.unsigned(fields::function::SYSTEM_NAME, function.system_name);
        out.unsigned(fields::function::FILENAME, function.filename);
        out.unsigned(fields::function::START_LINE, function.first_line.into());
    });
}

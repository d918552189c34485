//! Random recordings, and descriptions of events that do not depend on the numbers in a file.

pub mod fixed;
pub mod lines;

use std::collections::BTreeMap;
use std::sync::Arc;

use stackweave_core::{
    CodeAddress, CodeId, EventKind, Field, FieldType, FrameNames, Module, ModuleList, Position, RawFrame, RawFrameKind,
    Role, SourceLocation,
};
use stackweave_recording::file::{
    BlockError, BlockHeader, BlockKind, Dictionary, Encoded, Encoder, EventBuffer, ProcessStart, RecordedFrame,
};
use stackweave_store::StackTable;
pub use stackweave_testkit::random::Random;

/// Returns a number of random length, mostly a short one.
pub fn random_word(random: &mut Random) -> u64 {
    let shift = random.below(64);
    random.bits() >> shift
}

pub fn stack_table() -> &'static StackTable {
    Box::leak(Box::new(StackTable::new()))
}

/// A process whose frames are named after their words.
#[derive(Default)]
pub struct Process {
    pub has_extra_frames: bool,
}

impl FrameNames for Process {
    fn locate(&self, frame: RawFrame) -> Option<SourceLocation> {
        let (number, place) = match frame.kind() {
            RawFrameKind::Python { code, instruction, .. } => (u64::from(code.get()), instruction),
            RawFrameKind::Script { source, word } => (word, source.into()),
            RawFrameKind::Native(_) | RawFrameKind::Label(_) => return None,
        };
        let optional = |divisor: u64, value: u32| (number % divisor != 0).then_some(value);
        (number % 11 != 0).then(|| SourceLocation {
            name: format!("function{number}").into(),
            qualname: (number % 2 == 0).then(|| format!("Klasse{number}.größe").into()),
            filename: format!("file{}.py", number % 5).into(),
            first_line: optional(3, 7),
            position: Position {
                line: optional(5, place),
                end_line: optional(7, place + 1),
                column: optional(4, 0),
                end_column: optional(9, u32::MAX),
            },
        })
    }

    fn has_extra_frames(&self) -> bool {
        self.has_extra_frames
    }

    fn frames_behind(&self, filename: &str, line: u32) -> Vec<SourceLocation> {
        let count = if filename == "file1.py" { 2 } else { 0 };
        let behind = |depth: u32| SourceLocation {
            name: format!("behind{depth}").into(),
            qualname: None,
            filename: "model.py".into(),
            first_line: None,
            position: Position { line: Some(line + depth), ..Position::default() },
        };
        (0..count).map(behind).collect()
    }

    fn modules(&self) -> ModuleList {
        let module = |number: u64| Module {
            path: format!("/lib/lib{number}.so").into(),
            build_id: stackweave_core::BuildId::new(&[7; 20][..usize::try_from(number).unwrap_or(0) * 5]),
            bias: number << 20,
            start: number << 20,
            end: (number << 20) + 0x8_0000,
        };
        ModuleList::new((0..4).map(module).collect())
    }
}

/// The description of an event, with everything that its numbers refer to.
pub type EventText = String;

fn location(kind: &str, found: &SourceLocation) -> String {
    let SourceLocation { name, qualname, filename, first_line, position } = found;
    format!("{kind} {name} {qualname:?} {filename} {first_line:?} {position:?}")
}

/// Describes a frame of the process.
pub fn describe_raw_frame(word: u64, process: &Process) -> String {
    let frame = match RawFrame::from_bits(word) {
        Some(frame) if word != 0 => frame,
        _ => return "none".into(),
    };
    let located = match frame.kind() {
        RawFrameKind::Label(_) => stackweave_store::locate_label(frame),
        _ => process.locate(frame),
    };
    let kind = match frame.kind() {
        RawFrameKind::Native(address) => {
            let modules = process.modules();
            return format!("{frame:?} in {:?}", modules.find(address.lookup()).map(|(_, module)| module));
        }
        RawFrameKind::Python { .. } => "python",
        RawFrameKind::Script { .. } => "script",
        RawFrameKind::Label(_) => "span",
    };
    let mut names = Vec::new();
    if let Some(found) = &located {
        names.push(location(kind, found));
        if let (true, "python", Some(line)) = (process.has_extra_frames, kind, found.position.line) {
            let behind = process.frames_behind(&found.filename, line);
            names.extend(behind.iter().map(|found| location("extra", found)));
        }
    }
    format!("{frame:?} {names:?}")
}

/// Describes a frame of a recording, in the same words.
pub fn describe_frame(number: u64, dictionary: &Dictionary) -> String {
    let number = u32::try_from(number).unwrap();
    if number == 0 {
        return "none".into();
    }
    let Some(frame) = dictionary.frame(number) else { return "missing".into() };
    let raw = match *frame {
        RecordedFrame::Native { address, module } => {
            return format!("{:?} in {:?}", RawFrame::native(address), module.map(|n| dictionary.module(n).unwrap()));
        }
        RecordedFrame::Python { code, instruction, entered_from_native } => {
            RawFrame::python(CodeId::new(code).unwrap(), instruction, entered_from_native)
        }
        RecordedFrame::Script { source, word } => RawFrame::script(source, word),
        RecordedFrame::Label { label } => RawFrame::label(stackweave_core::BlobId::new(label).unwrap()),
    };
    let string = |number: u32| Arc::<str>::from(dictionary.string(number).unwrap_or("missing"));
    let names = dictionary.names(number).iter().map(|name| {
        let found = SourceLocation {
            name: string(name.name),
            qualname: name.qualname.map(string),
            filename: name.filename.map_or_else(|| "".into(), string),
            first_line: name.first_line,
            position: name.position,
        };
        location(name.kind.as_str(), &found)
    });
    format!("{raw:?} {:?}", names.collect::<Vec<_>>())
}

/// Describes the events in raw words, one text for each.
pub fn describe_words(words: &[u64], kinds: &[EventKind], stacks: &StackTable, process: &Process) -> Vec<EventText> {
    let mut texts = Vec::new();
    let mut rest = words;
    while let Some((first, after)) = rest.split_first() {
        let kind = &kinds[usize::try_from(first & 0xff).unwrap() - 1];
        let (fields, after) = after.split_at(kind.words());
        rest = after;
        let mut text = format!("{} {}", first >> 8, kind.name);
        for (field, value) in kind.fields.iter().zip(fields) {
            text += &match field.field_type {
                FieldType::Frame => format!(" [{}]", describe_raw_frame(*value, process)),
                FieldType::Stack => {
                    let id = u32::try_from(*value).ok().and_then(stackweave_core::StackId::new);
                    let frames = id.into_iter().flat_map(|id| stacks.frames(id));
                    let frames: Vec<_> = frames.map(|frame| describe_raw_frame(frame.to_bits(), process)).collect();
                    format!(" {frames:?}")
                }
                _ => format!(" {value:#x}"),
            };
        }
        if kind.has_bytes() {
            let len = usize::try_from(rest[0]).unwrap();
            let (words, after) = rest[1..].split_at(len.div_ceil(8));
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).take(len).collect();
            text += &format!(" {bytes:?}");
            rest = after;
        }
        texts.push(text);
    }
    texts
}

/// Describes the events of a recording.
pub fn describe_events(events: &EventBuffer, dictionary: &Dictionary) -> Vec<EventText> {
    let describe = |event: stackweave_recording::file::RawEvent<'_>| {
        let Some(kind) = dictionary.kind(event.kind) else { return format!("{} unknown", event.ticks) };
        let mut text = format!("{} {}", event.ticks, kind.name);
        for (field, value) in kind.fields.iter().zip(event.words) {
            text += &match field.field_type {
                FieldType::Frame => format!(" [{}]", describe_frame(*value, dictionary)),
                FieldType::Stack => {
                    let frames = dictionary.frames_of(u32::try_from(*value).unwrap());
                    let frames: Vec<_> = frames.map(|frame| describe_frame(frame.into(), dictionary)).collect();
                    format!(" {frames:?}")
                }
                _ => format!(" {value:#x}"),
            };
        }
        if let Some(bytes) = event.bytes {
            text += &format!(" {bytes:?}");
        }
        text
    };
    events.iter().map(describe).collect()
}

/// Returns the blocks of a file.
pub fn blocks(mut file: &[u8]) -> Result<Vec<(BlockHeader, Vec<u8>)>, BlockError> {
    let mut blocks = Vec::new();
    while !file.is_empty() {
        let (header, rest) = file.split_first_chunk().ok_or(BlockError::Cut)?;
        let header = BlockHeader::parse(header)?;
        let (stored, rest) = rest.split_at_checked(header.stored_len as usize).ok_or(BlockError::Cut)?;
        blocks.push((header, header.payload(stored, &mut Vec::new())?.to_vec()));
        file = rest;
    }
    Ok(blocks)
}

/// Returns the definitions and events of a file with one section.
pub fn read(file: &[u8]) -> Result<(Dictionary, Vec<EventBuffer>), BlockError> {
    let mut dictionary = Dictionary::default();
    let mut events = Vec::new();
    for (header, payload) in blocks(file)? {
        match header.kind {
            BlockKind::Definitions => dictionary.add(&payload)?,
            BlockKind::Events => {
                let mut buffer = EventBuffer::new();
                buffer.decode(&payload, &dictionary)?;
                events.push(buffer);
            }
            _ => {}
        }
    }
    Ok((dictionary, events))
}

pub fn random_kinds(random: &mut Random) -> Vec<EventKind> {
    let count = [1, 2, 3, 4, 9, 40, 255][random.below(7)];
    let field = |number: usize, random: &mut Random| {
        let field_type = FieldType::ALL[random.below(7)];
        Field { name: format!("field{number}").into(), field_type }
    };
    let kind = |number: usize, random: &mut Random| {
        let mut fields: Vec<Field> = (0..random.below(7)).map(|number| field(number, random)).collect();
        if random.below(4) == 0 {
            fields.push(Field { name: "bytes".into(), field_type: FieldType::Bytes });
        }
        let role = Role::ALL[random.below(7)];
        EventKind { name: format!("kind{number}").into(), role, fields: fields.into() }
    };
    (0..count).map(|number| kind(number, random)).collect()
}

pub fn random_frame(random: &mut Random) -> RawFrame {
    let number = random.below(40) as u64;
    match random.below(6) {
        0 => RawFrame::native(CodeAddress::return_address((number + 1) << 17)),
        1 => RawFrame::native(CodeAddress::instruction_pointer(random.bits() & ((1 << 57) - 1))),
        2 => RawFrame::script(u8::try_from(number).unwrap(), random_word(random)),
        3 => stackweave_store::label(&format!("label {number}"), "", 0).unwrap(),
        _ => {
            let code = CodeId::new(u32::try_from(number).unwrap() + 1).unwrap();
            RawFrame::python(code, u32::try_from(random.below(9)).unwrap(), random.below(2) == 0)
        }
    }
}

/// Appends one event. Its clock usually increases.
pub fn random_event(
    random: &mut Random,
    kinds: &[EventKind],
    stacks: &StackTable,
    ticks: &mut u64,
    out: &mut Vec<u64>,
) {
    let number = random.below(kinds.len());
    let kind = &kinds[number];
    *ticks = match random.below(50) {
        0 => random_word(random),
        1 => ticks.wrapping_sub(random.below(100) as u64),
        _ => *ticks + random.below(5000) as u64,
    } & ((1 << 56) - 1);
    out.push(*ticks << 8 | (number as u64 + 1));
    for field in &kind.fields[..kind.words()] {
        out.push(match field.field_type {
            _ if random.below(10) == 0 => 0,
            FieldType::Stack => {
                let frames: Vec<_> = (0..random.below(12)).map(|_| random_frame(random)).collect();
                let first = random.below(frames.len() + 1);
                stacks.intern(&frames[first..]).unwrap().get().into()
            }
            FieldType::Frame => random_frame(random).to_bits(),
            FieldType::Float => (random_word(random) as f64).to_bits(),
            _ => random_word(random),
        });
    }
    if kind.has_bytes() {
        let len = random.below(30) as u64;
        out.push(len);
        for word in 0..len.div_ceil(8) {
            let own = (len - word * 8).min(8) * 8;
            out.push(random.bits() & u64::MAX >> (64 - own));
        }
    }
}

/// The descriptions of the events of each thread, in order.
pub type EventTexts = BTreeMap<u32, Vec<EventText>>;

/// Returns a section with random kinds, threads and chunks.
pub fn random_section(seed: u64) -> (Vec<u8>, EventTexts) {
    let mut random = Random::new(seed);
    let stacks = stack_table();
    let process = Process { has_extra_frames: seed.is_multiple_of(2) };
    let mut encoder = Encoder::new(stacks);
    let mut file = Vec::new();
    encoder.start(&ProcessStart { pid: 7, ..ProcessStart::default() }, &mut file);
    let kinds = random_kinds(&mut random);
    for kind in &kinds {
        encoder.kind(kind).unwrap();
    }
    let mut threads = EventTexts::new();
    let mut ticks = 0;
    for _ in 0..random.below(12) {
        let thread = u32::try_from(random.below(3) + 1).unwrap();
        encoder.thread(thread, thread + 100, "worker");
        let mut words = Vec::new();
        for _ in 0..random.below(300) {
            random_event(&mut random, &kinds, stacks, &mut ticks, &mut words);
        }
        let texts = describe_words(&words, &kinds, stacks, &process);
        let mut blocks = Encoded::default();
        let consumed = encoder.events(thread, &words, &process, &mut blocks);
        assert_eq!((consumed.words, consumed.events), (words.len(), texts.len() as u64));
        threads.entry(thread).or_default().extend(texts);
        file.extend(blocks.definitions);
        file.extend(blocks.events);
        if random.below(3) == 0 {
            encoder.describe_pending(&process, &mut file);
        }
    }
    encoder.describe_pending(&process, &mut file);
    (file, threads)
}

//! All declared kinds, and undeclared ones, have the meaning that an independent reader, written from the page, finds.

use stackweave_core::{BlobId, Call, EventKind, Field, FieldType, RawFrame, Role};
use stackweave_recording::events::{
    self, Decoder, Ending, Event, HostAction, HostState, HostStateRow, InstantSubject, MemoryEvent, Region, Usage,
    UsageSubject, fields,
};
use stackweave_recording::file::{Encoded, Encoder};
use stackweave_testkit::random::Random;
use stackweave_testkit::symbols::tool::Tool;

use crate::common::fixed::fixed_start;
use crate::common::{Process, random_section, read, stack_table};
use crate::versions::{assert_same, read_by_python};

/// Returns a section with three events of every declared kind, with values that distinguish the fields.
fn every_kind(seed: u64) -> Vec<u8> {
    let stacks = stack_table();
    let stack = stacks.intern(&[RawFrame::script(1, 2)]).unwrap();
    let (mut encoder, mut file, mut random) = (Encoder::new(stacks), Vec::new(), Random::new(seed));
    encoder.start(&fixed_start(), &mut file);
    let (mut words, mut ticks) = (Vec::new(), 0);
    let kinds = events::families().into_iter().flat_map(|family| family.kinds).map(|known| known.kind);
    for kind in kinds {
        let number = u64::from(encoder.kind(&kind).unwrap());
        for _ in 0..3 {
            ticks += 1;
            words.push(ticks << 8 | number);
            for field in kind.fields.iter() {
                match field.field_type {
                    FieldType::Stack => words.push([0, stack.get().into()][random.below(2)]),
                    FieldType::Frame => words.push(RawFrame::script(1, random.below(9) as u64).to_bits()),
                    FieldType::Call => {
                        let label = BlobId::new(u32::try_from(random.below(9)).unwrap() + 1).unwrap();
                        words.push(Call::to_label(label).unwrap().to_bits());
                    }
                    FieldType::Float => words.push((random.below(1000) as f64 / 8.0).to_bits()),
                    FieldType::Signed => words.push([u64::MAX, random.below(4) as u64][random.below(2)]),
                    FieldType::Bytes => words.extend([2, u64::from_le_bytes(*b"{}\0\0\0\0\0\0")]),
                    _ => words.push(random.below(3) as u64),
                }
            }
        }
    }
    let mut out = Encoded::default();
    assert_eq!(encoder.events(1, &words, &Process::default(), &mut out).words, words.len());
    file.extend([out.definitions, out.events].concat());
    file
}

/// Returns the meanings of events by the decoder, as the independent reader prints them.
fn meanings(file: &[u8]) -> Vec<String> {
    let (dictionary, buffers) = read(file).unwrap();
    let decoder = Decoder::of(&dictionary);
    let events = buffers.iter().flatten();
    events.map(|raw| format!("[{},{}]", raw.ticks, meaning(&decoder.decode(&raw)))).collect()
}

fn meaning(event: &Event<'_>) -> String {
    match event {
        Event::Begin(of) => {
            let is_resumed = u8::from(of.is_resumed);
            format!("\"begin\",{},{},{},{},{is_resumed}", of.frame, of.caller, of.stack, of.object)
        }
        Event::Open(of) => format!("\"open\",{},{},{},{},{}", of.frame, of.caller, of.stack, of.object, of.depth),
        Event::End(end) => {
            let ending = match end.ending {
                Ending::Done => "done",
                Ending::Failed => "failed",
                Ending::LeftOpen => "left open",
            };
            format!("\"end\",\"{ending}\"")
        }
        Event::Name(name) => format!("\"name\",{},{}", name.frame, name.object),
        Event::Instant(instant) => {
            format!("\"instant\",{},{}{}", instant.frame, instant.stack, subject(&instant.about))
        }
        Event::Counter(counter) => format!("\"counter\",{},{}", counter.frame, counter.value.to_bits()),
        Event::Sample(sample) => format!("\"sample\",{},{}", sample.stack, sample.weight),
        Event::Allocate(memory) => of_memory("allocate", memory),
        Event::Free(memory) => of_memory("free", memory),
        Event::Complete(memory) => of_memory("complete", memory),
        Event::Keep { address } => format!("\"keep\",{address}"),
        Event::Tag { frame } => format!("\"tag\",{frame}"),
        Event::State(state) => of_state(state),
        Event::Usage(usage) => of_usage(usage),
        Event::Other => "\"other\"".to_owned(),
    }
}

fn of_memory(action: &str, memory: &MemoryEvent) -> String {
    let region = match memory.region {
        Region::Block(_) => "block",
        Region::Mapping => "mapping",
        Region::Segment(_) => "segment",
    };
    let device = memory.region.device();
    let MemoryEvent { address, size, stack, stream, pool, .. } = memory;
    let host = memory.host.map_or_else(|| "null".to_owned(), |host| format!("\"{}\"", host_action(host).name));
    format!("\"{action}\",\"{region}\",{device},{address},{size},{stack},{stream},{pool},{host}")
}

fn host_action(action: HostAction) -> EventKind {
    match action {
        HostAction::Allocate => events::HOST_ALLOCATE,
        HostAction::Present => events::HOST_PRESENT,
        HostAction::Free => events::HOST_FREE,
        HostAction::FreeRequested => events::HOST_FREE_REQUESTED,
        HostAction::FreeCompleted => events::HOST_FREE_COMPLETED,
        HostAction::Segment => events::SEGMENT,
        HostAction::SegmentPresent => events::SEGMENT_PRESENT,
        HostAction::SegmentMap => events::SEGMENT_MAP,
        HostAction::SegmentFree => events::SEGMENT_FREE,
        HostAction::SegmentUnmap => events::SEGMENT_UNMAP,
    }
}

/// Returns the subject of an instant, with a comma before it.
fn subject(about: &InstantSubject) -> String {
    match about {
        InstantSubject::Anything => String::new(),
        InstantSubject::UnmatchedPop => ",\"unmatched-pop\"".to_owned(),
        InstantSubject::Demoted => ",\"demoted\"".to_owned(),
        InstantSubject::TraceNote { count } => format!(",\"trace-note\",{count}"),
        InstantSubject::HostSnapshot { device, size } => format!(",\"host-snapshot\",{device},{size}"),
        InstantSubject::OutOfMemory(of) => {
            format!(",\"host-out-of-memory\",{},{},{},{},{}", of.device, of.size, of.stream, of.pool, of.free)
        }
        InstantSubject::Annotation { device, address } => format!(",\"host-annotate\",{device},{address}"),
    }
}

fn of_state(state: &HostState) -> String {
    let row = |name: &str, of: &HostStateRow| {
        let HostStateRow { device, address, size, requested, stack, stream, pool, flags } = of;
        format!("\"state\",\"{name}\",{device},{address},{size},{requested},{stack},{stream},{pool},{flags}")
    };
    match state {
        HostState::Begin { reason } => format!("\"state\",\"begins\",{reason}"),
        HostState::End => "\"state\",\"ends\"".to_owned(),
        HostState::Segment(of) => row("segment-state", of),
        HostState::Block(of) => row("block-state", of),
        HostState::Other => "\"state\",\"other\"".to_owned(),
    }
}

fn of_usage(usage: &Usage) -> String {
    let Usage { row, stack, allocator, snapshot, device, figures } = usage;
    let figures = figures.to_array().map(|figure| figure.to_string()).join(",");
    let row = match row {
        UsageSubject::Site { thread, tag } => format!("\"site\",{thread},{tag}"),
        UsageSubject::Sizes { most } => format!("\"sizes\",{most}"),
        UsageSubject::Total { peak_ago, frees, unknown_frees, replaced } => {
            format!("\"total\",{peak_ago},{frees},{unknown_frees},{replaced}")
        }
        UsageSubject::Other => "\"other\"".to_owned(),
    };
    format!("\"usage\",{allocator},{stack},{snapshot},{device},{figures},{row}")
}

#[test]
fn events_have_the_meaning_that_an_independent_reader_finds() {
    let python = match Tool::find(&["python3"]) {
        Ok(python) => python,
        Err(missing) => return println!("skipped: {missing}"),
    };
    for seed in 0..4 {
        for (content, file) in [("declared", every_kind(seed)), ("random", random_section(seed).0)] {
            let name = format!("{content}-{seed}");
            let by_python = read_by_python(&python, &file, (&name, "--meaning"));
            assert!(content == "random" || !by_python.is_empty(), "{name}");
            assert_same(&meanings(&file), &by_python, &name);
        }
    }
}

#[test]
fn the_layout_of_every_declared_kind_follows_from_its_fields() {
    let (dictionary, _) = read(&every_kind(1)).unwrap();
    let decoder = Decoder::of(&dictionary);
    for (number, kind) in dictionary.kinds() {
        let layout = decoder.layout(number).unwrap();
        assert_eq!(layout.role(), kind.role);
        assert_eq!(layout.is_present(), kind.name == events::HOST_PRESENT.name, "{kind:?}");
        let is_segment = kind.name.starts_with("segment");
        assert_eq!(layout.heap_change().is_some(), is_heap_role(kind) && !is_segment, "{kind:?}");
    }
}

fn is_heap_role(kind: &EventKind) -> bool {
    ["allocate", "free", "map", "unmap", "keep", "tag"].contains(&kind.role.as_str())
}

/// Returns the kinds of a recorder of waits, which this crate does not declare.
fn waits() -> [EventKind; 3] {
    let thread = Field::new("woken_by", FieldType::Unsigned);
    let fields = |more: &[Field]| [&[fields::FRAME, fields::STACK], more].concat().into();
    let lock = Field::new("lock", FieldType::Address);
    [
        EventKind { name: "wait".into(), role: Role::Begin, fields: fields(&[]) },
        EventKind { name: "wait-end".into(), role: Role::End, fields: vec![thread.clone()].into() },
        EventKind { name: "woken".into(), role: Role::Instant, fields: fields(&[lock, thread]) },
    ]
}

#[test]
fn a_family_of_waits() {
    let mut encoder = Encoder::new(stack_table());
    let mut out = Encoded::default();
    let [begin, end, woken] = waits().map(|kind| u64::from(encoder.kind(&kind).unwrap()));
    let frame = RawFrame::script(1, 2).to_bits();
    let words =
        [&[10 << 8 | begin, frame, 0], &[20 << 8 | end, 7][..], &[30 << 8 | woken, frame, 0, 0x1000, 7]].concat();
    assert_eq!(encoder.events(1, &words, &Process::default(), &mut out).events, 3);
    let (dictionary, buffers) = read(&[out.definitions, out.events].concat()).unwrap();
    let decoder = Decoder::of(&dictionary);
    let mut seen = Vec::new();
    for raw in buffers.iter().flatten() {
        let (kind, layout) = (dictionary.kind(raw.kind).unwrap(), decoder.layout(raw.kind).unwrap());
        let details = kind.fields.iter().enumerate().filter(|(index, _)| !layout.is_of_role(*index));
        seen.push((meaning(&decoder.decode(&raw)), details.map(|(_, field)| &*field.name).collect::<Vec<_>>()));
    }
    let expected = [
        ("\"begin\",1,0,0,0,0".to_owned(), vec![]),
        ("\"end\",\"done\"".to_owned(), vec!["woken_by"]),
        ("\"instant\",1,0".to_owned(), vec!["lock", "woken_by"]),
    ];
    assert_eq!(seen, expected);
}

//! Events survive encoding and decoding, for all kinds, values, chunk boundaries and threads.

use stackweave_core::{CodeId, FrameKind, FrameNames, ModuleList, Position, RawFrame, SourceLocation};
use stackweave_recording::events;
use stackweave_recording::file::{BlockKind, Encoded, Encoder, EndReason, SectionEnd};

use crate::common::{
    EventTexts, Process, Random, blocks, describe_events, random_section, random_word, read, stack_table,
};

#[test]
fn every_event_is_decoded_as_it_was_encoded() {
    for seed in 0..80 {
        let (file, recorded) = random_section(seed);
        let (dictionary, events) = read(&file).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let mut threads: EventTexts = recorded.keys().map(|thread| (*thread, Vec::new())).collect();
        for buffer in &events {
            assert_eq!(buffer.len(), buffer.iter().count());
            assert!(buffer.iter().all(|event| (buffer.first_ticks()..=buffer.last_ticks()).contains(&event.ticks)));
            threads.get_mut(&buffer.thread()).unwrap().extend(describe_events(buffer, &dictionary));
        }
        for (thread, texts) in &recorded {
            for (index, (out, expected)) in threads[thread].iter().zip(texts).enumerate() {
                assert_eq!(out, expected, "seed {seed}, thread {thread}, event {index}");
            }
            assert_eq!(threads[thread].len(), texts.len(), "seed {seed}, thread {thread}");
            assert_eq!(dictionary.thread(*thread).map(|thread| thread.tid), Some(thread + 100));
        }
    }
}

#[test]
fn long_input_is_split_into_blocks() {
    let stacks = stack_table();
    let mut encoder = Encoder::new(stacks);
    encoder.kind(&events::FREE).unwrap();
    let words: Vec<u64> = (0..400_000_u64).flat_map(|event| [(event * 100) << 8 | 1, event << 4]).collect();
    let mut out = Encoded::default();
    assert_eq!(encoder.events(1, &words, &Process::default(), &mut out).events, 400_000);
    let (_, events) = read(&[out.definitions, out.events].concat()).unwrap();
    assert!(events.len() > 1);
    let read: Vec<u64> = events.iter().flatten().flat_map(|event| [event.ticks << 8 | 1, event.words[0]]).collect();
    assert!(read == words);
}

#[test]
fn words_that_are_no_event_end_the_encoding() {
    let stacks = stack_table();
    let process = Process::default();
    let mut encoder = Encoder::new(stacks);
    for kind in [events::BEGIN, events::INSTANT_WITH] {
        encoder.kind(&kind).unwrap();
    }
    let good = [5 << 8 | 1, RawFrame::script(1, 1).to_bits()];
    let garbage: [&[u64]; 7] =
        [&[0], &[3], &[1], &[2, 0, 0], &[2, 0, 0, 9, 0], &[2, 0, 0, u64::MAX, 0], &[2, 0, 0, 1 << 60]];
    for bad in garbage {
        let mut out = Encoded::default();
        let consumed = encoder.events(1, &[&good, bad].concat(), &process, &mut out);
        assert_eq!((consumed.events, consumed.words), (1, 2), "{bad:x?}");
    }
    let mut random = Random::new(1);
    for _ in 0..3000 {
        let words: Vec<u64> = (0..random.below(20)).map(|_| random_word(&mut random) & !0xfc).collect();
        let consumed = encoder.events(1, &words, &process, &mut Encoded::default());
        assert!(consumed.words <= words.len());
    }
}

#[test]
fn unknown_stacks_and_frames_become_none() {
    let stacks = stack_table();
    let mut encoder = Encoder::new(stacks);
    encoder.kind(&events::INSTANT).unwrap();
    for stack in [1, 2, 77, u64::from(u32::MAX), u64::MAX] {
        let mut out = Encoded::default();
        encoder.events(1, &[1, u64::MAX, stack], &Process::default(), &mut out);
        let file = [out.definitions, out.events].concat();
        let (_, events) = read(&file).unwrap();
        assert_eq!(events[0].iter().next().unwrap().words, [0, 0]);
    }
}

#[test]
fn the_last_name_of_a_thread_is_written_before_the_end() {
    let mut encoder = Encoder::new(stack_table());
    let mut file = Vec::new();
    for name in ["early", "late"] {
        encoder.thread(3, 33, name);
        encoder.definitions(&mut file);
    }
    let threads = |file: &[u8]| read(file).unwrap().0.threads().map(|thread| thread.name.clone()).collect::<Vec<_>>();
    assert_eq!(threads(&file), ["late"]);
    encoder.thread(3, 33, "last");
    encoder.end(&SectionEnd { events: 0, lost: 0, residual_ns: 0, reason: EndReason::Stopped }, &mut file);
    assert_eq!(threads(&file), ["last"]);
    assert_eq!(blocks(&file).unwrap().last().map(|(header, _)| header.kind), Some(BlockKind::End));
}

#[test]
fn source_frames_of_generated_code_are_defined_once_they_are_known() {
    let frame = RawFrame::python(CodeId::new(1).unwrap(), 4, false).to_bits();
    let mut encoder = Encoder::new(stack_table());
    encoder.kind(&events::BEGIN).unwrap();
    let mut out = Encoded::default();
    encoder.events(1, &[1, frame], &Process::default(), &mut out);
    let mut file = [out.definitions, out.events].concat();
    let names = |file: &[u8]| read(file).unwrap().0.names(1).iter().map(|name| name.kind).collect::<Vec<_>>();
    encoder.describe_pending(&Process::default(), &mut file);
    assert_eq!(names(&file), [FrameKind::Python]);
    encoder.describe_pending(&Process { has_extra_frames: true }, &mut file);
    assert_eq!(names(&file), [FrameKind::Python, FrameKind::Extra, FrameKind::Extra]);
    assert!(encoder.take_pending().is_empty());
}

/// A process whose functions have distinct long names.
struct LongNames;

impl FrameNames for LongNames {
    fn locate(&self, frame: RawFrame) -> Option<SourceLocation> {
        let name = format!("{frame:?} {}", "ö".repeat(1 << 20)).into();
        Some(SourceLocation {
            name,
            qualname: None,
            filename: "".into(),
            first_line: None,
            position: Position::default(),
        })
    }

    fn has_extra_frames(&self) -> bool {
        false
    }

    fn frames_behind(&self, _: &str, _: u32) -> Vec<SourceLocation> {
        Vec::new()
    }

    fn modules(&self) -> ModuleList {
        ModuleList::default()
    }
}

#[test]
fn many_definitions_are_split_into_blocks_and_long_strings_truncated() {
    let mut encoder = Encoder::new(stack_table());
    encoder.kind(&events::BEGIN).unwrap();
    let frame = |code: u32| RawFrame::python(CodeId::new(code).unwrap(), 0, false);
    let words: Vec<u64> = (1..=20).flat_map(|code| [1, frame(code).to_bits()]).collect();
    let mut out = Encoded::default();
    encoder.events(1, &words, &LongNames, &mut out);
    let sizes: Vec<u32> = blocks(&out.definitions).unwrap().iter().map(|(header, _)| header.full_len).collect();
    assert!(sizes.len() >= 10 && sizes.iter().all(|size| *size < 3 << 20), "{sizes:?}");
    let (dictionary, _) = read(&[out.definitions, out.events].concat()).unwrap();
    for code in 1..=20 {
        let name = dictionary.string(dictionary.names(code)[0].name).unwrap();
        assert!(name.starts_with(&format!("{:?} ö", frame(code))) && name.ends_with('ö'));
        assert!(name.len() <= 1 << 20 && name.len() > (1 << 20) - 2);
    }
}

//! Damage is detected, and only the damaged parts are lost.

use stackweave_core::{CodeId, RawFrame};
use stackweave_recording::clock::ClockPoint;
use stackweave_recording::events;
use stackweave_recording::file::{
    BlockError, BlockHeader, BlockKind, Dictionary, Encoded, Encoder, EventBuffer, EventsHead, Lost, MAX_PAYLOAD,
    ProcessStart, SYNC, SectionEnd, write_block,
};
use stackweave_testkit::scale;

use crate::common::fixed::fixed_section;
use crate::common::lines::lines;
use crate::common::{Process, Random, blocks, describe_events, describe_words, read, stack_table};

/// Returns the headers and payloads of a file, or the reason why it can't be read.
fn content(file: &[u8]) -> Result<Vec<(BlockKind, u32, Vec<u8>)>, BlockError> {
    Ok(blocks(file)?.into_iter().map(|(header, payload)| (header.kind, header.section, payload)).collect())
}

#[test]
fn every_changed_byte_is_detected() {
    let file = fixed_section();
    assert!(content(&file).is_ok());
    for at in 0..file.len() {
        for change in [0x01, 0x10, 0x80, 0xff] {
            let mut damaged = file.clone();
            damaged[at] ^= change;
            assert!(content(&damaged).is_err(), "byte {at} changed by {change:#x}");
        }
    }
}

#[test]
fn every_truncation_is_detected_except_between_blocks() {
    let file = fixed_section();
    let mut borders = vec![0];
    for (header, _) in blocks(&file).unwrap() {
        borders.push(borders[borders.len() - 1] + BlockHeader::LEN + header.stored_len as usize);
    }
    assert_eq!(borders.last(), Some(&file.len()));
    for len in 0..file.len() {
        assert_eq!(content(&file[..len]).is_ok(), borders.contains(&len), "{len}");
    }
}

/// Covers blocks with a right checksum that another program wrote, possibly a hostile one.
#[test]
fn any_payload_is_read_or_rejected() {
    let parts: Vec<_> = content(&fixed_section()).unwrap();
    let mut dictionary = Dictionary::default();
    for (kind, _, payload) in &parts {
        if *kind == BlockKind::Definitions {
            dictionary.add(payload).unwrap();
        }
    }
    let mut random = Random::new(7);
    let mut rejected = 0;
    let mut events = EventBuffer::new();
    let rounds = scale(4_000, 40_000);
    for round in 0..rounds {
        let (kind, _, payload) = &parts[random.below(parts.len())];
        let mut payload = payload.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(payload.len());
            match random.below(4) {
                0 => payload.truncate(at + 1),
                1 => payload[at] = 0xff,
                2 => drop(payload.splice(at..at, [0xff, 0xff, 0xff, 0xff, 0x0f])),
                _ => payload[at] = random.byte_below(255),
            }
        }
        let result = match kind {
            BlockKind::Definitions => Dictionary::default().add(&payload),
            BlockKind::Events => events.decode(&payload, &dictionary),
            BlockKind::Clock => ClockPoint::parse(&payload).map(drop),
            BlockKind::Lost => Lost::parse(&payload).map(drop),
            BlockKind::End => SectionEnd::parse(&payload).map(drop),
            BlockKind::Start | BlockKind::Other(_) => ProcessStart::parse(&payload).map(drop),
        };
        rejected += usize::from(result.is_err());
        assert_eq!(events.iter().count(), events.len(), "round {round}");
    }
    assert!(rejected > rounds / 4, "{rejected} of {rounds}");
}

#[test]
fn a_truncated_payload_of_events_is_rejected() {
    let (dictionary, _) = read(&fixed_section()).unwrap();
    for (kind, _, payload) in content(&fixed_section()).unwrap() {
        for len in 0..payload.len() {
            match kind {
                BlockKind::Events => assert!(EventBuffer::new().decode(&payload[..len], &dictionary).is_err(), "{len}"),
                BlockKind::Definitions => drop(Dictionary::default().add(&payload[..len])),
                _ => {}
            }
        }
    }
}

#[test]
fn blocks_of_unknown_kinds_can_be_skipped() {
    let mut file = fixed_section();
    write_block(BlockKind::Other(200), 5, b"from the future", &mut file).unwrap();
    let last = content(&file).unwrap().pop().unwrap();
    assert_eq!(last, (BlockKind::Other(200), 5, b"from the future".to_vec()));
}

/// Returns a changed header with a corrected checksum.
fn forged(change: impl Fn(&mut [u8])) -> [u8; BlockHeader::LEN] {
    let mut file = Vec::new();
    write_block(BlockKind::Events, 1, &[0; EventsHead::LEN], &mut file).unwrap();
    let mut header = *file.first_chunk().unwrap();
    change(&mut header);
    let own = crc32fast::hash(&header[..28]);
    header[28..].copy_from_slice(&own.to_le_bytes());
    header
}

#[test]
fn a_newer_version_and_an_excessive_length_are_distinguished_from_damage() {
    assert!(BlockHeader::parse(&forged(|_| ())).is_ok());
    assert_eq!(BlockHeader::parse(&forged(|header| header[9] = 2)), Err(BlockError::NewerVersion));
    assert_eq!(BlockHeader::parse(&forged(|header| header[0] = 0)), Err(BlockError::NoMarker));
    let long = (MAX_PAYLOAD + 1).to_le_bytes();
    for at in [12, 16] {
        let header = forged(|header| header[at..at + 4].copy_from_slice(&long));
        assert_eq!(BlockHeader::parse(&header), Err(BlockError::TooLong));
    }
    let codec = BlockHeader::parse(&forged(|header| header[10] = 9)).unwrap();
    assert_eq!(codec.payload(&[0; EventsHead::LEN], &mut Vec::new()), Err(BlockError::UnknownCodec));
    let compressed = BlockHeader::parse(&forged(|header| header[10] = 1)).unwrap();
    assert_eq!(compressed.payload(&[0; EventsHead::LEN], &mut Vec::new()), Err(BlockError::BadCompression));
}

/// Returns three chunks with distinct definitions.
fn three_chunks() -> ([Encoded; 3], [Vec<String>; 3]) {
    let stacks = stack_table();
    let process = Process::default();
    let mut encoder = Encoder::new(stacks);
    encoder.kind(&events::INSTANT).unwrap();
    let frame = |code: u32| RawFrame::python(CodeId::new(code).unwrap(), code, false);
    let words = |chunk: u32| {
        let codes = chunk * 10 + 1..chunk * 10 + 9;
        codes.flat_map(|code| {
            [1, frame(code).to_bits(), stacks.intern(&[frame(code), frame(code + 1)]).unwrap().get().into()]
        })
    };
    let words = [0, 1, 2].map(|chunk| words(chunk).collect::<Vec<u64>>());
    let texts = words.each_ref().map(|words| describe_words(words, &[events::INSTANT], stacks, &process));
    let chunks = words.map(|words| {
        let mut blocks = Encoded::default();
        encoder.events(1, &words, &process, &mut blocks);
        blocks
    });
    (chunks, texts)
}

#[test]
fn lost_definitions_leave_gaps_and_shift_nothing() {
    let ([first, second, third], texts) = three_chunks();
    let file = [&first.definitions, &first.events, &second.events, &third.definitions, &third.events];
    let (dictionary, events) = read(&file.map(Vec::as_slice).concat()).unwrap();
    assert_eq!(describe_events(&events[0], &dictionary), texts[0]);
    assert_eq!(describe_events(&events[2], &dictionary), texts[2]);
    assert!(describe_events(&events[1], &dictionary).iter().all(|event| event.contains("missing")));
}

#[test]
fn events_of_a_kind_whose_definition_was_lost_remain() {
    let ([first, second, _], _) = three_chunks();
    let (dictionary, events) = read(&[second.definitions, first.events, second.events].concat()).unwrap();
    assert_eq!(dictionary.kind(1), None);
    assert_eq!(events.iter().map(EventBuffer::len).collect::<Vec<_>>(), [8, 8]);
    assert!(events.iter().flatten().all(|event| event.words.len() == 2));
}

#[test]
fn a_ring_that_drops_old_events_is_a_complete_section() {
    let ([first, second, third], texts) = three_chunks();
    let file = [first.definitions, second.definitions, third.definitions, third.events].concat();
    let (dictionary, events) = read(&file).unwrap();
    assert_eq!(describe_events(&events[0], &dictionary), texts[2]);
}

#[test]
fn repeated_definitions_are_rejected_and_change_nothing() {
    let ([first, ..], texts) = three_chunks();
    let (mut dictionary, events) = read(&[&first.definitions[..], &first.events].concat()).unwrap();
    for (_, payload) in blocks(&first.definitions).unwrap() {
        assert_eq!(dictionary.add(&payload), Err(BlockError::Contradiction));
    }
    assert_eq!(describe_events(&events[0], &dictionary), texts[0]);
}

#[test]
fn concatenated_files_are_two_sections() {
    let file = fixed_section();
    let alone = lines(&file).unwrap();
    assert_eq!(lines(&[&file[..], &file].concat()).unwrap(), [&alone[..], &alone].concat());
    let sections: Vec<u32> = blocks(&file).unwrap().iter().map(|(header, _)| header.section).collect();
    assert!(sections.iter().all(|section| *section == sections[0]));
}

#[test]
fn the_marker_occurs_only_at_the_beginning_of_blocks() {
    let file = fixed_section();
    let found = file.windows(SYNC.len()).filter(|window| *window == SYNC).count();
    assert_eq!(found, blocks(&file).unwrap().len());
}

//! Allocations are justified by the bytes that are present.

use stackweave_recording::file::{BlockHeader, BlockKind, Dictionary, EventBuffer, EventsHead, write_block};
use stackweave_testkit::counting_allocator::peak_bytes;
use stackweave_testkit::scale;

use crate::common::fixed::fixed_section;
use crate::common::{Random, blocks};

/// The maximum memory for each byte of a payload. Names and the values of constant columns need the most.
const MAX_PER_BYTE: usize = 400;
const MAX_FIXED: usize = 1 << 14;

#[test]
fn random_payloads_need_no_more_memory_than_their_bytes_justify() {
    let parts = blocks(&fixed_section()).unwrap();
    let mut random = Random::new(11);
    for round in 0..scale(3_000, 30_000) {
        let (header, payload) = &parts[random.below(parts.len())];
        let mut payload = payload.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(payload.len());
            match random.below(3) {
                0 => drop(payload.splice(at..at, [0xff, 0xff, 0xff, 0xff, 0x0f])),
                1 => payload[at] |= 0x7f,
                _ => payload[at] = random.byte_below(255),
            }
        }
        let cost = peak_bytes(|| match header.kind {
            BlockKind::Definitions => drop(Dictionary::default().add(&payload)),
            BlockKind::Events => drop(EventBuffer::new().decode(&payload, &Dictionary::default())),
            _ => {}
        });
        assert!(cost <= payload.len() * MAX_PER_BYTE + MAX_FIXED, "round {round}: {cost} for {}", payload.len());
    }
}

#[test]
fn a_short_payload_that_claims_much_is_cheap() {
    let mut head = Vec::new();
    head.extend(1_u32.to_le_bytes());
    head.extend(u32::MAX.to_le_bytes());
    head.extend([0; EventsHead::LEN - 8]);
    let claims: [&[u8]; 4] = [
        // One kind with 16 fields, and a constant column of time steps.
        &[1, 1, 16, 0, 1, 0],
        &[1, 1, 16, 1, 1, 0],
        // Two kinds, and too few indices for the events.
        &[2, 1, 0, 2, 0, 0xff, 0xff],
        &[0, 1, 0],
    ];
    for claim in claims {
        let payload = [&head, claim].concat();
        let cost = peak_bytes(|| assert!(EventBuffer::new().decode(&payload, &Dictionary::default()).is_err()));
        assert!(cost < MAX_FIXED, "{cost} for {claim:?}");
    }
    for tag in 1..=7 {
        let run = [1, 0xff, 0xff, 0xff, 0xff, 0x0f];
        let payload = [&[tag, 6][..], &run].concat();
        let cost = peak_bytes(|| assert!(Dictionary::default().add(&payload).is_err()));
        assert!(cost < MAX_FIXED, "{cost} for runs of {tag}");
    }
}

#[test]
fn definitions_expand_to_at_most_32_times_their_stored_length() {
    let mut file = Vec::new();
    write_block(BlockKind::Definitions, 1, &vec![0; 1 << 20], &mut file).unwrap();
    let header = BlockHeader::parse(file.first_chunk().unwrap()).unwrap();
    assert_eq!(header.stored_len, header.full_len);
    file.clear();
    write_block(BlockKind::Events, 1, &vec![0; 1 << 20], &mut file).unwrap();
    let header = BlockHeader::parse(file.first_chunk().unwrap()).unwrap();
    assert!(header.stored_len < header.full_len / 100);
}

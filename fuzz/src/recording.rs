//! Checks that arbitrary bytes can be read as a recording to the end, and that reading them twice gives the same
//! result.

use std::collections::HashMap;
use std::ops::ControlFlow;

use stackweave_core::{EventKind, FieldType, Role};
use stackweave_recording::file::{BlockHeader, RawEvent, SYNC};
use stackweave_recording::read::OpenStack;
use stackweave_recording::{Recording, merge};

use crate::open;

/// Checks one input.
///
/// # Panics
/// Panics if a property does not hold.
pub fn check_input(data: &[u8]) {
    read(data);
    read(&with_right_checksums(data));
}

fn read(bytes: &[u8]) {
    let Some(recording) = open(bytes) else { return };
    let events = visited(&recording);
    assert_eq!(in_time_order(&recording), events);
    recording.report().iter().for_each(|sentence| assert!(sentence.ends_with('.')));
    let mut merged = Vec::new();
    let summary = merge(&recording, &mut merged, &mut |_| ()).unwrap();
    assert!(summary.bytes == merged.len() as u64 && merged.len() <= bytes.len());
    let again = open(&merged).unwrap();
    // Without their damaged blocks, two recordings of one process may have the same contents: then they are read once.
    if recording.missing().duplicates.iter().all(|duplicate| !duplicate.both_are_read) {
        assert_eq!((again.processes().len(), visited(&again)), (recording.processes().len(), events));
    }
}

/// Returns the number of events. Looks up everything that they refer to.
fn visited(recording: &Recording) -> u64 {
    let mut count = 0;
    for process in recording.processes() {
        let dictionary = process.dictionary();
        let frames = dictionary.stacks().take(1_000).map(|(stack, _)| dictionary.frames_of(stack).count());
        assert!(frames.max() <= Some(dictionary.stack_count()));
        assert!(dictionary.frames().all(|(frame, _)| dictionary.names(frame).len() <= 1 << 20));
        let mut threads: HashMap<u32, OpenStack<u64>> = HashMap::new();
        let visit = process.visit(None, &mut |_| (), &mut |events| {
            let open = threads.entry(events.thread()).or_default();
            for event in events {
                assert!(event.words.len() <= 16);
                if let Some(kind) = dictionary.kind(event.kind) {
                    nest(open, kind, &event);
                }
                count += 1;
            }
            ControlFlow::Continue(())
        });
        visit.unwrap();
    }
    count
}

/// Begins and ends spans as readers do: there are never more open spans than the events have begun, whatever depths
/// the events state.
fn nest(open: &mut OpenStack<u64>, kind: &EventKind, event: &RawEvent<'_>) {
    let word = |of| kind.position_of(of).and_then(|place| event.words.get(place)).copied().unwrap_or(0);
    let (frame, depth) = (word(FieldType::Frame), word(FieldType::Unsigned));
    if kind.role != Role::Open || !open.goes_on(depth) {
        while open.take_beyond().is_some() {}
    }
    let before = open.len();
    match kind.role {
        Role::Begin | Role::Resume => open.begin(frame),
        Role::End => drop(open.end()),
        Role::Open if frame == 0 => open.open_nothing(depth),
        Role::Open if open.open(depth, |known| *known == frame) => {
            while open.take_beyond().is_some() {}
            open.begin_open(depth, frame);
            assert_eq!(open.with_depths().last(), Some((depth, &frame)));
        }
        _ => {}
    }
    assert!(open.len() <= before + 1 && open.depth() >= open.len() as u64);
}

fn in_time_order(recording: &Recording) -> u64 {
    let mut count = 0;
    let visit = recording.visit_in_time_order(None, &mut |_| (), &mut |_| {
        count += 1;
        ControlFlow::Continue(())
    });
    visit.unwrap();
    count
}

/// Returns the bytes with correct markers and checksums, so that the contents of the blocks are read.
fn with_right_checksums(data: &[u8]) -> Vec<u8> {
    let mut bytes = data.to_vec();
    let mut rest = &mut bytes[..];
    while rest.len() >= BlockHeader::LEN {
        let (header, behind) = rest.split_at_mut(BlockHeader::LEN);
        let stated = u32::from_le_bytes([header[12], header[13], header[14], header[15]]);
        // The length must fit into 32 bits.
        let stored = u32::try_from(behind.len()).unwrap_or(u32::MAX).min(stated);
        let len = stored as usize;
        header[..8].copy_from_slice(&SYNC);
        header[12..16].copy_from_slice(&stored.to_le_bytes());
        header[24..28].copy_from_slice(&crc32fast::hash(&behind[..len]).to_le_bytes());
        let of_header = crc32fast::hash(&header[..28]);
        header[28..].copy_from_slice(&of_header.to_le_bytes());
        rest = &mut behind[len..];
    }
    bytes
}

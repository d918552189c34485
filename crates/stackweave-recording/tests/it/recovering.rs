//! From a damaged file everything intact is read, and the rest is reported.

use std::collections::BTreeSet;
use std::ops::{ControlFlow, Range};
use std::slice;

use stackweave_recording::file::{BlockHeader, BlockKind, write_block};
use stackweave_recording::{ProcessRecording, Recording};
use stackweave_testkit::random::Random;

use crate::recording_builder::{BuiltBlock, RecordingBuilder, Steps, busy, open_bytes, visited};

/// Returns the events of `built` outside of `damage`.
fn steps_outside(built: &RecordingBuilder, damage: &Range<usize>) -> Steps {
    built.steps_where(|block| block.end <= damage.start || block.start >= damage.end)
}

/// Reads all events of all processes, and returns their number.
fn read_all(recording: &Recording) -> usize {
    let mut events = 0;
    for process in recording.processes() {
        let visit = process.visit(None, &mut |_| (), &mut |block| {
            events += block.iter().count();
            ControlFlow::Continue(())
        });
        visit.unwrap();
    }
    let mut again = 0;
    let visit = recording.visit_in_time_order(None, &mut |_| (), &mut |_| {
        again += 1;
        ControlFlow::Continue(())
    });
    visit.unwrap();
    assert_eq!(again, events);
    events
}

fn only(recording: &Recording) -> &ProcessRecording {
    let [process] = recording.processes() else { panic!("{recording:?}") };
    process
}

#[test]
fn a_truncated_file_keeps_all_its_complete_blocks() {
    let built = busy(7, 1, 3, 12).end();
    let boundaries: BTreeSet<usize> = built.blocks.iter().map(|block| block.0.end).collect();
    for cut in built.blocks[0].0.end..built.bytes.len() {
        let recording = open_bytes(&built.bytes[..cut]).unwrap();
        let process = only(&recording);
        let (steps, damaged) = visited(process);
        assert_eq!(steps, built.steps_where(|block| block.end <= cut), "cut at {cut}");
        let last_whole = boundaries.iter().rev().find(|end| **end <= cut).unwrap();
        let missing = process.missing();
        assert!(missing.is_unclosed && missing.cut_bytes == (cut - last_whole) as u64, "cut at {cut}: {missing:?}");
        assert!(missing.damaged.is_empty() && damaged.is_empty(), "cut at {cut}: {missing:?} {damaged:?}");
        let reports_cut =
            recording.report().iter().any(|sentence| sentence.starts_with("The file ends inside a block: "));
        assert_eq!(reports_cut, !boundaries.contains(&cut), "cut at {cut}: {:?}", recording.report());
    }
}

#[test]
fn changed_bytes_damage_only_their_blocks() {
    let built = busy(7, 2, 3, 20).end();
    let mut random = Random::new(3);
    for round in 0..2_000 {
        let mut bytes = built.bytes.clone();
        let offset = random.below(bytes.len());
        bytes[offset] ^= 1 + random.byte_below(255);
        let hit = built.blocks.iter().find(|block| block.0.contains(&offset)).unwrap();
        let Ok(recording) = open_bytes(&bytes) else {
            assert_eq!(hit.1, BuiltBlock::Start, "round {round}");
            continue;
        };
        let (steps, damaged) = visited(only(&recording));
        // A damaged Events block loses only its events. A damaged Definitions block loses no events.
        let expected = built.steps_where(|block| *block != hit.0);
        let is_definition = hit.1 == BuiltBlock::Definitions;
        assert_eq!(steps, if is_definition { built.all_steps() } else { expected }, "round {round} at {offset}");
        let reported = recording.report().len() + damaged.sentences().len();
        assert!(reported > 0, "round {round} at {offset}: nothing is reported");
    }
}

#[test]
fn random_damage_is_survived() {
    let built = [busy(7, 4, 3, 15).end(), busy(8, 5, 2, 10)];
    let bytes = built.each_ref().map(|builder| builder.bytes.clone()).concat();
    let mut whole = 0;
    for seed in 0..1_500 {
        let mut random = Random::new(seed);
        let mut bytes = bytes.clone();
        for _ in 0..=random.below(4) {
            let (from, len) = (random.below(bytes.len()), 1 + random.below(600));
            let to = (from + len).min(bytes.len());
            match random.below(5) {
                0 => bytes[from..to].fill(0),
                1 => bytes[from..to].iter_mut().for_each(|byte| *byte = random.byte_below(255)),
                2 => drop(bytes.drain(from..to)),
                3 => {
                    let copy = bytes[from..to].to_vec();
                    let offset = random.below(bytes.len());
                    bytes.splice(offset..offset, copy);
                }
                _ => bytes.truncate(to.max(1_000)),
            }
        }
        if let Ok(recording) = open_bytes(&bytes) {
            whole += usize::from(read_all(&recording) > 0);
            let known: Vec<Steps> = built.iter().map(RecordingBuilder::all_steps).collect();
            for process in recording.processes() {
                let known = &known[usize::from(process.start().pid != 7)];
                for (thread, steps) in visited(process).0 {
                    assert!(
                        steps.iter().all(|step| known[&thread].contains(step)),
                        "seed {seed}: an event that was not recorded"
                    );
                }
            }
        }
    }
    assert!(whole > 1_000, "only {whole} could be read");
}

#[test]
fn a_hole_in_the_middle_is_reported_with_its_range() {
    let built = busy(7, 6, 2, 30).end();
    let from = built.blocks[20].0.start + 3;
    let to = built.blocks[23].0.end - 5;
    let mut bytes = built.bytes.clone();
    bytes[from..to].fill(0);
    let recording = open_bytes(&bytes).unwrap();
    let process = only(&recording);
    assert_eq!(visited(process).0, steps_outside(&built, &(from..to)));
    let damaged = &process.missing().damaged;
    let range = built.blocks[20].0.start as u64..built.blocks[23].0.end as u64;
    assert_eq!((damaged.ranges(), damaged.bytes()), (slice::from_ref(&range), range.end - range.start));
    let sentence = format!(
        "The file is damaged: {} bytes can't be read (bytes {} to {}).",
        range.end - range.start,
        range.start,
        range.end - 1
    );
    assert_eq!(recording.report(), [sentence]);
}

#[test]
fn blocks_after_a_truncated_one_are_found_inside_its_claimed_length() {
    let (first, second) = (busy(7, 7, 2, 20), busy(8, 8, 2, 20).end());
    let cut = first.blocks.iter().rfind(|block| matches!(block.1, BuiltBlock::Events(..))).unwrap().0.clone();
    // As by `cat`, or by a writer that could not truncate a file: the header is complete, its payload is not.
    for end in [cut.start + BlockHeader::LEN, cut.start + BlockHeader::LEN + 1, cut.end - 1] {
        let bytes = [&first.bytes[..end], &second.bytes].concat();
        let recording = open_bytes(&bytes).unwrap();
        let [a, b] = recording.processes() else { panic!("{recording:?}") };
        assert_eq!(visited(a).0, first.steps_where(|block| block.end <= end));
        assert_eq!(visited(b).0, second.all_steps());
        assert_eq!(a.missing().damaged.bytes(), (end - cut.start) as u64);
        assert!(b.missing().is_empty() && recording.missing().is_empty());
    }
}

#[test]
fn removed_bytes_damage_only_their_block() {
    let built = busy(7, 9, 2, 20).end();
    let hit = built.blocks.iter().filter(|block| matches!(block.1, BuiltBlock::Events(..))).nth(8).unwrap().0.clone();
    let mut bytes = built.bytes.clone();
    bytes.drain(hit.end - 4..hit.end - 1);
    let recording = open_bytes(&bytes).unwrap();
    assert_eq!(visited(only(&recording)).0, steps_outside(&built, &hit));
}

#[test]
fn blocks_after_a_damaged_start_are_not_assigned_to_another_process() {
    // The first process was killed: only the tag shows that its blocks have ended.
    let (first, second, third) = (busy(7, 10, 2, 8), busy(8, 11, 2, 8).end(), busy(9, 12, 1, 3).end());
    let whole = [&first.bytes[..], &second.bytes, &third.bytes].concat();
    // Damage in the payload of the Start, and in its header.
    for (damaged, orphans_from) in [(BlockHeader::LEN + 2, 0), (2, second.blocks[0].0.end)] {
        let mut bytes = whole.clone();
        bytes[first.bytes.len() + damaged] ^= 0x40;
        let recording = open_bytes(&bytes).unwrap();
        let [a, c] = recording.processes() else { panic!("{recording:?}") };
        assert_eq!((visited(a).0, visited(c).0), (first.all_steps(), third.all_steps()));
        let range = first.bytes.len() + orphans_from..first.bytes.len() + second.bytes.len();
        let orphans = range.start as u64..range.end as u64;
        assert_eq!(recording.missing().orphans.ranges(), slice::from_ref(&orphans));
        let sentence = recording.report().into_iter().find(|sentence| sentence.contains("whose start can't be read"));
        assert!(sentence.unwrap().starts_with(&format!("{} bytes belong to ", range.len())));
    }
}

#[test]
fn garbage_at_the_beginning_is_skipped() {
    let built = busy(7, 13, 2, 8).end();
    let bytes = [&vec![0xee; 100_000][..], &built.bytes].concat();
    let recording = open_bytes(&bytes).unwrap();
    assert_eq!(visited(only(&recording)).0, built.all_steps());
    assert_eq!(recording.missing().damaged.ranges(), slice::from_ref(&(0..100_000)));
}

#[test]
fn a_header_is_found_at_any_offset_of_the_read_buffer() {
    let built = RecordingBuilder::new(7, 0);
    for garbage in (64 << 10) - 2 * BlockHeader::LEN..(64 << 10) + 2 * BlockHeader::LEN {
        let bytes = [&vec![0xf5; garbage][..], &built.bytes].concat();
        let recording = open_bytes(&bytes).unwrap_or_else(|error| panic!("after {garbage} bytes: {error}"));
        assert_eq!(recording.missing().damaged.bytes(), garbage as u64);
    }
}

#[test]
fn a_block_with_damaged_events_is_reported_by_the_visit() {
    let built = busy(7, 14, 2, 20).end();
    let hit = built.blocks.iter().filter(|block| matches!(block.1, BuiltBlock::Events(..))).nth(5).unwrap().0.clone();
    let mut bytes = built.bytes.clone();
    bytes[hit.end - 1] ^= 1;
    let recording = open_bytes(&bytes).unwrap();
    let process = only(&recording);
    assert!(process.missing().is_empty(), "opening a file does not read payloads of events");
    let range = hit.start as u64..hit.end as u64;
    let (steps, missing) = visited(process);
    assert_eq!((steps, missing.damaged.ranges()), (steps_outside(&built, &hit), slice::from_ref(&range)));
    let in_order = process.visit_in_time_order(None, &mut |_| (), &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(in_order.damaged.ranges(), slice::from_ref(&range));
}

#[test]
fn headers_that_repeatedly_claim_the_same_bytes_are_cheap() {
    // Each header claims all that follows and has a valid checksum; no payload has.
    let mut block = vec![];
    let payload = vec![7; 8 << 20];
    write_block(BlockKind::Other(99), 1, &payload, &mut block).unwrap();
    let header = &block[..BlockHeader::LEN];
    let built = busy(7, 15, 1, 2);
    let mut bytes = built.bytes.clone();
    for _ in 0..(1 << 20) / BlockHeader::LEN {
        bytes.extend_from_slice(header);
    }
    bytes.extend_from_slice(&vec![0; 8 << 20]);
    let recording = open_bytes(&bytes).unwrap();
    assert_eq!(visited(only(&recording)).0, built.all_steps());
}

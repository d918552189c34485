//! Whatever happens to a file, what is whole is read, and what is not is told.

use std::collections::BTreeSet;
use std::ops::{ControlFlow, Range};
use std::slice;

use stackweave_recording::file::{BlockHeader, BlockKind, write_block};
use stackweave_recording::{ProcessRecording, Recording};
use stackweave_testkit::random::Random;

use crate::making::{Made, Maker, Steps, busy, open_bytes, visited};

/// What of `made` lies outside of `damage`.
fn steps_outside(made: &Maker, damage: &Range<usize>) -> Steps {
    made.steps_where(|block| block.end <= damage.start || block.start >= damage.end)
}

/// Everything there is to read, whoever's it is.
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
fn cut_anywhere_a_file_holds_all_its_whole_blocks() {
    let made = busy(7, 1, 3, 12).end();
    let boundaries: BTreeSet<usize> = made.blocks.iter().map(|block| block.0.end).collect();
    for cut in made.blocks[0].0.end..made.bytes.len() {
        let recording = open_bytes(&made.bytes[..cut]).unwrap();
        let process = only(&recording);
        let (steps, damaged) = visited(process);
        assert_eq!(steps, made.steps_where(|block| block.end <= cut), "cut at {cut}");
        let last_whole = boundaries.iter().rev().find(|end| **end <= cut).unwrap();
        let missing = process.missing();
        assert!(missing.is_unclosed && missing.cut_bytes == (cut - last_whole) as u64, "cut at {cut}: {missing:?}");
        assert!(missing.damaged.is_empty() && damaged.is_empty(), "cut at {cut}: {missing:?} {damaged:?}");
        let tells_cut =
            recording.report().iter().any(|sentence| sentence.starts_with("The file ends inside a block: "));
        assert_eq!(tells_cut, !boundaries.contains(&cut), "cut at {cut}: {:?}", recording.report());
    }
}

#[test]
fn bytes_that_changed_cost_only_their_blocks() {
    let made = busy(7, 2, 3, 20).end();
    let mut random = Random::new(3);
    for round in 0..2_000 {
        let mut bytes = made.bytes.clone();
        let place = random.below(bytes.len());
        bytes[place] ^= 1 + random.byte_below(255);
        let hit = made.blocks.iter().find(|block| block.0.contains(&place)).unwrap();
        let Ok(recording) = open_bytes(&bytes) else {
            assert_eq!(hit.1, Made::Start, "round {round}");
            continue;
        };
        let (steps, damaged) = visited(only(&recording));
        // An Events block is its own: nothing else may be gone. Without definitions all events are still there.
        let expected = made.steps_where(|block| *block != hit.0);
        let is_definition = hit.1 == Made::Definitions;
        assert_eq!(steps, if is_definition { made.all_steps() } else { expected }, "round {round} at {place}");
        let told = recording.report().len() + damaged.sentences().len();
        assert!(told > 0, "round {round} at {place}: nothing said");
    }
}

#[test]
fn wild_damage_is_survived() {
    let made = [busy(7, 4, 3, 15).end(), busy(8, 5, 2, 10)];
    let bytes = made.each_ref().map(|maker| maker.bytes.clone()).concat();
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
                    let place = random.below(bytes.len());
                    bytes.splice(place..place, copy);
                }
                _ => bytes.truncate(to.max(1_000)),
            }
        }
        if let Ok(recording) = open_bytes(&bytes) {
            whole += usize::from(read_all(&recording) > 0);
            let known: Vec<Steps> = made.iter().map(Maker::all_steps).collect();
            for process in recording.processes() {
                let known = &known[usize::from(process.start().pid != 7)];
                for (thread, steps) in visited(process).0 {
                    assert!(
                        steps.iter().all(|step| known[&thread].contains(step)),
                        "seed {seed}: an event that never was"
                    );
                }
            }
        }
    }
    assert!(whole > 1_000, "only {whole} could be read");
}

#[test]
fn a_hole_in_the_middle_is_told_with_its_place() {
    let made = busy(7, 6, 2, 30).end();
    let from = made.blocks[20].0.start + 3;
    let to = made.blocks[23].0.end - 5;
    let mut bytes = made.bytes.clone();
    bytes[from..to].fill(0);
    let recording = open_bytes(&bytes).unwrap();
    let process = only(&recording);
    assert_eq!(visited(process).0, steps_outside(&made, &(from..to)));
    let damaged = &process.missing().damaged;
    let place = made.blocks[20].0.start as u64..made.blocks[23].0.end as u64;
    assert_eq!((damaged.ranges(), damaged.bytes()), (slice::from_ref(&place), place.end - place.start));
    let sentence = format!(
        "The file is damaged: {} bytes can't be read (bytes {} to {}).",
        place.end - place.start,
        place.start,
        place.end - 1
    );
    assert_eq!(recording.report(), [sentence]);
}

#[test]
fn blocks_behind_a_cut_one_are_found_inside_the_length_it_claims() {
    let (first, second) = (busy(7, 7, 2, 20), busy(8, 8, 2, 20).end());
    let cut = first.blocks.iter().rfind(|block| matches!(block.1, Made::Events(..))).unwrap().0.clone();
    // As by `cat`, or by a writer that could not cut a file back: the header is whole, its payload is not.
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
fn bytes_that_vanished_cost_the_block_they_were_in() {
    let made = busy(7, 9, 2, 20).end();
    let hit = made.blocks.iter().filter(|block| matches!(block.1, Made::Events(..))).nth(8).unwrap().0.clone();
    let mut bytes = made.bytes.clone();
    bytes.drain(hit.end - 4..hit.end - 1);
    let recording = open_bytes(&bytes).unwrap();
    assert_eq!(visited(only(&recording)).0, steps_outside(&made, &hit));
}

#[test]
fn blocks_behind_a_damaged_start_are_nobody_elses() {
    // The first was killed: nothing but the tag tells that its blocks are at an end.
    let (first, second, third) = (busy(7, 10, 2, 8), busy(8, 11, 2, 8).end(), busy(9, 12, 1, 3).end());
    let whole = [&first.bytes[..], &second.bytes, &third.bytes].concat();
    // Its payload; its header.
    for (damaged, orphans_from) in [(BlockHeader::LEN + 2, 0), (2, second.blocks[0].0.end)] {
        let mut bytes = whole.clone();
        bytes[first.bytes.len() + damaged] ^= 0x40;
        let recording = open_bytes(&bytes).unwrap();
        let [a, c] = recording.processes() else { panic!("{recording:?}") };
        assert_eq!((visited(a).0, visited(c).0), (first.all_steps(), third.all_steps()));
        let range = first.bytes.len() + orphans_from..first.bytes.len() + second.bytes.len();
        let place = range.start as u64..range.end as u64;
        assert_eq!(recording.missing().orphans.ranges(), slice::from_ref(&place));
        let sentence = recording.report().into_iter().find(|sentence| sentence.contains("whose start can't be read"));
        assert!(sentence.unwrap().starts_with(&format!("{} bytes belong to ", range.len())));
    }
}

#[test]
fn garbage_in_front_is_stepped_over() {
    let made = busy(7, 13, 2, 8).end();
    let bytes = [&vec![0xee; 100_000][..], &made.bytes].concat();
    let recording = open_bytes(&bytes).unwrap();
    assert_eq!(visited(only(&recording)).0, made.all_steps());
    assert_eq!(recording.missing().damaged.ranges(), slice::from_ref(&(0..100_000)));
}

#[test]
fn a_header_is_found_wherever_it_lies_in_what_is_read_at_once() {
    let made = Maker::new(7, 0);
    for garbage in (64 << 10) - 2 * BlockHeader::LEN..(64 << 10) + 2 * BlockHeader::LEN {
        let bytes = [&vec![0xf5; garbage][..], &made.bytes].concat();
        let recording = open_bytes(&bytes).unwrap_or_else(|error| panic!("behind {garbage} bytes: {error}"));
        assert_eq!(recording.missing().damaged.bytes(), garbage as u64);
    }
}

#[test]
fn a_block_whose_events_are_damaged_is_told_by_the_visit() {
    let made = busy(7, 14, 2, 20).end();
    let hit = made.blocks.iter().filter(|block| matches!(block.1, Made::Events(..))).nth(5).unwrap().0.clone();
    let mut bytes = made.bytes.clone();
    bytes[hit.end - 1] ^= 1;
    let recording = open_bytes(&bytes).unwrap();
    let process = only(&recording);
    assert!(process.missing().is_empty(), "payloads of events are not read to open a file");
    let place = hit.start as u64..hit.end as u64;
    let (steps, missing) = visited(process);
    assert_eq!((steps, missing.damaged.ranges()), (steps_outside(&made, &hit), slice::from_ref(&place)));
    let in_order = process.visit_in_time_order(None, &mut |_| (), &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(in_order.damaged.ranges(), slice::from_ref(&place));
}

#[test]
fn headers_that_claim_the_same_bytes_over_and_over_cost_little() {
    // Each header claims all that follows, and its checksum holds; nothing behind it does.
    let mut block = vec![];
    let payload = vec![7; 8 << 20];
    write_block(BlockKind::Other(99), 1, &payload, &mut block).unwrap();
    let header = &block[..BlockHeader::LEN];
    let made = busy(7, 15, 1, 2);
    let mut bytes = made.bytes.clone();
    for _ in 0..(1 << 20) / BlockHeader::LEN {
        bytes.extend_from_slice(header);
    }
    bytes.extend_from_slice(&vec![0; 8 << 20]);
    let recording = open_bytes(&bytes).unwrap();
    assert_eq!(visited(only(&recording)).0, made.all_steps());
}

//! Following a recording while it is written gives the same as reading it at the end.

use stackweave_recording::ProcessRecording;
use stackweave_recording::file::{LossReason, RawEvent};
use stackweave_recording::read::{FileChange, FollowBlocks, FollowOrder, Follower};
use stackweave_testkit::folder::Folder;
use stackweave_testkit::growing_file::GrowingFile;
use stackweave_testkit::random::Random;

use crate::recording_builder::{RecordingBuilder, Steps, busy, open_bytes, steps_of, value_of};

fn follow(file: &GrowingFile) -> Follower {
    Follower::open(file.path()).unwrap()
}

/// Adds the events that are available now.
fn take(blocks: &mut FollowBlocks, process: &ProcessRecording, steps: &mut Steps) {
    while let Some(block) = blocks.next_block(process, u64::MAX).unwrap() {
        let own = steps.entry(block.thread()).or_default();
        own.extend(block.iter().map(|event| (event.ticks, value_of(process, &event))));
    }
}

#[test]
fn appending_in_pieces_of_any_size_gives_the_same_as_the_whole_file() {
    for seed in 0..30 {
        let mut random = Random::new(seed);
        let built: Vec<RecordingBuilder> = (1..=3).map(|pid| busy(pid, seed + u64::from(pid), 3, 40).end()).collect();
        let file: Vec<u8> = built.iter().flat_map(|builder| builder.bytes.clone()).collect();
        let (source, mut rest) = (GrowingFile::new(), &file[..]);
        let mut follower = follow(&source);
        let mut seen: Vec<(FollowBlocks, Steps)> = Vec::new();
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(1 + random.below(rest.len().min(1 + file.len() / 9)));
            rest = behind;
            source.add(piece);
            assert_eq!(follower.update().unwrap().changed, None);
            seen.resize_with(follower.processes().len(), Default::default);
            for (process, (blocks, steps)) in follower.processes().iter().zip(&mut seen) {
                take(blocks, process, steps);
            }
        }
        let whole = open_bytes(&file).unwrap();
        assert_eq!(follower.processes().len(), 3, "seed {seed}");
        for ((followed, read), (blocks, steps)) in follower.processes().iter().zip(whole.processes()).zip(&seen) {
            assert_eq!(*steps, steps_of(read), "seed {seed}");
            assert_eq!(blocks.events_done(), read.event_count());
            assert_eq!((followed.start(), followed.end()), (read.start(), read.end()));
            assert_eq!((followed.timeline(), followed.missing()), (read.timeline(), read.missing()));
            assert_eq!((followed.bytes(), followed.losses()), (read.bytes(), read.losses()));
            let counts = |of: &ProcessRecording| (of.dictionary().frame_count(), of.dictionary().stack_count());
            assert_eq!(counts(followed), counts(read));
        }
        assert_eq!(follower.missing(), whole.missing());
    }
}

#[test]
fn a_block_counts_once_it_is_complete() {
    let built = busy(7, 1, 2, 4).end();
    let source = GrowingFile::new();
    let mut follower = follow(&source);
    let (mut blocks, mut steps) = (FollowBlocks::default(), Steps::new());
    for (cut, byte) in built.bytes.iter().enumerate() {
        source.add(&[*byte]);
        follower.update().unwrap();
        if let [process] = follower.processes() {
            take(&mut blocks, process, &mut steps);
            assert_eq!(process.missing().cut_bytes, 0, "an incomplete block is not reported");
        }
        assert_eq!(steps, built.steps_where(|range| range.end <= cut + 1), "after {} bytes", cut + 1);
    }
    assert!(follower.processes()[0].missing().is_empty());
}

#[test]
fn damage_is_skipped_once_a_block_follows() {
    let built = busy(7, 3, 2, 20).end();
    let (broken, _) = built
        .blocks
        .iter()
        .find(|(_, block)| matches!(block, crate::recording_builder::BuiltBlock::Events(..)))
        .unwrap();
    let mut file = built.bytes.clone();
    file[broken.start..broken.start + 8].fill(0xaa);
    let source = GrowingFile::new();
    let mut follower = follow(&source);
    source.add(&file[..broken.end]);
    assert_eq!(follower.update().unwrap().new_bytes, broken.start as u64);
    source.add(&file[broken.end..]);
    assert_eq!(follower.update().unwrap().new_bytes, (file.len() - broken.start) as u64);
    let (mut blocks, mut steps) = (FollowBlocks::default(), Steps::new());
    take(&mut blocks, &follower.processes()[0], &mut steps);
    assert_eq!(steps, built.steps_where(|range| range != broken));
    assert_eq!(follower.processes()[0].missing().damaged.bytes(), (broken.end - broken.start) as u64);
}

/// Returns random blocks of events on several threads, with many equal ticks.
fn threads_in_blocks(random: &mut Random) -> Vec<(u32, Vec<(u64, u64)>)> {
    let mut now = 0;
    (0..40u64)
        .map(|block| {
            now += random.below(20) as u64;
            let (thread, mut ticks) = (u32::try_from(1 + random.below(4)).unwrap(), now);
            let steps = (0..=random.below(6)).map(|step| {
                ticks += random.below(4) as u64;
                (ticks, block * 100 + step as u64)
            });
            (thread, steps.collect())
        })
        .collect()
}

/// Adds the threads and values of the events before `until`.
fn see(order: &mut FollowOrder, process: &ProcessRecording, until: u64, seen: &mut Vec<(u32, u64)>) {
    let mut event = |thread: u32, event: &RawEvent<'_>| seen.push((thread, value_of(process, event)));
    order.visit_until(process, until, &mut event).unwrap();
}

#[test]
fn the_time_order_is_that_of_the_whole_file() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let blocks = threads_in_blocks(&mut random);
        let mut built = RecordingBuilder::new(7, 0);
        let (mut order, mut seen) = (FollowOrder::default(), Vec::new());
        let (source, mut fed) = (GrowingFile::new(), 0);
        let mut follower = follow(&source);
        for (place, (thread, steps)) in blocks.iter().enumerate() {
            built.steps(*thread, steps);
            if random.below(3) == 0 {
                source.add(&built.bytes[fed..]);
                fed = built.bytes.len();
                follower.update().unwrap();
                // The following blocks contain no event before this time.
                let later = blocks[place + 1..].iter().flat_map(|(_, steps)| steps).map(|(ticks, _)| *ticks);
                let until = later.min().unwrap_or(u64::MAX);
                see(&mut order, &follower.processes()[0], until, &mut seen);
            }
        }
        source.add(&built.bytes[fed..]);
        follower.update().unwrap();
        see(&mut order, &follower.processes()[0], u64::MAX, &mut seen);
        let mut expected = Vec::new();
        let whole = open_bytes(&built.bytes).unwrap();
        let mut in_order = whole.processes()[0].in_time_order(None, None);
        while let Some(timed) = in_order.next_event().unwrap() {
            expected.push((timed.thread, value_of(timed.process, &timed.event)));
        }
        assert_eq!((seen, order.late()), (expected, 0), "seed {seed}");
        assert_eq!(order.events_done(), whole.event_count());
    }
}

#[test]
fn late_events_are_returned_and_counted() {
    let mut built = RecordingBuilder::new(7, 0);
    built.steps(1, &[(10, 1), (20, 2)]);
    let first = built.bytes.len();
    built.steps(2, &[(5, 3), (15, 4), (30, 5)]);
    let source = GrowingFile::new();
    let (mut follower, mut order, mut seen) = (follow(&source), FollowOrder::default(), Vec::new());
    for (piece, until) in [(&built.bytes[..first], 20), (&built.bytes[first..], u64::MAX)] {
        source.add(piece);
        follower.update().unwrap();
        see(&mut order, &follower.processes()[0], until, &mut seen);
    }
    assert_eq!((seen, order.late()), (vec![(1, 1), (2, 3), (2, 4), (1, 2), (2, 5)], 1));
}

#[test]
fn settled_times_do_not_change() {
    let mut built = RecordingBuilder::new(7, 1_000);
    built.clock(0, 1_000);
    built.steps(1, &[(100, 1)]);
    let mut cuts = vec![built.bytes.len()];
    for round in 1..20u64 {
        // The clock has another rate in each round.
        built.clock(round * 1_000, 1_000 + round * 1_000 + (round % 3) * 37);
        cuts.push(built.bytes.len());
        built.steps(1, &[(round * 1_000 + 1, round), (round * 1_000 + 999, round)]);
        cuts.push(built.bytes.len());
    }
    let built = built.end();
    cuts.push(built.bytes.len());
    let (source, mut fed) = (GrowingFile::new(), 0);
    let (mut follower, mut blocks) = (follow(&source), FollowBlocks::default());
    let (mut seen, mut looks_with_some) = (Vec::new(), 0);
    for cut in cuts {
        source.add(&built.bytes[fed..cut]);
        fed = cut;
        follower.update().unwrap();
        let process = &follower.processes()[0];
        let before = seen.len();
        while let Some(block) = blocks.next_block(process, process.settled_ticks()).unwrap() {
            seen.extend(block.iter().map(|event| (event.ticks, process.timeline().nanoseconds(event.ticks))));
        }
        looks_with_some += usize::from(seen.len() > before);
    }
    let timeline = follower.processes()[0].timeline();
    assert_eq!(seen, seen.iter().map(|(ticks, _)| (*ticks, timeline.nanoseconds(*ticks))).collect::<Vec<_>>());
    assert_eq!((seen.len(), looks_with_some), (39, 20));
}

#[test]
fn a_truncated_or_replaced_file_is_detected() {
    let folder = Folder::new();
    let path = folder.path().join("out.swv");
    let built = busy(7, 1, 2, 10);
    std::fs::write(&path, b"").unwrap();
    let mut follower = Follower::open(&path).unwrap();
    assert_eq!((follower.update().unwrap().file_bytes, follower.processes().len()), (0, 0));
    std::fs::write(&path, &built.bytes).unwrap();
    assert_eq!(follower.update().unwrap().new_bytes, built.bytes.len() as u64);
    std::fs::write(&path, &built.bytes[..built.bytes.len() - 1]).unwrap();
    assert_eq!(follower.update().unwrap().changed, Some(FileChange::Cut));
    let other = folder.path().join("other.swv");
    std::fs::write(&other, &built.bytes).unwrap();
    std::fs::rename(&other, &path).unwrap();
    assert_eq!(follower.update().unwrap().changed, Some(FileChange::Replaced));
    std::fs::write(&path, "ncalls  tottime").unwrap();
    assert!(Follower::open(&path).unwrap_err().to_string().contains("no recording"));
}

#[test]
fn losses_are_reported_when_they_are_written() {
    let mut built = RecordingBuilder::new(7, 0);
    built.steps(1, &[(1, 1)]);
    let source = GrowingFile::new();
    let mut follower = follow(&source);
    source.add(&built.bytes);
    follower.update().unwrap();
    assert_eq!(follower.processes()[0].missing().events_lost(), 0);
    let before = built.bytes.len();
    built.lost(LossReason::Full, 12);
    source.add(&built.bytes[before..]);
    let kept = follower.processes()[0].clone();
    follower.update().unwrap();
    assert_eq!((follower.processes()[0].missing().events_lost(), kept.missing().events_lost()), (12, 0));
}

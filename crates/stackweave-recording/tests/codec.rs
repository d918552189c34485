//! Every event in is every event out, whatever the kinds, the values, the cuts between chunks and the threads.
#![expect(clippy::unwrap_used, reason = "of tests only")]

mod common;

use std::collections::BTreeMap;

use common::{Process, Random, Told, random_event, random_kinds, read, stack_table, tell_events, tell_words};
use stackweave_core::{EventKind, RawFrame};
use stackweave_recording::file::{Encoded, Encoder, Start};

/// What each thread recorded, in order.
type Threads = BTreeMap<u32, Vec<Told>>;

/// A section with random kinds, threads and chunks.
fn random_section(seed: u64) -> (Vec<u8>, Threads) {
    let mut random = Random::new(seed);
    let stacks = stack_table();
    let process = Process { has_extra_frames: seed.is_multiple_of(2) };
    let mut encoder = Encoder::new(stacks);
    let mut file = Vec::new();
    encoder.start(&Start { pid: 7, ..Start::default() }, &mut file);
    let kinds = random_kinds(&mut random);
    for kind in &kinds {
        encoder.kind(kind).unwrap();
    }
    let mut threads = Threads::new();
    let mut ticks = 0;
    for _ in 0..random.below(12) {
        let thread = u32::try_from(random.below(3) + 1).unwrap();
        encoder.thread(thread, thread + 100, "worker");
        let mut words = Vec::new();
        for _ in 0..random.below(300) {
            random_event(&mut random, &kinds, stacks, &mut ticks, &mut words);
        }
        let told = tell_words(&words, &kinds, stacks, &process);
        let mut blocks = Encoded::default();
        let taken = encoder.events(thread, &words, &process, &mut blocks);
        assert_eq!((taken.words, taken.events), (words.len(), told.len() as u64));
        threads.entry(thread).or_default().extend(told);
        file.extend(blocks.definitions);
        file.extend(blocks.events);
        if random.below(3) == 0 {
            encoder.describe_pending(&process, &mut file);
        }
    }
    encoder.describe_pending(&process, &mut file);
    (file, threads)
}

#[test]
fn every_event_in_is_every_event_out() {
    for seed in 0..150 {
        let (file, recorded) = random_section(seed);
        let (dictionary, events) = read(&file).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let mut threads: Threads = recorded.keys().map(|thread| (*thread, Vec::new())).collect();
        for buffer in &events {
            assert_eq!(buffer.len(), buffer.iter().count());
            assert!(buffer.iter().all(|event| (buffer.first_ticks()..=buffer.last_ticks()).contains(&event.ticks)));
            threads.get_mut(&buffer.thread()).unwrap().extend(tell_events(buffer, &dictionary));
        }
        for (thread, told) in &recorded {
            for (place, (out, expected)) in threads[thread].iter().zip(told).enumerate() {
                assert_eq!(out, expected, "seed {seed}, thread {thread}, event {place}");
            }
            assert_eq!(threads[thread].len(), told.len(), "seed {seed}, thread {thread}");
            assert_eq!(dictionary.thread(*thread).map(|thread| thread.tid), Some(thread + 100));
        }
    }
}

#[test]
fn long_input_is_cut_into_blocks() {
    let stacks = stack_table();
    let mut encoder = Encoder::new(stacks);
    encoder.kind(&EventKind::FREE).unwrap();
    let words: Vec<u64> = (0..400_000_u64).flat_map(|event| [(event * 100) << 8 | 1, event << 4]).collect();
    let mut blocks = Encoded::default();
    assert_eq!(encoder.events(1, &words, &Process::default(), &mut blocks).events, 400_000);
    let (_, events) = read(&[blocks.definitions, blocks.events].concat()).unwrap();
    assert!(events.len() > 1);
    let read: Vec<u64> = events.iter().flatten().flat_map(|event| [event.ticks << 8 | 1, event.words[0]]).collect();
    assert!(read == words);
}

#[test]
fn words_that_are_no_events_end_the_block() {
    let stacks = stack_table();
    let process = Process::default();
    let mut encoder = Encoder::new(stacks);
    for kind in [EventKind::BEGIN, EventKind::INSTANT_WITH] {
        encoder.kind(&kind).unwrap();
    }
    let good = [5 << 8 | 1, RawFrame::script(1, 1).to_bits()];
    let garbage: [&[u64]; 7] =
        [&[0], &[3], &[1], &[2, 0, 0], &[2, 0, 0, 9, 0], &[2, 0, 0, u64::MAX, 0], &[2, 0, 0, 1 << 60]];
    for bad in garbage {
        let mut blocks = Encoded::default();
        let taken = encoder.events(1, &[&good, bad].concat(), &process, &mut blocks);
        assert_eq!((taken.events, taken.words), (1, 2), "{bad:x?}");
    }
    let mut random = Random::new(1);
    for _ in 0..3000 {
        let words: Vec<u64> = (0..random.below(20)).map(|_| random.word() & !0xfc).collect();
        let taken = encoder.events(1, &words, &process, &mut Encoded::default());
        assert!(taken.words <= words.len());
    }
}

#[test]
fn stacks_and_frames_that_nobody_knows_are_none() {
    let stacks = stack_table();
    let mut encoder = Encoder::new(stacks);
    encoder.kind(&EventKind::INSTANT).unwrap();
    for stack in [1, 2, 77, u64::from(u32::MAX), u64::MAX] {
        let mut blocks = Encoded::default();
        encoder.events(1, &[1, u64::MAX, stack], &Process::default(), &mut blocks);
        let file = [blocks.definitions, blocks.events].concat();
        let (_, events) = read(&file).unwrap();
        assert_eq!(events[0].iter().next().unwrap().words, [0, 0]);
    }
}

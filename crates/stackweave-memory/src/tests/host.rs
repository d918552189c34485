//! Blocks that a host tells of.

use super::recorded::{Seen, record};
use crate::{HostBlock, MemoryOptions, Mode, Quiet, host_allocate, host_free, host_segment, host_segment_free};

fn block(address: u64, device: i64) -> HostBlock {
    HostBlock { address, size: 512, device, stream: 7, pool: 3 }
}

fn of_host(seen: &[Seen]) -> Vec<(&str, Vec<u64>)> {
    let is_of_host = |event: &&Seen| event.kind.starts_with("host") || event.kind.starts_with("segment");
    let without_stack = |event: &Seen| {
        let stack = if event.kind == "host-free" { 1 } else { 2 };
        event.words.iter().enumerate().filter(|(at, _)| *at != stack).map(|(_, word)| *word).collect()
    };
    seen.iter().filter(is_of_host).map(|event| (&*event.kind, without_stack(event))).collect()
}

#[test]
fn every_word_of_a_host_is_told() {
    let seen = record(MemoryOptions::default(), |_| {
        host_segment(block(0x1000, 2));
        host_allocate(block(0x1000, 2));
        host_free(0x1000, 2, 7);
        host_segment_free(block(0x1000, 2));
        let _quiet = Quiet::begin();
        host_allocate(block(0x2000, 2));
    });
    let expected = [
        ("segment", vec![0x1000, 512, 2, 7, 3]),
        ("host-allocate", vec![0x1000, 512, 2, 7, 3]),
        ("host-free", vec![0x1000, 2, 7]),
        ("segment-free", vec![0x1000, 512, 2, 7]),
    ];
    assert_eq!(of_host(&seen), expected);
    let taken = seen.iter().find(|event| event.kind == "host-allocate").unwrap();
    assert!(taken.frames.len() > 3);
    host_allocate(block(0x3000, 2));
    host_free(0x3000, 2, 7);
}

#[test]
fn of_samples_each_device_has_its_own() {
    let options = MemoryOptions { mode: Mode::Sampled { every: 1 }, depth: 0, ..MemoryOptions::default() };
    let seen = record(options, |_| {
        host_allocate(block(0x5000, 0));
        host_free(0x5000, 1, 7);
        host_free(0x5000, 0, 7);
        host_free(0x5000, 0, 7);
    });
    let kinds: Vec<_> = of_host(&seen).iter().map(|(kind, words)| ((*kind).to_owned(), words[1])).collect();
    assert_eq!(kinds, [("host-allocate".to_owned(), 512), ("host-free".to_owned(), 0)]);
}

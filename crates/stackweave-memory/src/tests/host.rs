//! Events of hosts.

use std::hint::black_box;
use std::sync::Arc;

use stackweave_capture::register_source;
use stackweave_core::{FrameSource, RawFrame, SourceKind, SourceLocation, SourceWalk, SourceWalkResult};

use super::recorded::{RecordedEvent, Running, record};
use crate::{HostBlock, HostEventKind, MemoryMode, MemoryOptions, SuppressGuard, record_host_event};

fn block(address: u64, device: i64) -> HostBlock {
    HostBlock { address, size: 512, device, stream: 7, pool: 3, requested: 500, flags: 3 }
}

fn record_event(kind: HostEventKind, address: u64, device: i64) {
    record_host_event(kind, &block(address, device), None);
}

/// Returns the events of hosts: kind and words, without the stack.
fn of_host(seen: &[RecordedEvent]) -> Vec<(&str, Vec<u64>)> {
    let is_of_host =
        |event: &&RecordedEvent| ["host", "segment", "block"].iter().any(|of_host| event.kind.starts_with(of_host));
    let without_stack = |event: &RecordedEvent| {
        let stack = match &*event.kind {
            "host-state" => usize::MAX,
            _ => 2,
        };
        event.words.iter().enumerate().filter(|(at, _)| *at != stack).map(|(_, word)| *word).collect()
    };
    seen.iter().filter(is_of_host).map(|event| (&*event.kind, without_stack(event))).collect()
}

#[test]
fn every_event_of_a_block_is_recorded_with_its_words() {
    let seen = record(MemoryOptions::default(), |_| {
        for event in HostEventKind::ALL.into_iter().take(HostEventKind::OF_BLOCKS) {
            record_event(event, 0x1000, 2);
        }
        let _suppress = SuppressGuard::begin();
        record_event(HostEventKind::Allocate, 0x2000, 2);
    });
    let words = vec![0x1000, 512, 2, 7, 3];
    let expected: Vec<_> = [
        "host-allocate",
        "host-free",
        "segment",
        "segment-free",
        "host-present",
        "host-free-requested",
        "host-free-completed",
        "segment-present",
        "segment-map",
        "segment-unmap",
    ]
    .map(|kind| (kind, words.clone()))
    .into();
    assert_eq!(of_host(&seen), expected);
    let allocated = seen.iter().find(|event| event.kind == "host-allocate").unwrap();
    assert!(allocated.frames.len() > 3);
    let present = seen.iter().find(|event| event.kind == "host-present").unwrap();
    assert!(present.words[2] != 0 && present.frames.is_empty(), "a label");
    record_event(HostEventKind::Allocate, 0x3000, 2);
}

#[test]
fn a_snapshot_has_the_stacks_of_live_blocks() {
    let running = Running::start_observed(MemoryOptions { own_memory: false, ..MemoryOptions::default() });
    record_event(HostEventKind::Allocate, 0x1000, 0);
    record_event(HostEventKind::Allocate, 0x1000, 1);
    record_event(HostEventKind::FreeRequested, 0x1000, 1);
    let free = HostBlock { flags: 0, ..block(0x2000, 0) };
    let reason = HostBlock { flags: 1, ..HostBlock::default() };
    record_host_event(HostEventKind::StateBegin, &reason, None);
    record_event(HostEventKind::SegmentState, 0x1000, 0);
    record_event(HostEventKind::BlockState, 0x1000, 0);
    record_host_event(HostEventKind::BlockState, &free, None);
    record_event(HostEventKind::BlockState, 0x1000, 1);
    record_host_event(HostEventKind::StateEnd, &reason, None);
    record_event(HostEventKind::BlockState, 0x1000, 0);
    let seen = running.stop();
    let expected = [
        ("host-state", vec![1, 1]),
        ("segment-state", vec![0x1000, 512, 0, 7, 3, 3]),
        ("block-state", vec![0x1000, 512, 0, 7, 3, 500, 3]),
        ("block-state", vec![0x2000, 512, 0, 7, 3, 500, 0]),
        ("block-state", vec![0x1000, 512, 1, 7, 3, 500, 3]),
        ("host-state", vec![2, 1]),
        ("block-state", vec![0x1000, 512, 0, 7, 3, 500, 3]),
    ];
    assert_eq!(of_host(&seen)[3..], expected);
    let allocated = seen.iter().find(|event| event.kind == "host-allocate").unwrap();
    let stacks: Vec<_> = seen.iter().filter(|event| event.kind == "block-state").map(|event| &event.frames).collect();
    assert_eq!(stacks[0], &allocated.frames);
    assert!(stacks[1..].iter().all(|frames| frames.is_empty()));
}

#[test]
fn rare_events_are_recorded_with_their_labels() {
    let seen = record(MemoryOptions::default(), |_| {
        record_event(HostEventKind::Snapshot, 0, 1);
        record_event(HostEventKind::OutOfMemory, 0x77, 1);
        record_host_event(HostEventKind::Annotate, &block(0x1000, 1), Some("weights"));
        for tag in [Some("step"), Some("step"), None] {
            record_host_event(HostEventKind::Tag, &HostBlock::default(), tag);
        }
    });
    let kinds: Vec<_> = of_host(&seen).into_iter().map(|(kind, words)| (kind, words[1..].to_vec())).collect();
    let expected = [
        ("host-snapshot", vec![512, 1]),
        ("host-out-of-memory", vec![512, 1, 7, 3, 0x77]),
        ("host-annotate", vec![0x1000, 1]),
    ];
    assert_eq!(kinds, expected);
    let named: Vec<_> =
        seen.iter().filter(|event| event.kind == "memory-tag").map(|event| event.words[0] != 0).collect();
    assert_eq!(named, [true, false]);
}

#[inline(never)]
fn request() {
    record_event(HostEventKind::FreeRequested, black_box(0x1000), 0);
    black_box(());
}

#[inline(never)]
fn complete() {
    record_event(HostEventKind::FreeCompleted, black_box(0x1000), 0);
    black_box(());
}

#[test]
fn a_free_that_completes_at_once_has_the_stack_of_its_request() {
    let options = MemoryOptions { free_stacks: true, own_memory: false, ..MemoryOptions::default() };
    let seen = record(options, |_| {
        request();
        complete();
        complete();
    });
    let stacks: Vec<_> =
        seen.iter().filter(|event| event.kind.starts_with("host")).map(|event| &event.frames).collect();
    assert!(stacks.iter().all(|frames| frames.len() > 3));
    assert_eq!(stacks[0], stacks[1]);
    assert_ne!(stacks[1], stacks[2], "the second completion does not belong to that request");
    assert!(seen.iter().all(|event| event.kind.starts_with("host") || event.kind.starts_with("memory")));
}

#[test]
fn sampled_blocks_of_devices_are_distinguished_by_device() {
    let options = MemoryOptions { mode: MemoryMode::Sampled { every: 1 }, depth: 0, ..MemoryOptions::default() };
    let seen = record(options, |_| {
        record_event(HostEventKind::Present, 0x5000, 0);
        record_event(HostEventKind::Free, 0x5000, 1);
        record_event(HostEventKind::Free, 0x5000, 0);
        record_event(HostEventKind::Free, 0x5000, 0);
        record_event(HostEventKind::Present, 0x6000, 1);
        record_event(HostEventKind::FreeRequested, 0x6000, 1);
        record_event(HostEventKind::FreeCompleted, 0x6000, 1);
    });
    let kinds: Vec<_> = of_host(&seen).iter().map(|(kind, words)| (*kind, words[2])).collect();
    assert_eq!(kinds, [("host-present", 0), ("host-free", 0), ("host-present", 1), ("host-free", 1)]);
}

#[test]
fn only_frees_are_recorded_while_paused() {
    let seen = record(MemoryOptions::default(), |memory| {
        memory.pause();
        for event in HostEventKind::ALL.into_iter().take(HostEventKind::OF_BLOCKS) {
            record_event(event, 0x1000, 0);
        }
    });
    let kinds: Vec<_> = of_host(&seen).into_iter().map(|(kind, _)| kind).collect();
    let expected = ["host-free", "segment-free", "host-free-requested", "host-free-completed", "segment-unmap"];
    assert_eq!(kinds, expected);
}

#[test]
fn snapshots_of_two_threads_are_independent() {
    let running = Running::start_observed(MemoryOptions { own_memory: false, ..MemoryOptions::default() });
    record_event(HostEventKind::Allocate, 0x1000, 0);
    record_event(HostEventKind::StateBegin, 0, 0);
    let other = std::thread::spawn(|| {
        record_event(HostEventKind::BlockState, 0x1000, 0);
        record_event(HostEventKind::StateBegin, 0, 0);
        record_event(HostEventKind::StateEnd, 0, 0);
    });
    assert!(other.join().is_ok());
    record_event(HostEventKind::BlockState, 0x1000, 0);
    let seen = running.stop();
    let stacks = |kind: &str| -> Vec<_> {
        seen.iter().filter(|event| event.kind == kind).map(|event| event.frames.clone()).collect()
    };
    let (allocated, reported) = (stacks("host-allocate"), stacks("block-state"));
    assert!(reported.len() == 2 && reported.contains(&allocated[0]), "{reported:?}");
    assert!(reported.contains(&Vec::new()), "the other thread has begun no snapshot: {reported:?}");
}

/// A frame source that changes `errno`, as any called code may.
struct ErrnoChanger;

impl FrameSource for ErrnoChanger {
    fn kind(&self) -> SourceKind {
        SourceKind::Script
    }

    fn walk(&self, _walk: SourceWalk<'_>) -> SourceWalkResult {
        // SAFETY: this thread's own.
        unsafe { *libc::__errno_location() = libc::EAGAIN };
        SourceWalkResult::default()
    }

    fn locate(&self, _frame: RawFrame) -> Option<SourceLocation> {
        None
    }
}

#[test]
fn errno_is_preserved() {
    record(MemoryOptions { free_stacks: true, ..MemoryOptions::default() }, |_| {
        let _source = register_source(Arc::new(ErrnoChanger)).unwrap();
        for event in HostEventKind::ALL {
            // SAFETY: this thread's own.
            let errno = unsafe {
                *libc::__errno_location() = 77;
                record_host_event(event, &block(0x1000, 0), Some("a text"));
                *libc::__errno_location()
            };
            assert_eq!(errno, 77, "{event:?}");
        }
    });
}

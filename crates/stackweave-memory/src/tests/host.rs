//! What a host tells.

use std::hint::black_box;
use std::sync::Arc;

use stackweave_capture::register_source;
use stackweave_core::{FrameSource, RawFrame, SourceKind, SourceLocation, SourceWalk, SourceWalked};

use super::recorded::{Running, Seen, record};
use crate::{HostBlock, HostEvent, MemoryOptions, Mode, Quiet, tell_host};

fn block(address: u64, device: i64) -> HostBlock {
    HostBlock { address, size: 512, device, stream: 7, pool: 3, asked: 500, flags: 3 }
}

fn tell(event: HostEvent, address: u64, device: i64) {
    tell_host(event, &block(address, device), None);
}

/// The events of hosts, by kind and words but for the stack.
fn of_host(seen: &[Seen]) -> Vec<(&str, Vec<u64>)> {
    let is_of_host = |event: &&Seen| ["host", "segment", "block"].iter().any(|of_host| event.kind.starts_with(of_host));
    let without_stack = |event: &Seen| {
        let stack = match &*event.kind {
            "host-state" => usize::MAX,
            _ => 2,
        };
        event.words.iter().enumerate().filter(|(at, _)| *at != stack).map(|(_, word)| *word).collect()
    };
    seen.iter().filter(is_of_host).map(|event| (&*event.kind, without_stack(event))).collect()
}

#[test]
fn every_word_of_a_host_is_told() {
    let seen = record(MemoryOptions::default(), |_| {
        for event in HostEvent::ALL.into_iter().take(HostEvent::OF_BLOCKS) {
            tell(event, 0x1000, 2);
        }
        let _quiet = Quiet::begin();
        tell(HostEvent::Allocate, 0x2000, 2);
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
    let taken = seen.iter().find(|event| event.kind == "host-allocate").unwrap();
    assert!(taken.frames.len() > 3);
    let present = seen.iter().find(|event| event.kind == "host-present").unwrap();
    assert!(present.words[2] != 0 && present.frames.is_empty(), "a label");
    tell(HostEvent::Allocate, 0x3000, 2);
}

#[test]
fn an_account_has_the_stacks_of_live_blocks() {
    let running = Running::start_observed(MemoryOptions { own_memory: false, ..MemoryOptions::default() });
    tell(HostEvent::Allocate, 0x1000, 0);
    tell(HostEvent::Allocate, 0x1000, 1);
    tell(HostEvent::FreeRequested, 0x1000, 1);
    let free = HostBlock { flags: 0, ..block(0x2000, 0) };
    let reason = HostBlock { flags: 1, ..HostBlock::default() };
    tell_host(HostEvent::StateBegin, &reason, None);
    tell(HostEvent::SegmentState, 0x1000, 0);
    tell(HostEvent::BlockState, 0x1000, 0);
    tell_host(HostEvent::BlockState, &free, None);
    tell(HostEvent::BlockState, 0x1000, 1);
    tell_host(HostEvent::StateEnd, &reason, None);
    tell(HostEvent::BlockState, 0x1000, 0);
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
    let taken = seen.iter().find(|event| event.kind == "host-allocate").unwrap();
    let stacks: Vec<_> = seen.iter().filter(|event| event.kind == "block-state").map(|event| &event.frames).collect();
    assert_eq!(stacks[0], &taken.frames);
    assert!(stacks[1..].iter().all(|frames| frames.is_empty()));
}

#[test]
fn what_happens_rarely_is_told_by_its_name() {
    let seen = record(MemoryOptions::default(), |_| {
        tell(HostEvent::Snapshot, 0, 1);
        tell(HostEvent::OutOfMemory, 0x77, 1);
        tell_host(HostEvent::Annotate, &block(0x1000, 1), Some("weights"));
        for tag in [Some("step"), Some("step"), None] {
            tell_host(HostEvent::Tag, &HostBlock::default(), tag);
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
    tell(HostEvent::FreeRequested, black_box(0x1000), 0);
    black_box(());
}

#[inline(never)]
fn complete() {
    tell(HostEvent::FreeCompleted, black_box(0x1000), 0);
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
    assert_ne!(stacks[1], stacks[2], "the second one is not of that request");
    assert!(seen.iter().all(|event| event.kind.starts_with("host") || event.kind.starts_with("memory")));
}

#[test]
fn of_samples_each_device_has_its_own() {
    let options = MemoryOptions { mode: Mode::Sampled { every: 1 }, depth: 0, ..MemoryOptions::default() };
    let seen = record(options, |_| {
        tell(HostEvent::Present, 0x5000, 0);
        tell(HostEvent::Free, 0x5000, 1);
        tell(HostEvent::Free, 0x5000, 0);
        tell(HostEvent::Free, 0x5000, 0);
        tell(HostEvent::Present, 0x6000, 1);
        tell(HostEvent::FreeRequested, 0x6000, 1);
        tell(HostEvent::FreeCompleted, 0x6000, 1);
    });
    let kinds: Vec<_> = of_host(&seen).iter().map(|(kind, words)| (*kind, words[2])).collect();
    assert_eq!(kinds, [("host-present", 0), ("host-free", 0), ("host-present", 1), ("host-free", 1)]);
}

#[test]
fn while_paused_only_what_goes_away_is_told() {
    let seen = record(MemoryOptions::default(), |memory| {
        memory.pause();
        for event in HostEvent::ALL.into_iter().take(HostEvent::OF_BLOCKS) {
            tell(event, 0x1000, 0);
        }
    });
    let kinds: Vec<_> = of_host(&seen).into_iter().map(|(kind, _)| kind).collect();
    let expected = ["host-free", "segment-free", "host-free-requested", "host-free-completed", "segment-unmap"];
    assert_eq!(kinds, expected);
}

#[test]
fn accounts_of_two_threads_do_not_end_each_other() {
    let running = Running::start_observed(MemoryOptions { own_memory: false, ..MemoryOptions::default() });
    tell(HostEvent::Allocate, 0x1000, 0);
    tell(HostEvent::StateBegin, 0, 0);
    let other = std::thread::spawn(|| {
        tell(HostEvent::BlockState, 0x1000, 0);
        tell(HostEvent::StateBegin, 0, 0);
        tell(HostEvent::StateEnd, 0, 0);
    });
    assert!(other.join().is_ok());
    tell(HostEvent::BlockState, 0x1000, 0);
    let seen = running.stop();
    let stacks = |kind: &str| -> Vec<_> {
        seen.iter().filter(|event| event.kind == kind).map(|event| event.frames.clone()).collect()
    };
    let (taken, told) = (stacks("host-allocate"), stacks("block-state"));
    assert!(told.len() == 2 && told.contains(&taken[0]), "{told:?}");
    assert!(told.contains(&Vec::new()), "nobody has begun an account there: {told:?}");
}

/// A source of frames that spoils `errno`, as anything may that is called.
struct Spoiler;

impl FrameSource for Spoiler {
    fn kind(&self) -> SourceKind {
        SourceKind::Script
    }

    fn walk(&self, _walk: SourceWalk<'_>) -> SourceWalked {
        // SAFETY: this thread's own.
        unsafe { *libc::__errno_location() = libc::EAGAIN };
        SourceWalked::default()
    }

    fn locate(&self, _frame: RawFrame) -> Option<SourceLocation> {
        None
    }
}

#[test]
fn errno_stays_as_it_was() {
    record(MemoryOptions { free_stacks: true, ..MemoryOptions::default() }, |_| {
        let _source = register_source(Arc::new(Spoiler)).unwrap();
        for event in HostEvent::ALL {
            // SAFETY: this thread's own.
            let errno = unsafe {
                *libc::__errno_location() = 77;
                tell_host(event, &block(0x1000, 0), Some("words of its own"));
                *libc::__errno_location()
            };
            assert_eq!(errno, 77, "{event:?}");
        }
    });
}

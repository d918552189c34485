//! The figures of a whole recording are read without its history.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use stackweave_core::EventKind;
use stackweave_profile::memory::{MemoryQuery, read_report, read_timeline, read_usage};
use stackweave_profile::{AggregateOptions, Measure, aggregate};
use stackweave_recording::Recording;
use stackweave_recording::events::Allocator;
use stackweave_recording::read::RecordingSource;
use stackweave_tapes::memory::{MemoryStep, MemoryTape};
use stackweave_tapes::span;

/// A file that counts the bytes that are read.
#[derive(Debug)]
struct CountingSource {
    bytes: Arc<[u8]>,
    read: AtomicU64,
}

impl RecordingSource for CountingSource {
    fn size(&self) -> io::Result<u64> {
        self.bytes.size()
    }

    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.bytes.read_at(at, buffer)?;
        self.read.fetch_add(length as u64, Ordering::Relaxed);
        Ok(length)
    }
}

const ROUNDS: u64 = 20_000;

fn bytes() -> Vec<u8> {
    let mut tape = MemoryTape::new();
    for round in 0..ROUNDS {
        let address = 0x1000 + (round * 7919 % 4096) * 16;
        let stack = vec![span("grow"), span("main")];
        tape.step(
            1,
            round * 10,
            &MemoryStep::Allocate { address, size: 1 + round * 31 % 977, stack, by: Allocator::Malloc },
        );
        tape.step(1, round * 10 + 5, &MemoryStep::Free { address: 0x1000 + (round * 104_729 % 4096) * 16 });
        if round % 2_000 == 0 {
            tape.tape.flush(1);
            tape.curve(round * 10, 1.0, 2.0);
        }
    }
    tape.snapshot(1, false);
    tape.tape.bytes()
}

#[test]
fn the_history_is_not_read_if_a_snapshot_has_the_figures() {
    let counted = Arc::new(CountingSource { bytes: bytes().into(), read: AtomicU64::new(0) });
    let source: Arc<dyn RecordingSource> = Arc::<CountingSource>::clone(&counted);
    let recording = Recording::from_source(&source, Path::new("made-up.swv")).unwrap();
    let processes = recording.processes();
    let read_by = |work: &dyn Fn()| {
        let before = counted.read.load(Ordering::Relaxed);
        work();
        counted.read.load(Ordering::Relaxed) - before
    };
    let query = MemoryQuery::default();
    let usage = read_by(&|| {
        let usage = read_usage(&processes[0], &query, &mut |_| {}).unwrap();
        let totals = usage.device(EventKind::OWN_DEVICE).unwrap().totals;
        assert_eq!(totals.figures.allocations, ROUNDS);
    });
    let report = read_by(&|| assert!(!read_report(processes, &query, None, &mut |_| {}).unwrap().is_empty()));
    let curve = read_by(&|| assert_eq!(read_timeline(&processes[0], None, &mut |_| {}).unwrap().points.len(), 10));
    let profile = read_by(&|| {
        let options = AggregateOptions { measure: Some(Measure::LiveBytes), ..AggregateOptions::default() };
        assert!(aggregate(processes, &options, None, &mut |_| {}).unwrap().merged().total() > 0);
    });
    let replay = read_by(&|| {
        let query = MemoryQuery { range: Some(1..u64::MAX), ..MemoryQuery::default() };
        drop(read_usage(&processes[0], &query, &mut |_| {}).unwrap());
    });
    println!(
        "{} bytes: usage {usage}, report {report}, curve {curve}, profile {profile}, replay {replay}",
        counted.bytes.len()
    );
    assert!(replay > 10_000, "{replay}");
    assert!([usage, report, curve, profile].iter().all(|read| *read > 0 && read * 10 < replay));
}

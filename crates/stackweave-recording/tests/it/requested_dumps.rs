//! An observer can request that everything is written immediately, without the help of other threads.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use stackweave_core::{EventKind, NoNames};
use stackweave_recording::live::{KindNumber, Recorder, RecorderOptions, RingLimits};
use stackweave_recording::{MakeObserver, Notes, Observer};
use stackweave_testkit::folder::Folder;

use crate::recorded::{ReadBack, STACKS, mark};

const SHORT: Duration = Duration::from_millis(1);
const NEVER: Duration = Duration::from_secs(3600);

#[derive(Default)]
struct DumpRequests {
    is_due: AtomicBool,
    dumps: AtomicU64,
}

/// Requests a dump when one is due, and notes its number.
struct RequestingObserver(Arc<DumpRequests>, Option<KindNumber>);

impl Observer for RequestingObserver {
    fn kind(&mut self, number: KindNumber, kind: &EventKind) {
        if kind.name == "mark" {
            self.1 = Some(number);
        }
    }

    fn events(&mut self, _: u32, _: &[u64]) {}

    fn settle(&mut self, _: u64, notes: &mut Notes) {
        if self.0.is_due.swap(false, Ordering::SeqCst) {
            notes.request_dump();
        }
    }

    fn dump(&mut self, ticks: u64, notes: &mut Notes) {
        notes.record_at(ticks, self.1.unwrap(), &[9, self.0.dumps.fetch_add(1, Ordering::SeqCst)]);
    }

    fn end(&mut self, _: u64, _: &mut Notes) {}

    fn interval(&self) -> Duration {
        SHORT
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

fn start(options: RecorderOptions) -> (Recorder, KindNumber, Arc<DumpRequests>) {
    let requests = Arc::<DumpRequests>::default();
    let shared = Arc::clone(&requests);
    let make: MakeObserver = Arc::new(move || Box::new(RequestingObserver(Arc::clone(&shared), None)));
    let recorder = Recorder::start_observed(options, &STACKS, Arc::new(NoNames), Some(make)).unwrap();
    let kind = mark(&recorder);
    (recorder, kind, requests)
}

#[test]
fn a_ring_is_written_when_the_observer_requests_it() {
    let folder = Folder::new();
    let ring = Some(RingLimits { bytes: Some(100_000), seconds: None });
    let options = RecorderOptions { ring, flush_every: NEVER, ..RecorderOptions::new(folder.file("out.swv")) };
    let (recorder, kind, requests) = start(options);
    recorder.record(kind, &[1, 0]);
    for dump in 0..2 {
        recorder.record(kind, &[1, dump + 1]);
        requests.is_due.store(true, Ordering::SeqCst);
        // The file gets its name when it is complete.
        let expected = (1 + dump, vec![dump]);
        while !folder.file("out.swv").exists() || {
            let marks = ReadBack::whole(&folder.file("out.swv")).marks();
            (marks[&1].last().copied().unwrap(), marks[&9].clone()) != expected
        } {
            thread::sleep(SHORT);
        }
    }
    recorder.stop();
}

#[test]
fn recorded_events_are_in_the_file_when_the_observer_requests_it() {
    let folder = Folder::new();
    let (recorder, kind, requests) =
        start(RecorderOptions { flush_every: NEVER, ..RecorderOptions::new(folder.file("out.swv")) });
    recorder.record(kind, &[1, 0]);
    assert_eq!(recorder.stats().events, 0);
    requests.is_due.store(true, Ordering::SeqCst);
    while recorder.stats().events < 2 {
        thread::sleep(SHORT);
    }
    assert_eq!(requests.dumps.load(Ordering::SeqCst), 1);
    let summary = recorder.stop();
    let marks = ReadBack::whole(&summary.path).marks();
    assert_eq!((&marks[&1][..], &marks[&9][..]), (&[0][..], &[0][..]));
}

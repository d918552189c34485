//! An observer receives every event, once and in order, and never blocks the recording.

use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use stackweave_core::{EventKind, Field, FieldType, NoNames, Role};
use stackweave_recording::events;
use stackweave_recording::live::{
    KindNumber, NeverBlock, Recorder, RecorderOptions, RingLimits, Summary, never_block_while, set_waiter,
};
use stackweave_recording::{MakeObserver, Notes, Observer};
use stackweave_testkit::child;
use stackweave_testkit::folder::Folder;

use crate::checking_observer::{CheckingObserver, Received, last_of, make_checking_observer, start_checked};
use crate::recorded::{ReadBack, STACKS, mark};

const SHORT: Duration = Duration::from_millis(2);
const CHUNK: usize = 64 * 1024;
/// Fills several buffers.
const MANY: u64 = 60_000;

/// Registers an event with a producer, an index, and the time after the producer recorded the previous event.
fn step(recorder: &Recorder) -> KindNumber {
    let field = |name| Field::new(name, FieldType::Unsigned);
    let fields = vec![field("producer"), field("index"), field("before")];
    recorder.register(EventKind { name: "step".into(), role: Role::Instant, fields: fields.into() }).unwrap()
}

#[test]
fn every_event_is_received_once_and_before_it_is_settled() {
    let folder = Folder::new();
    // Few buffers, so that chunks are handed over all the time.
    let options =
        RecorderOptions { memory: 3 * CHUNK, flush_every: SHORT, ..RecorderOptions::new(folder.file("out.swv")) };
    let (recorder, received) = start_checked(options);
    let kind = step(&recorder).fixed::<3>().unwrap();
    thread::scope(|scope| {
        for producer in 0..5_u64 {
            let recorder = &recorder;
            scope.spawn(move || {
                let mut before = 0;
                for index in 0..MANY {
                    recorder.record_fixed(kind, [producer, index, before]);
                    fence(Ordering::SeqCst);
                    before = recorder.ticks_now();
                }
            });
        }
    });
    assert_eq!(last_of(&recorder, 4), Some(MANY - 1));
    let summary = recorder.stop();
    assert_eq!((summary.events, &summary.error), (5 * MANY, &None));
    let received = received.lock().unwrap();
    assert_eq!((received.events, received.ended, &*received.wrong), (5 * MANY, true, &[][..]));
    assert!((0..5).all(|producer| received.next[&producer] == MANY));
    assert!(received.settled > 1);
}

#[test]
fn events_of_a_slow_thread_are_received_at_the_requested_interval() {
    let folder = Folder::new();
    let never = Duration::from_secs(3600);
    let (recorder, received) =
        start_checked(RecorderOptions { flush_every: never, ..RecorderOptions::new(folder.file("out.swv")) });
    let kind = step(&recorder);
    recorder.record(kind, &[0, 0, 0]);
    while received.lock().unwrap().events == 0 {
        thread::sleep(SHORT);
    }
    assert_eq!(recorder.stats().events, 0, "a buffer that is not full is not written for the observer");
    recorder.record(kind, &[0, 1, 0]);
    recorder.record_for_thread(u32::MAX, &[(recorder.ticks_now(), kind, [7, 0, 0])]);
    let summary = recorder.stop();
    assert_eq!((summary.events, received.lock().unwrap().events), (3, 3));
    let read = ReadBack::whole(&summary.path);
    let index: Vec<u64> = read.events[&1].iter().map(|event| event.words[1]).collect();
    assert_eq!(index, [0, 1]);
}

#[test]
fn a_query_sees_all_events_recorded_before_it() {
    let folder = Folder::new();
    let (recorder, _) = start_checked(RecorderOptions::new(folder.file("out.swv")));
    let kind = step(&recorder);
    for index in 0..200 {
        recorder.record(kind, &[3, index, 0]);
        assert_eq!(last_of(&recorder, 3), Some(index));
    }
    assert_eq!(recorder.query_observer(|_| panic!("a query that panics")), None::<()>);
    recorder.record(kind, &[3, 200, 0]);
    let summary = recorder.stop();
    assert_eq!(summary.error, None);
    assert_eq!(last_of(&recorder, 3), Some(200), "the observer still exists");
    assert_eq!(recorder.query_observer_with_notes(|_, _| ()), None, "the file is closed");
    drop(recorder);
    let plain = crate::recorded::start(RecorderOptions::new(folder.file("plain.swv")));
    assert_eq!(plain.query_observer(|_| ()), None);
    plain.stop();
    assert_eq!(plain.query_observer(|_| ()), None);
}

#[test]
fn the_observer_is_dropped_with_the_recorder_although_threads_have_lanes() {
    struct ReferenceObserver(Arc<()>);
    impl Observer for ReferenceObserver {
        fn events(&mut self, _: u32, _: &[u64]) {}
        fn settle(&mut self, _: u64, _: &mut Notes) {}
        fn end(&mut self, _: u64, _: &mut Notes) {}
        fn interval(&self) -> Duration {
            SHORT
        }
        fn as_any(&mut self) -> &mut dyn std::any::Any {
            &mut self.0
        }
    }
    let folder = Folder::new();
    let alive = Arc::new(());
    let make: MakeObserver = {
        let alive = Arc::downgrade(&alive);
        Arc::new(move || Box::new(ReferenceObserver(alive.upgrade().unwrap())))
    };
    let options = RecorderOptions::new(folder.file("out.swv"));
    let recorder = Recorder::start_observed(options, &STACKS, Arc::new(NoNames), Some(make)).unwrap();
    recorder.record(mark(&recorder), &[0, 0]);
    recorder.stop();
    assert_eq!(Arc::strong_count(&alive), 2);
    drop(recorder);
    assert_eq!(Arc::strong_count(&alive), 1);
}

#[test]
fn notes_are_events_of_a_separate_thread() {
    let folder = Folder::new();
    let (recorder, received) = start_checked(RecorderOptions::new(folder.file("out.swv")));
    let (kind, note) = (step(&recorder), mark(&recorder));
    received.lock().unwrap().note_at_end = Some(note);
    recorder.record(kind, &[0, 0, 0]);
    let ticks = recorder.ticks_now();
    let noted = recorder.query_observer_with_notes(move |_, notes| {
        notes.record_at(ticks, note, &[1, 10]);
        notes.record_at(ticks, note, &[1]);
        notes.record_at(ticks, note, &[1, 11]);
    });
    assert_eq!(noted, Some(()));
    let read = ReadBack::bytes(&std::fs::read(recorder.path()).unwrap());
    assert_eq!(read.marks()[&1], [10, 11], "the notes are in the file when the query returns");
    let summary = recorder.stop();
    let read = ReadBack::whole(&summary.path);
    assert_eq!((summary.events, read.end.unwrap().events), (4, 4));
    assert_eq!((&read.marks()[&1], &read.marks()[&2]), (&vec![10, 11], &vec![0]));
    let threads: Vec<&str> = read.dictionary.threads().map(|thread| &*thread.name).collect();
    assert_eq!(threads[1..], ["stackweave"]);
    let known: Vec<_> = recorder.threads().into_iter().map(|thread| (thread.number, thread.name)).collect();
    let read: Vec<_> = read.dictionary.threads().map(|thread| (thread.number, thread.name.clone())).collect();
    assert_eq!(known, read);
    assert_eq!(received.lock().unwrap().events, 1, "an observer does not receive its own notes");
}

#[test]
fn observer_only_kinds_are_received_and_not_written() {
    let folder = Folder::new();
    let (recorder, received) = start_checked(RecorderOptions::new(folder.file("out.swv")));
    let field = |name| Field::new(name, FieldType::Unsigned);
    let fields = vec![field("producer"), field("index"), field("before")];
    let kind = EventKind { name: "step".into(), role: Role::Instant, fields: fields.into() };
    let observer_only = recorder.register_observer_only(kind.clone()).unwrap();
    let mark = mark(&recorder);
    received.lock().unwrap().mark = Some(mark);
    assert_eq!(recorder.register_observer_only(kind.clone()), Some(observer_only));
    assert_ne!(recorder.register(kind), Some(observer_only), "a written kind is distinct");
    for index in 0..MANY {
        recorder.record(observer_only, &[0, index, 0]);
        if index % 1_000 == 0 {
            recorder.record(mark, &[0, index / 1_000]);
        }
    }
    let summary = recorder.stop();
    assert_eq!((summary.events, summary.lost.len(), summary.error), (MANY / 1_000, 0, None));
    assert_eq!(received.lock().unwrap().next[&0], MANY);
    let read = ReadBack::whole(&summary.path);
    assert_eq!((read.marks()[&0].len() as u64, read.count()), (MANY / 1_000, MANY / 1_000));
    assert_eq!(read.dictionary.kind(observer_only.get()), None);
    assert!(read.dictionary.kind(mark.get()).is_some_and(|kind| kind.name == "mark"));
    assert!(summary.bytes_written < 20_000, "{}", summary.bytes_written);
}

#[test]
fn a_failing_observer_does_not_end_the_recording() {
    struct FailingObserver(&'static str);
    impl FailingObserver {
        fn fail_in(&self, call: &str) {
            assert!(self.0 != call, "a test of failures");
        }
    }
    impl Observer for FailingObserver {
        fn events(&mut self, _: u32, _: &[u64]) {
            self.fail_in("events");
        }
        fn settle(&mut self, _: u64, _: &mut Notes) {
            self.fail_in("settle");
        }
        fn end(&mut self, _: u64, _: &mut Notes) {
            self.fail_in("end");
        }
        fn interval(&self) -> Duration {
            self.fail_in("interval");
            SHORT
        }
        fn as_any(&mut self) -> &mut dyn std::any::Any {
            self
        }
    }
    let folder = Folder::new();
    for call in ["make", "events", "settle", "end", "interval"] {
        let make: MakeObserver = Arc::new(move || {
            assert!(call != "make", "a test of failures");
            Box::new(FailingObserver(call))
        });
        let options =
            RecorderOptions { flush_every: SHORT, ..RecorderOptions::new(folder.file(&format!("{call}.swv"))) };
        let recorder = Recorder::start_observed(options, &STACKS, Arc::new(NoNames), Some(make)).unwrap();
        let mark = mark(&recorder);
        (0..MANY).for_each(|index| recorder.record(mark, &[0, index]));
        recorder.flush().unwrap();
        assert_eq!(recorder.query_observer(|_| ()).is_some(), call == "end", "{call}");
        let Summary { events, error, path, .. } = recorder.stop();
        assert_eq!((events, ReadBack::whole(&path).marks()[&0].len() as u64), (MANY, MANY), "{call}");
        assert_eq!(error.as_deref(), Some("the observer of the recording failed"), "{call}");
    }
}

#[test]
fn a_rings_observer_receives_everything_and_dumps_end_with_its_notes() {
    let folder = Folder::new();
    let ring = Some(RingLimits { bytes: Some(20_000), seconds: None });
    let options = RecorderOptions {
        ring,
        dump_at_exit: true,
        flush_every: SHORT,
        ..RecorderOptions::new(folder.file("out.swv"))
    };
    let (recorder, received) = start_checked(options);
    let (kind, note) = (step(&recorder), mark(&recorder));
    received.lock().unwrap().note_at_dump = Some(note);
    (0..MANY).for_each(|index| recorder.record(kind, &[0, index, 0]));
    for dump in 0..2 {
        let read = ReadBack::whole(&recorder.dump(Some(&folder.file("dump.swv"))).unwrap());
        assert_eq!(read.marks()[&3], [dump], "without the notes of an earlier dump");
        assert!(read.count() < MANY && read.count() == read.end.unwrap().events);
    }
    received.lock().unwrap().note_at_end = Some(note);
    recorder.record(kind, &[0, MANY, 0]);
    let summary = recorder.stop();
    let received = received.lock().unwrap();
    assert_eq!((received.next[&0], &*received.wrong), (MANY + 1, &[][..]));
    let read = ReadBack::whole(&summary.path);
    assert_eq!(read.marks().into_iter().collect::<Vec<_>>(), [(2, vec![0])]);
}

#[test]
fn a_forked_child_has_a_separate_observer() {
    let name = "observing::a_forked_child_has_a_separate_observer";
    if child::role().is_none() {
        let folder = Folder::new();
        let role = folder.path().to_str().unwrap();
        let output = child::run(&mut child::command(&child::own_executable(), name, role));
        assert!(output.status.success(), "{}", child::text(&output));
        return;
    }
    let path = std::path::PathBuf::from(child::role().unwrap()).join("out.swv");
    let (recorder, _) = start_checked(RecorderOptions::new(path));
    let kind = step(&recorder);
    (0..10).for_each(|index| recorder.record(kind, &[0, index, 0]));
    assert_eq!(last_of(&recorder, 0), Some(9));
    // SAFETY: the child records, queries and ends: glibc lets it allocate.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let before_events = recorder.query_observer(|_| ());
        recorder.record(kind, &[1, 0, 0]);
        let seen = (last_of(&recorder, 0), last_of(&recorder, 1));
        recorder.stop();
        let is_right = before_events.is_none() && seen == (None, Some(0)) && last_of(&recorder, 1) == Some(0);
        // SAFETY: ends the process.
        unsafe { libc::_exit(i32::from(!is_right)) }
    }
    let mut status = 0;
    // SAFETY: a child of this process, and a valid pointer to its status.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    assert_eq!(status, 0, "the child saw only its own events");
    recorder.record(kind, &[0, 10, 0]);
    assert_eq!((last_of(&recorder, 0), last_of(&recorder, 1)), (Some(10), None));
}

static WAITED: AtomicUsize = AtomicUsize::new(0);

fn counting_waiter(wait: &mut dyn FnMut()) {
    WAITED.fetch_add(1, Ordering::SeqCst);
    wait();
}

#[test]
fn bypass_waiter_waits_without_the_waiter() {
    let name = "observing::bypass_waiter_waits_without_the_waiter";
    if child::role().is_none() {
        let output = child::run(&mut child::command(&child::own_executable(), name, "waits"));
        assert!(output.status.success(), "{}", child::text(&output));
        return;
    }
    set_waiter(counting_waiter);
    let folder = Folder::new();
    for bypass_waiter in [true, false] {
        let path = folder.file(&format!("{bypass_waiter}.swv"));
        let (recorder, received) =
            start_checked(RecorderOptions { memory: CHUNK, bypass_waiter, ..RecorderOptions::new(path) });
        received.lock().unwrap().delay = Duration::from_millis(3);
        let kind = step(&recorder);
        (0..MANY).for_each(|index| recorder.record(kind, &[0, index, 0]));
        assert_eq!(recorder.stop().events, MANY);
        assert_eq!(WAITED.load(Ordering::SeqCst) == 0, bypass_waiter);
    }
}

#[test]
fn a_thread_that_must_not_block_gets_memory_beyond_the_limit() {
    // The function that decides whether threads may block applies to the whole process.
    let name = "observing::a_thread_that_must_not_block_gets_memory_beyond_the_limit";
    child::in_own_process(name, record_without_waiting);
}

fn record_without_waiting(folder: &Path) {
    static HOLDS: AtomicU64 = AtomicU64::new(1);
    struct GatedObserver(Arc<Mutex<()>>, Arc<AtomicU64>);
    impl Observer for GatedObserver {
        fn events(&mut self, _: u32, words: &[u64]) {
            let _open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            self.1.fetch_add(words.len() as u64 / 3, Ordering::SeqCst);
        }
        fn settle(&mut self, _: u64, _: &mut Notes) {}
        fn end(&mut self, _: u64, _: &mut Notes) {}
        fn interval(&self) -> Duration {
            SHORT
        }
        fn as_any(&mut self) -> &mut dyn std::any::Any {
            self
        }
    }
    let (gate, received) = (Arc::new(Mutex::new(())), Arc::new(AtomicU64::new(0)));
    let make: MakeObserver = {
        let (gate, received) = (Arc::clone(&gate), Arc::clone(&received));
        Arc::new(move || Box::new(GatedObserver(Arc::clone(&gate), Arc::clone(&received))))
    };
    let options = RecorderOptions { memory: CHUNK, ..RecorderOptions::new(folder.join("out.swv")) };
    let recorder = Recorder::start_observed(options, &STACKS, Arc::new(NoNames), Some(make)).unwrap();
    let mark = mark(&recorder);
    let closed = gate.lock().unwrap();
    let never_block = NeverBlock::begin();
    let nested = NeverBlock::begin();
    drop(nested);
    (0..MANY).for_each(|index| recorder.record(mark, &[0, index]));
    assert!(recorder.stats().buffer_bytes > 10 * CHUNK, "{:?}", recorder.stats());
    drop(never_block);
    never_block_while(|| HOLDS.load(Ordering::SeqCst) != 0);
    (0..MANY).for_each(|index| recorder.record(mark, &[0, index]));
    assert!(recorder.stats().buffer_bytes > 20 * CHUNK, "{:?}", recorder.stats());
    HOLDS.store(0, Ordering::SeqCst);
    let waiting = thread::spawn({
        let recorder = recorder.clone();
        move || (0..MANY).for_each(|index| recorder.record(mark, &[1, index]))
    });
    while recorder.stats().threads < 2 {
        thread::yield_now();
    }
    assert!(!waiting.is_finished(), "a thread that may block does");
    drop(closed);
    waiting.join().unwrap();
    let summary = recorder.stop();
    assert_eq!((summary.events, received.load(Ordering::SeqCst), summary.lost.len()), (3 * MANY, 3 * MANY, 0));
    assert_eq!(ReadBack::whole(&summary.path).marks()[&0].len() as u64, 2 * MANY);
}

#[test]
fn guarantees_hold_for_many_short_threads() {
    let folder = Folder::new();
    let received: Arc<Mutex<Received>> = Arc::default();
    let options = RecorderOptions { flush_every: SHORT, ..RecorderOptions::new(folder.file("out.swv")) };
    let recorder =
        Recorder::start_observed(options, &STACKS, Arc::new(NoNames), Some(make_checking_observer(&received))).unwrap();
    let kind = step(&recorder);
    // Lanes appear and end in the middle of rounds.
    for round in 0..40_u64 {
        thread::scope(|scope| {
            for producer in 0..6 {
                let recorder = &recorder;
                scope.spawn(move || (0..50).for_each(|index| recorder.record(kind, &[round * 6 + producer, index, 0])));
            }
        });
    }
    recorder.stop();
    let received = received.lock().unwrap();
    assert_eq!((received.next.len(), received.events, &*received.wrong), (240, 240 * 50, &[][..]));
    assert!(recorder.query_observer(|observer| observer.is::<CheckingObserver>()) == Some(true));
}

/// Receives kinds and events, and checks that each kind precedes its events.
#[derive(Default)]
struct KindObserver {
    received: Vec<(KindNumber, EventKind)>,
    events: u64,
}

impl Observer for KindObserver {
    fn kind(&mut self, number: KindNumber, kind: &EventKind) {
        assert_eq!(usize::from(number.get()), self.received.len() + 1);
        self.received.push((number, kind.clone()));
    }

    fn events(&mut self, _: u32, words: &[u64]) {
        let (_, kind) = &self.received[usize::from(words[0].to_le_bytes()[0]) - 1];
        assert_eq!(words.len() % (kind.words() + 1), 0);
        self.events += 1;
    }

    fn settle(&mut self, _: u64, _: &mut Notes) {}

    fn end(&mut self, _: u64, _: &mut Notes) {}

    fn interval(&self) -> Duration {
        SHORT
    }

    fn as_any(&mut self) -> &mut dyn std::any::Any {
        self
    }
}

#[test]
fn every_kind_is_received_once_and_before_its_events() {
    let folder = Folder::new();
    let make: MakeObserver = Arc::new(|| Box::new(KindObserver::default()));
    let options = RecorderOptions { flush_every: SHORT, ..RecorderOptions::new(folder.file("out.swv")) };
    let recorder = Recorder::start_observed(options, &STACKS, Arc::new(NoNames), Some(make)).unwrap();
    let named = |name: String| EventKind { name: name.into(), role: Role::Instant, fields: vec![].into() };
    let received_by = |recorder: &Recorder| {
        recorder.query_observer(|observer| {
            observer.downcast_mut::<KindObserver>().map(|kinds| (kinds.received.clone(), kinds.events))
        })
    };
    for number in 0..100 {
        let kind = named(number.to_string());
        let number =
            if number % 2 == 0 { recorder.register(kind) } else { recorder.register_observer_only(kind) }.unwrap();
        recorder.record(number, &[]);
        thread::sleep(Duration::from_micros(100));
        // The observer knows a kind when the code that registered it makes a query.
        let unused = recorder.register(named(format!("unused {}", number.get()))).unwrap();
        let (received, _) = received_by(&recorder).unwrap().unwrap();
        assert_eq!(received.last(), Some(&(unused, named(format!("unused {}", number.get())))));
    }
    let (received, events) = received_by(&recorder).unwrap().unwrap();
    assert_eq!((received.len(), events), (events::BUILT_IN.len() + 200, 100));
    assert_eq!(received[9].1, events::FREE);
    assert_eq!(recorder.stop().error, None);
}

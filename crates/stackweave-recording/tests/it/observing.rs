//! Who observes a recording is told of everything, once and in order, and is never in its way.

use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use stackweave_core::{EventKind, Field, FieldType, NoNames, Role};
use stackweave_recording::events;
use stackweave_recording::live::{
    KindNumber, Options, Recorder, Ring, Summary, Unwaiting, never_wait_while, set_waiter,
};
use stackweave_recording::{MakeObserver, Notes, Observer};
use stackweave_testkit::child;
use stackweave_testkit::folder::Folder;

use crate::recorded::{Read, STACKS, mark};
use crate::watching::{Told, Watching, last_of, start_watched, watched};

const SHORT: Duration = Duration::from_millis(2);
const CHUNK: usize = 64 * 1024;
/// Some buffers' worth.
const MANY: u64 = 60_000;

/// An event of who, which, and when the one before it had been recorded.
fn step(recorder: &Recorder) -> KindNumber {
    let field = |name| Field::new(name, FieldType::Unsigned);
    let fields = vec![field("who"), field("which"), field("before")];
    recorder.register(EventKind { name: "step".into(), role: Role::Instant, fields: fields.into() }).unwrap()
}

#[test]
fn everything_is_told_once_and_before_it_is_settled() {
    let folder = Folder::new();
    // Room for hardly any buffers: chunks are handed over all the time.
    let options = Options { memory: 3 * CHUNK, flush_every: SHORT, ..Options::new(folder.file("out.swv")) };
    let (recorder, told) = start_watched(options);
    let kind = step(&recorder).fixed::<3>().unwrap();
    thread::scope(|scope| {
        for who in 0..5_u64 {
            let recorder = &recorder;
            scope.spawn(move || {
                let mut before = 0;
                for which in 0..MANY {
                    recorder.record_fixed(kind, [who, which, before]);
                    fence(Ordering::SeqCst);
                    before = recorder.ticks_now();
                }
            });
        }
    });
    assert_eq!(last_of(&recorder, 4), Some(MANY - 1));
    let summary = recorder.stop();
    assert_eq!((summary.events, &summary.error), (5 * MANY, &None));
    let told = told.lock().unwrap();
    assert_eq!((told.events, told.ended, &*told.wrong), (5 * MANY, true, &[][..]));
    assert!((0..5).all(|who| told.next[&who] == MANY));
    assert!(told.settled > 1);
}

#[test]
fn a_thread_that_records_little_is_told_of_as_often_as_was_asked_for() {
    let folder = Folder::new();
    let never = Duration::from_secs(3600);
    let (recorder, told) = start_watched(Options { flush_every: never, ..Options::new(folder.file("out.swv")) });
    let kind = step(&recorder);
    recorder.record(kind, &[0, 0, 0]);
    while told.lock().unwrap().events == 0 {
        thread::sleep(SHORT);
    }
    assert_eq!(recorder.stats().events, 0, "a buffer that is not full is not written for that");
    recorder.record(kind, &[0, 1, 0]);
    recorder.record_for(u32::MAX, &[(recorder.ticks_now(), kind, [7, 0, 0])]);
    let summary = recorder.stop();
    assert_eq!((summary.events, told.lock().unwrap().events), (3, 3));
    let read = Read::whole(&summary.path);
    let which: Vec<u64> = read.events[&1].iter().map(|event| event.words[1]).collect();
    assert_eq!(which, [0, 1]);
}

#[test]
fn who_asks_gets_an_answer_about_all_that_was_recorded_before() {
    let folder = Folder::new();
    let (recorder, _) = start_watched(Options::new(folder.file("out.swv")));
    let kind = step(&recorder);
    for which in 0..200 {
        recorder.record(kind, &[3, which, 0]);
        assert_eq!(last_of(&recorder, 3), Some(which));
    }
    assert_eq!(recorder.ask(|_| panic!("the asker's own fault")), None::<()>);
    recorder.record(kind, &[3, 200, 0]);
    let summary = recorder.stop();
    assert_eq!(summary.error, None);
    assert_eq!(last_of(&recorder, 3), Some(200), "the observer is kept");
    assert_eq!(recorder.ask_with_notes(|_, _| ()), None, "but nothing can be written any more");
    drop(recorder);
    let plain = crate::recorded::start(Options::new(folder.file("plain.swv")));
    assert_eq!(plain.ask(|_| ()), None);
    plain.stop();
    assert_eq!(plain.ask(|_| ()), None);
}

#[test]
fn the_observer_goes_with_the_recorder_though_threads_remember_the_recording() {
    struct Alive(Arc<()>);
    impl Observer for Alive {
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
        Arc::new(move || Box::new(Alive(alive.upgrade().unwrap())))
    };
    let options = Options::new(folder.file("out.swv"));
    let recorder = Recorder::start_observed(options, &STACKS, Arc::new(NoNames), Some(make)).unwrap();
    recorder.record(mark(&recorder), &[0, 0]);
    recorder.stop();
    assert_eq!(Arc::strong_count(&alive), 2);
    drop(recorder);
    assert_eq!(Arc::strong_count(&alive), 1);
}

#[test]
fn notes_are_events_of_a_thread_of_their_own() {
    let folder = Folder::new();
    let (recorder, told) = start_watched(Options::new(folder.file("out.swv")));
    let (kind, note) = (step(&recorder), mark(&recorder));
    told.lock().unwrap().note_at_end = Some(note);
    recorder.record(kind, &[0, 0, 0]);
    let ticks = recorder.ticks_now();
    let noted = recorder.ask_with_notes(move |_, notes| {
        notes.record_at(ticks, note, &[1, 10]);
        notes.record_at(ticks, note, &[1]);
        notes.record_at(ticks, note, &[1, 11]);
    });
    assert_eq!(noted, Some(()));
    let read = Read::bytes(&std::fs::read(recorder.path()).unwrap());
    assert_eq!(read.marks()[&1], [10, 11], "they are in the file when the answer comes");
    let summary = recorder.stop();
    let read = Read::whole(&summary.path);
    assert_eq!((summary.events, read.end.unwrap().events), (4, 4));
    assert_eq!((&read.marks()[&1], &read.marks()[&2]), (&vec![10, 11], &vec![0]));
    let threads: Vec<&str> = read.dictionary.threads().map(|thread| &*thread.name).collect();
    assert_eq!(threads[1..], ["stackweave"]);
    let known: Vec<_> = recorder.threads().into_iter().map(|thread| (thread.number, thread.name)).collect();
    let read: Vec<_> = read.dictionary.threads().map(|thread| (thread.number, thread.name.clone())).collect();
    assert_eq!(known, read);
    assert_eq!(told.lock().unwrap().events, 1, "nobody is told of their own notes");
}

#[test]
fn kinds_that_are_not_written_are_told_of_and_not_in_the_file() {
    let folder = Folder::new();
    let (recorder, told) = start_watched(Options::new(folder.file("out.swv")));
    let field = |name| Field::new(name, FieldType::Unsigned);
    let fields = vec![field("who"), field("which"), field("before")];
    let kind = EventKind { name: "step".into(), role: Role::Instant, fields: fields.into() };
    let unwritten = recorder.register_unwritten(kind.clone()).unwrap();
    let mark = mark(&recorder);
    told.lock().unwrap().mark = Some(mark);
    assert_eq!(recorder.register_unwritten(kind.clone()), Some(unwritten));
    assert_ne!(recorder.register(kind), Some(unwritten), "the same is another when it is written");
    for which in 0..MANY {
        recorder.record(unwritten, &[0, which, 0]);
        if which % 1_000 == 0 {
            recorder.record(mark, &[0, which / 1_000]);
        }
    }
    let summary = recorder.stop();
    assert_eq!((summary.events, summary.lost.len(), summary.error), (MANY / 1_000, 0, None));
    assert_eq!(told.lock().unwrap().next[&0], MANY);
    let read = Read::whole(&summary.path);
    assert_eq!((read.marks()[&0].len() as u64, read.count()), (MANY / 1_000, MANY / 1_000));
    assert_eq!(read.dictionary.kind(unwritten.get()), None);
    assert!(read.dictionary.kind(mark.get()).is_some_and(|kind| kind.name == "mark"));
    assert!(summary.bytes_written < 20_000, "{}", summary.bytes_written);
}

#[test]
fn an_observer_that_fails_does_not_end_the_recording() {
    struct Failing(&'static str);
    impl Failing {
        fn at(&self, place: &str) {
            assert!(self.0 != place, "a test of failures");
        }
    }
    impl Observer for Failing {
        fn events(&mut self, _: u32, _: &[u64]) {
            self.at("events");
        }
        fn settle(&mut self, _: u64, _: &mut Notes) {
            self.at("settle");
        }
        fn end(&mut self, _: u64, _: &mut Notes) {
            self.at("end");
        }
        fn interval(&self) -> Duration {
            self.at("interval");
            SHORT
        }
        fn as_any(&mut self) -> &mut dyn std::any::Any {
            self
        }
    }
    let folder = Folder::new();
    for place in ["make", "events", "settle", "end", "interval"] {
        let make: MakeObserver = Arc::new(move || {
            assert!(place != "make", "a test of failures");
            Box::new(Failing(place))
        });
        let options = Options { flush_every: SHORT, ..Options::new(folder.file(&format!("{place}.swv"))) };
        let recorder = Recorder::start_observed(options, &STACKS, Arc::new(NoNames), Some(make)).unwrap();
        let mark = mark(&recorder);
        (0..MANY).for_each(|which| recorder.record(mark, &[0, which]));
        recorder.flush().unwrap();
        assert_eq!(recorder.ask(|_| ()).is_some(), place == "end", "{place}");
        let Summary { events, error, path, .. } = recorder.stop();
        assert_eq!((events, Read::whole(&path).marks()[&0].len() as u64), (MANY, MANY), "{place}");
        assert_eq!(error.as_deref(), Some("what observes the recording failed"), "{place}");
    }
}

#[test]
fn in_a_ring_everything_is_told_and_dumps_have_notes_at_their_end() {
    let folder = Folder::new();
    let ring = Some(Ring { bytes: Some(20_000), seconds: None });
    let options = Options { ring, dump_at_exit: true, flush_every: SHORT, ..Options::new(folder.file("out.swv")) };
    let (recorder, told) = start_watched(options);
    let (kind, note) = (step(&recorder), mark(&recorder));
    told.lock().unwrap().note_at_dump = Some(note);
    (0..MANY).for_each(|which| recorder.record(kind, &[0, which, 0]));
    for dump in 0..2 {
        let read = Read::whole(&recorder.dump(Some(&folder.file("dump.swv"))).unwrap());
        assert_eq!(read.marks()[&3], [dump], "those of an earlier dump are not in it");
        assert!(read.count() < MANY && read.count() == read.end.unwrap().events);
    }
    told.lock().unwrap().note_at_end = Some(note);
    recorder.record(kind, &[0, MANY, 0]);
    let summary = recorder.stop();
    let told = told.lock().unwrap();
    assert_eq!((told.next[&0], &*told.wrong), (MANY + 1, &[][..]));
    let read = Read::whole(&summary.path);
    assert_eq!(read.marks().into_iter().collect::<Vec<_>>(), [(2, vec![0])]);
}

#[test]
fn a_forked_child_has_an_observer_of_its_own() {
    let name = "observing::a_forked_child_has_an_observer_of_its_own";
    if child::role().is_none() {
        let folder = Folder::new();
        let role = folder.path().to_str().unwrap();
        let output = child::run(&mut child::command(&child::own_executable(), name, role));
        assert!(output.status.success(), "{}", child::text(&output));
        return;
    }
    let path = std::path::PathBuf::from(child::role().unwrap()).join("out.swv");
    let (recorder, _) = start_watched(Options::new(path));
    let kind = step(&recorder);
    (0..10).for_each(|which| recorder.record(kind, &[0, which, 0]));
    assert_eq!(last_of(&recorder, 0), Some(9));
    // SAFETY: the child records, asks and ends: glibc lets it allocate.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let nobody = recorder.ask(|_| ());
        recorder.record(kind, &[1, 0, 0]);
        let seen = (last_of(&recorder, 0), last_of(&recorder, 1));
        recorder.stop();
        let is_right = nobody.is_none() && seen == (None, Some(0)) && last_of(&recorder, 1) == Some(0);
        // SAFETY: ends the process.
        unsafe { libc::_exit(i32::from(!is_right)) }
    }
    let mut status = 0;
    // SAFETY: a child of this process, and a place for its status.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    assert_eq!(status, 0, "the child saw its own events, and no others");
    recorder.record(kind, &[0, 10, 0]);
    assert_eq!((last_of(&recorder, 0), last_of(&recorder, 1)), (Some(10), None));
}

static WAITED: AtomicUsize = AtomicUsize::new(0);

fn counting_waiter(wait: &mut dyn FnMut()) {
    WAITED.fetch_add(1, Ordering::SeqCst);
    wait();
}

#[test]
fn who_waits_plainly_waits_without_the_waiter() {
    let name = "observing::who_waits_plainly_waits_without_the_waiter";
    if child::role().is_none() {
        let output = child::run(&mut child::command(&child::own_executable(), name, "waits"));
        assert!(output.status.success(), "{}", child::text(&output));
        return;
    }
    set_waiter(counting_waiter);
    let folder = Folder::new();
    for waits_plainly in [true, false] {
        let path = folder.file(&format!("{waits_plainly}.swv"));
        let (recorder, told) = start_watched(Options { memory: CHUNK, waits_plainly, ..Options::new(path) });
        told.lock().unwrap().delay = Duration::from_millis(3);
        let kind = step(&recorder);
        (0..MANY).for_each(|which| recorder.record(kind, &[0, which, 0]));
        assert_eq!(recorder.stop().events, MANY);
        assert_eq!(WAITED.load(Ordering::SeqCst) == 0, waits_plainly);
    }
}

#[test]
fn who_must_not_wait_gets_memory_beyond_the_limit() {
    // Whether threads may wait is asked in the whole process.
    let name = "observing::who_must_not_wait_gets_memory_beyond_the_limit";
    child::in_own_process(name, record_without_waiting);
}

fn record_without_waiting(folder: &Path) {
    static HOLDS: AtomicU64 = AtomicU64::new(1);
    struct Stuck(Arc<Mutex<()>>, Arc<AtomicU64>);
    impl Observer for Stuck {
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
    let (gate, told) = (Arc::new(Mutex::new(())), Arc::new(AtomicU64::new(0)));
    let make: MakeObserver = {
        let (gate, told) = (Arc::clone(&gate), Arc::clone(&told));
        Arc::new(move || Box::new(Stuck(Arc::clone(&gate), Arc::clone(&told))))
    };
    let options = Options { memory: CHUNK, ..Options::new(folder.join("out.swv")) };
    let recorder = Recorder::start_observed(options, &STACKS, Arc::new(NoNames), Some(make)).unwrap();
    let mark = mark(&recorder);
    let closed = gate.lock().unwrap();
    let unwaiting = Unwaiting::begin();
    let nested = Unwaiting::begin();
    drop(nested);
    (0..MANY).for_each(|which| recorder.record(mark, &[0, which]));
    assert!(recorder.stats().buffer_bytes > 10 * CHUNK, "{:?}", recorder.stats());
    drop(unwaiting);
    never_wait_while(|| HOLDS.load(Ordering::SeqCst) != 0);
    (0..MANY).for_each(|which| recorder.record(mark, &[0, which]));
    assert!(recorder.stats().buffer_bytes > 20 * CHUNK, "{:?}", recorder.stats());
    HOLDS.store(0, Ordering::SeqCst);
    let waiting = thread::spawn({
        let recorder = recorder.clone();
        move || (0..MANY).for_each(|which| recorder.record(mark, &[1, which]))
    });
    while recorder.stats().threads < 2 {
        thread::yield_now();
    }
    assert!(!waiting.is_finished(), "who may wait does");
    drop(closed);
    waiting.join().unwrap();
    let summary = recorder.stop();
    assert_eq!((summary.events, told.load(Ordering::SeqCst), summary.lost.len()), (3 * MANY, 3 * MANY, 0));
    assert_eq!(Read::whole(&summary.path).marks()[&0].len() as u64, 2 * MANY);
}

#[test]
fn what_is_told_is_the_same_for_all_who_watch() {
    let folder = Folder::new();
    let told: Arc<Mutex<Told>> = Arc::default();
    let options = Options { flush_every: SHORT, ..Options::new(folder.file("out.swv")) };
    let recorder = Recorder::start_observed(options, &STACKS, Arc::new(NoNames), Some(watched(&told))).unwrap();
    let kind = step(&recorder);
    // Many short threads: lanes come and go in the middle of rounds.
    for round in 0..40_u64 {
        thread::scope(|scope| {
            for who in 0..6 {
                let recorder = &recorder;
                scope.spawn(move || (0..50).for_each(|which| recorder.record(kind, &[round * 6 + who, which, 0])));
            }
        });
    }
    recorder.stop();
    let told = told.lock().unwrap();
    assert_eq!((told.next.len(), told.events, &*told.wrong), (240, 240 * 50, &[][..]));
    assert!(recorder.ask(|observer| observer.is::<Watching>()) == Some(true));
}

/// Is told of kinds and events, and holds that no event comes before its kind.
#[derive(Default)]
struct Kinds {
    told: Vec<(KindNumber, EventKind)>,
    events: u64,
}

impl Observer for Kinds {
    fn kind(&mut self, number: KindNumber, kind: &EventKind) {
        assert_eq!(usize::from(number.get()), self.told.len() + 1);
        self.told.push((number, kind.clone()));
    }

    fn events(&mut self, _: u32, words: &[u64]) {
        let (_, kind) = &self.told[usize::from(words[0].to_le_bytes()[0]) - 1];
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
fn every_kind_is_told_once_and_before_its_events() {
    let folder = Folder::new();
    let make: MakeObserver = Arc::new(|| Box::new(Kinds::default()));
    let options = Options { flush_every: SHORT, ..Options::new(folder.file("out.swv")) };
    let recorder = Recorder::start_observed(options, &STACKS, Arc::new(NoNames), Some(make)).unwrap();
    let named = |name: String| EventKind { name: name.into(), role: Role::Instant, fields: vec![].into() };
    let told_of = |recorder: &Recorder| {
        recorder.ask(|observer| observer.downcast_mut::<Kinds>().map(|kinds| (kinds.told.clone(), kinds.events)))
    };
    for number in 0..100 {
        let kind = named(number.to_string());
        let number = if number % 2 == 0 { recorder.register(kind) } else { recorder.register_unwritten(kind) }.unwrap();
        recorder.record(number, &[]);
        thread::sleep(Duration::from_micros(100));
        // Who declares one and asks at once is not too early either.
        let unused = recorder.register(named(format!("unused {}", number.get()))).unwrap();
        let (told, _) = told_of(&recorder).unwrap().unwrap();
        assert_eq!(told.last(), Some(&(unused, named(format!("unused {}", number.get())))));
    }
    let (told, events) = told_of(&recorder).unwrap().unwrap();
    assert_eq!((told.len(), events), (events::BUILT_IN.len() + 200, 100));
    assert_eq!(told[9].1, events::FREE);
    assert_eq!(recorder.stop().error, None);
}

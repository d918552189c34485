//! The features that tracers of calls need: calls as one word, explicit times, events for other threads, and hooks at the
//! beginning of buffers.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use stackweave_core::{BlobId, Call, CodeId, EventKind, Field, FieldType, RawFrame, RawFrameKind, Role};
use stackweave_recording::file::{LossReason, RecordedFrame};
use stackweave_recording::live::{ChunkStart, KindNumber, Recorder, RecorderOptions, RingLimits, WhenFull};
use stackweave_recording::read::{Ended, OpenStack};
use stackweave_store::label;
use stackweave_testkit::counting_allocator::requests;
use stackweave_testkit::folder::Folder;
use stackweave_testkit::random::Random;

use crate::recorded::{ReadBack, mark, start};

const CHUNK: usize = 64 * 1024;
/// The words of a mark, and of a buffer.
const MARK_WORDS: usize = 3;
const CHUNK_WORDS: usize = (CHUNK - 64) / 8;

fn calls(recorder: &Recorder, name: &'static str, more: &[Field]) -> KindNumber {
    let mut fields = vec![Field::new("call", FieldType::Call)];
    fields.extend_from_slice(more);
    recorder.register(EventKind { name: name.into(), role: Role::Begin, fields: fields.into() }).unwrap()
}

fn code(number: u32) -> CodeId {
    CodeId::new(number).unwrap()
}

fn this_thread() -> u32 {
    // SAFETY: has no conditions.
    unsafe { libc::gettid() }.unsigned_abs()
}

/// Returns the frame with this number in the file.
fn frame_of(read: &ReadBack, number: u64) -> Option<RecordedFrame> {
    read.dictionary.frame(u32::try_from(number).unwrap()).copied()
}

#[test]
fn a_call_is_split_into_its_two_frames() {
    let folder = Folder::new();
    let recorder = start(RecorderOptions::new(folder.file("out.swv")));
    let call = calls(&recorder, "call", &[]);
    let object = Field::new("object", FieldType::Address);
    let generator = calls(&recorder, "generator", &[object]);
    let mut random = Random::new(11);
    let mut words_in = Vec::new();
    for _ in 0..50_000 {
        let mut number = || u32::from(random.byte_below(40)) + 1;
        let (function, caller, unit, label) = (number(), number(), number(), number());
        let to =
            if label < 10 { Call::to_label(BlobId::new(function).unwrap()) } else { Call::to_code(code(function)) };
        let word = if unit < 3 { to.unwrap() } else { to.unwrap().from(code(caller), unit) };
        if caller % 2 == 0 {
            recorder.record(call, &[word.to_bits()]);
        } else {
            recorder.record(generator, &[word.to_bits(), 7]);
        }
        words_in.push(word);
    }
    recorder.record(call, &[0]);
    let read = ReadBack::whole(&recorder.stop().path);
    let events = &read.events[&1];
    assert_eq!(events.len(), words_in.len() + 1);
    assert_eq!(events.last().unwrap().words, [0, 0], "no call has no frames");
    let kind = read.dictionary.kinds().find(|(_, kind)| kind.name == "generator").unwrap().1;
    assert_eq!(kind.fields.iter().map(|field| &*field.name).collect::<Vec<_>>(), ["frame", "caller", "object"]);
    let frames: Vec<_> = read.dictionary.frames().map(|(_, frame)| *frame).collect();
    assert!(frames.iter().all(|frame| frames.iter().filter(|other| *other == frame).count() == 1), "no duplicates");
    for (event, call) in events.iter().zip(words_in) {
        let callee = match frame_of(&read, event.words[0]).unwrap() {
            RecordedFrame::Python { code, .. } => Call::to_code(CodeId::new(code).unwrap()),
            RecordedFrame::Label { label } => Call::to_label(BlobId::new(label).unwrap()),
            other => panic!("{other:?}"),
        };
        let back = match frame_of(&read, event.words[1]) {
            Some(RecordedFrame::Python { code, instruction, .. }) => {
                callee.unwrap().from(CodeId::new(code).unwrap(), instruction / 2)
            }
            None => callee.unwrap(),
            Some(other) => panic!("{other:?}"),
        };
        assert_eq!(back, call);
        assert!(event.words[2..] == [7] || event.kind == "call");
    }
}

#[test]
fn a_kind_with_two_calls_is_rejected() {
    let folder = Folder::new();
    let recorder = start(RecorderOptions::new(folder.file("out.swv")));
    let fields = vec![Field::new("one", FieldType::Call), Field::new("two", FieldType::Call)];
    assert_eq!(recorder.register(EventKind { name: "two".into(), role: Role::Begin, fields: fields.into() }), None);
}

#[test]
fn events_keep_explicit_times_and_their_order() {
    let folder = Folder::new();
    let recorder = start(RecorderOptions::new(folder.file("out.swv")));
    let mark = mark(&recorder);
    let first = recorder.ticks_now();
    recorder.record(mark, &[0, 0]);
    let second = recorder.ticks_now();
    let before = requests();
    for index in 0..20_000 {
        recorder.record_at(first + index % 7, mark, &[1, index]);
    }
    assert_eq!(requests(), before, "a warm thread does not allocate");
    assert!(first <= second);
    let read = ReadBack::whole(&recorder.stop().path);
    let events = &read.events[&1];
    assert!((first..=second).contains(&events[0].ticks), "the times are of the clock of events");
    for (index, event) in (0..).zip(&events[1..]) {
        assert_eq!((event.ticks, &event.words[..]), (first + index % 7, &[1, index][..]));
    }
    assert_eq!(events.len(), 20_001);
}

#[test]
fn events_for_another_thread_follow_its_own() {
    let folder = Folder::new();
    for ring in [None, Some(RingLimits::default())] {
        let path = folder.file(if ring.is_some() { "ring.swv" } else { "out.swv" });
        let options = RecorderOptions { ring, dump_at_exit: true, memory: 2 * CHUNK, ..RecorderOptions::new(path) };
        let recorder = start(options);
        let mark = mark(&recorder);
        let (arrived, proceed) = (Barrier::new(2), Barrier::new(2));
        let (sender, receiver) = channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                sender.send(this_thread()).unwrap();
                for round in 0..20 {
                    arrived.wait();
                    proceed.wait();
                    for index in 0..5_000 * (round % 3) {
                        recorder.record(mark, &[round, index]);
                    }
                    arrived.wait();
                    proceed.wait();
                }
            });
            let tid = receiver.recv().unwrap();
            for round in 0..20 {
                arrived.wait();
                let now = recorder.ticks_now();
                recorder.record_for_thread(tid, &[(now, mark, [100 + round, 0])]);
                proceed.wait();
                arrived.wait();
                let now = recorder.ticks_now();
                recorder.record_for_thread(tid, &[(now, mark, [200 + round, 0]), (now, mark, [200 + round, 1])]);
                recorder.record_for_thread::<[u64; 2]>(tid, &[]);
                proceed.wait();
            }
        });
        let read = ReadBack::whole(&recorder.stop().path);
        assert_eq!(read.events.keys().copied().collect::<Vec<_>>(), [1], "one thread has one number");
        let words: Vec<[u64; 2]> = read.events[&1].iter().map(|event| event.words[..].try_into().unwrap()).collect();
        let mut expected = Vec::new();
        for round in 0..20 {
            expected.push([100 + round, 0]);
            expected.extend((0..5_000 * (round % 3)).map(|index| [round, index]));
            expected.extend([[200 + round, 0], [200 + round, 1]]);
        }
        assert!(words == expected);
        assert!(read.events[&1].is_sorted_by_key(|event| event.ticks));
    }
}

#[test]
fn events_can_be_recorded_for_a_thread_that_never_records() {
    let folder = Folder::new();
    let recorder = start(RecorderOptions::new(folder.file("out.swv")));
    let mark = mark(&recorder);
    let (begun, done) = (Barrier::new(2), Barrier::new(2));
    let (sender, receiver) = channel();
    thread::scope(|scope| {
        let named = thread::Builder::new().name("sleeper".to_owned());
        let sleep = || {
            sender.send(this_thread()).unwrap();
            begun.wait();
            done.wait();
        };
        named.spawn_scoped(scope, sleep).unwrap();
        let tid = receiver.recv().unwrap();
        begun.wait();
        recorder.record_for_thread(tid, &[(5, mark, [1, 2])]);
        recorder.record_for_thread(tid, &[(6, mark, [3, 4])]);
        recorder.name_other_thread(u32::MAX, "no thread");
        recorder.pause();
        recorder.record_for_thread(tid, &[(7, mark, [5, 6])]);
        let read = ReadBack::whole(&recorder.stop().path);
        recorder.record_for_thread(tid, &[(8, mark, [7, 8])]);
        done.wait();
        let [thread] = &read.dictionary.threads().collect::<Vec<_>>()[..] else { panic!("one thread") };
        assert_eq!((thread.tid, &*thread.name), (tid, "sleeper"));
        let events: Vec<_> = read.events[&thread.number].iter().map(|event| (event.ticks, &event.words[..])).collect();
        assert_eq!(events, [(5, &[1, 2][..]), (6, &[3, 4][..])]);
        assert_eq!(read.end.unwrap().events, 2);
    });
}

/// Returns the open spans of each thread after its events, by the numbers of labels. All ends must end a span.
fn open_at_the_end(read: &ReadBack) -> BTreeMap<u32, Vec<u32>> {
    let label = |number: u64| match frame_of(read, number) {
        Some(RecordedFrame::Label { label }) => label,
        other => panic!("{other:?} is no label"),
    };
    let mut threads = BTreeMap::new();
    for (thread, events) in &read.events {
        let mut open = OpenStack::default();
        for event in events {
            match &*event.kind {
                "begin" | "call" => open.begin(label(event.words[0])),
                "end" => assert!(matches!(open.end(), Ended::Known(_)), "thread {thread} ends an open span"),
                "open" => {
                    let (span, depth) = (label(event.words[0]), *event.words.last().unwrap());
                    if open.open(depth, |known| *known == span) {
                        open.begin_open(depth, span);
                    }
                }
                _ => {}
            }
        }
        threads.insert(*thread, open.to_vec());
    }
    threads
}

#[test]
fn a_ring_begins_with_the_open_spans() {
    let folder = Folder::new();
    for seed in 0..6 {
        let mut random = Random::new(seed);
        let ring = RingLimits { bytes: Some(20_000 + 10_000 * seed), seconds: None };
        let path = folder.file(&format!("{seed}.swv"));
        let recorder = start(RecorderOptions {
            ring: Some(ring),
            flush_every: Duration::from_millis(1),
            ..RecorderOptions::new(path)
        });
        recorder.set_chunk_hook(Some(|_| panic!("a ring calls no hook")));
        let call = calls(&recorder, "call", &[]);
        let names: Vec<RawFrame> = (0..8).map(|number| label(&format!("name {number}"), "", 0).unwrap()).collect();
        let number = |frame: RawFrame| match frame.kind() {
            RawFrameKind::Label(label) => label,
            _ => panic!("a label"),
        };
        let begin = |name: usize| {
            if name.is_multiple_of(2) {
                recorder.begin(names[name]);
            } else {
                recorder.record(call, &[Call::to_label(number(names[name])).unwrap().to_bits()]);
            }
        };
        let (started, done) = (Barrier::new(2), Barrier::new(2));
        thread::scope(|scope| {
            scope.spawn(|| {
                (0..5).for_each(begin);
                started.wait();
                done.wait();
            });
            started.wait();
            let mut open = Vec::new();
            for step in 0..60_000 {
                if open.len() > 40 || !open.is_empty() && random.below(2) == 0 {
                    open.pop();
                    recorder.end();
                } else {
                    let name = random.below(names.len());
                    begin(name);
                    open.push(name);
                }
                if step % 20_000 == 0 {
                    recorder.flush().unwrap();
                }
            }
            let read = ReadBack::whole(&recorder.dump(None).unwrap());
            done.wait();
            assert!(read.lost(LossReason::Ring) > 0, "seed {seed}");
            assert_eq!(read.end.unwrap().events, read.count());
            let labels = |open: &[usize]| open.iter().map(|name| number(names[*name]).get()).collect::<Vec<_>>();
            let at_end = open_at_the_end(&read);
            assert_eq!(at_end.len(), 2, "including the sleeping thread");
            assert!(at_end.values().any(|stack| *stack == labels(&open)), "seed {seed}");
            assert!(at_end.values().any(|stack| *stack == labels(&[0, 1, 2, 3, 4])), "seed {seed}");
            let sleeper = read.events.values().min_by_key(|events| events.len()).unwrap();
            assert!(sleeper.last().unwrap().ticks > sleeper[0].ticks, "it exists until the end");
        });
    }
}

static CALLED: AtomicU64 = AtomicU64::new(0);
static KIND: std::sync::OnceLock<KindNumber> = std::sync::OnceLock::new();

/// Records the number of the call, as often as it fits.
fn record_call_number(start: &mut ChunkStart<'_>) {
    let (number, kind) = (CALLED.fetch_add(1, Ordering::Relaxed), *KIND.get().unwrap());
    let (capacity, ticks) = (start.capacity_for(kind), start.ticks());
    for index in 0..capacity as u64 {
        assert!(start.record_at(ticks, kind, &[1_000 + number, index]));
    }
    assert!(!start.record_at(ticks, kind, &[0, 0]));
}

/// Creates a pipe that accepts writes until its reader is dropped.
fn pipe(folder: &Folder) -> (PathBuf, File) {
    let path = folder.file("pipe");
    let name = CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: a valid name.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    // Does not wait for a writer.
    let reader = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&path).unwrap();
    (path, reader)
}

static CALLED_AFTER_FAILURE: AtomicU64 = AtomicU64::new(0);

#[test]
fn buffers_begin_with_open_spans_after_a_failed_write() {
    let folder = Folder::new();
    let (path, reader) = pipe(&folder);
    let recorder = start(RecorderOptions {
        overwrite: true,
        flush_every: Duration::from_secs(3_600),
        ..RecorderOptions::new(path)
    });
    recorder.set_chunk_hook(Some(|_| {
        CALLED_AFTER_FAILURE.fetch_add(1, Ordering::Relaxed);
    }));
    let mark = mark(&recorder);
    recorder.record(mark, &[0, 0]);
    recorder.flush().unwrap();
    assert_eq!(CALLED_AFTER_FAILURE.load(Ordering::Relaxed), 0, "nothing has failed yet");
    drop(reader);
    recorder.record(mark, &[0, 1]);
    assert!(recorder.flush().is_err());
    (0..20_000).for_each(|index| recorder.record(mark, &[0, index]));
    assert!(CALLED_AFTER_FAILURE.load(Ordering::Relaxed) > 0);
    assert!(recorder.stop().error.is_some());
}

#[test]
fn each_buffer_begins_with_the_events_of_the_hook() {
    let folder = Folder::new();
    let mut options = RecorderOptions { memory: CHUNK, ..RecorderOptions::new(folder.file("out.swv")) };
    let recorder = start(options.clone());
    recorder.set_chunk_hook(Some(|_| panic!("nothing is missing")));
    let whole = mark(&recorder);
    (0..20_000).for_each(|index| recorder.record(whole, &[0, index]));
    recorder.stop();
    options.overwrite = true;
    options.when_full = WhenFull::Drop;
    options.flush_every = Duration::from_secs(3_600);
    let recorder = start(options);
    let mark = mark(&recorder);
    KIND.set(mark).unwrap();
    recorder.set_chunk_hook(Some(record_call_number));
    recorder.record(mark, &[0, 0]);
    let before = requests();
    let count = 50_000;
    for index in 1..count {
        recorder.record(mark, &[0, index]);
    }
    assert_eq!(requests(), before, "the hook does not allocate either");
    recorder.set_chunk_hook(None);
    let summary = recorder.stop();
    let read = ReadBack::whole(&summary.path);
    let lost = summary.lost.get(&LossReason::Full).copied().unwrap_or(0);
    assert_eq!(read.lost(LossReason::Full), lost);
    let events = &read.events[&1];
    let per_start = CHUNK_WORDS / 2 / MARK_WORDS;
    let starts: Vec<usize> =
        (0..events.len()).filter(|at| events[*at].words[0] >= 1_000 && events[*at].words[1] == 0).collect();
    assert_eq!(starts.len() as u64, CALLED.load(Ordering::Relaxed));
    for (number, at) in (0..).zip(&starts) {
        for (index, event) in (0..).zip(&events[*at..at + per_start]) {
            assert_eq!(event.words, [1_000 + number, index], "half a buffer");
        }
        let cause = &events[at + per_start];
        assert_eq!((cause.words[0], cause.ticks), (0, events[*at].ticks), "before the event that needed the buffer");
    }
    let own: Vec<u64> = events.iter().filter(|event| event.words[0] == 0).map(|event| event.words[1]).collect();
    assert!(own.is_sorted());
    assert_eq!(own.len() as u64 + lost, count);
}

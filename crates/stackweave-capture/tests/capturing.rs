//! Captures of this thread, with an interpreter of the test that knows where its frames run.

#![expect(clippy::items_after_statements, reason = "each test takes the lock first")]

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::panic::{catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use stackweave_capture::{
    Capture, CaptureRequest, CaptureStart, FrameSource, RawFrame, RegisteredSource, SourceStop, StackId, Stop,
    StopReason, capture, locate, register_source, stacks, stats,
};
use stackweave_core::{Position, RawFrameKind, SourceKind, SourceLocation, SourceWalk, SourceWalkResult, StackPointer};
use stackweave_testkit::counting_allocator::{CountingAllocator, requests};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

thread_local! {
    /// The frames of the test's interpreter on this thread, outermost first.
    static RUNNING: RefCell<Vec<(u64, u64)>> = const { RefCell::new(Vec::new()) };
    static NUMBER: Cell<u8> = const { Cell::new(0) };
}

/// Sources are process-wide, so tests that run in one process take this lock.
fn lock_tests() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Interpreter;

impl FrameSource for Interpreter {
    fn kind(&self) -> SourceKind {
        SourceKind::Script
    }

    fn walk(&self, walk: SourceWalk<'_>) -> SourceWalkResult {
        NUMBER.set(walk.source);
        RUNNING.with_borrow(|running| {
            let len = running.len().min(walk.frames.len());
            for (index, (word, activation)) in running.iter().rev().take(len).enumerate() {
                walk.frames[index] = RawFrame::script(walk.source, *word);
                walk.activations[index] = StackPointer(*activation);
            }
            let stop = if len < running.len() { SourceStop::DepthLimit } else { SourceStop::EndOfStack };
            SourceWalkResult { len, stop, ..SourceWalkResult::default() }
        })
    }

    fn locate(&self, frame: RawFrame) -> Option<SourceLocation> {
        let RawFrameKind::Script { word, .. } = frame.kind() else { return None };
        let (name, position) = (format!("word {word}").into(), Position::default());
        Some(SourceLocation { name, qualname: None, filename: "script".into(), first_line: None, position })
    }
}

/// Runs `words`, innermost last, in one activation of the interpreter, and calls `body` inside it.
#[inline(never)]
fn interpret<R>(words: &[u64], body: impl FnOnce() -> R) -> R {
    let here = 0_u8;
    let activation = (&raw const here).addr() as u64;
    RUNNING.with_borrow_mut(|running| running.extend(words.iter().map(|word| (*word, activation))));
    let result = body();
    RUNNING.with_borrow_mut(|running| running.truncate(running.len() - words.len()));
    std::hint::black_box(&here);
    result
}

fn frames(captured: Capture) -> Vec<RawFrame> {
    captured.stack.map(|stack| stacks().frames(stack).collect()).unwrap_or_default()
}

/// Returns the words of script frames, with `.` for one or more native frames between them.
fn shape(captured: Capture) -> String {
    let mut shape = String::new();
    for frame in frames(captured) {
        match frame.kind() {
            RawFrameKind::Script { word, .. } => shape.push_str(&word.to_string()),
            _ if !shape.ends_with('.') => shape.push('.'),
            _ => {}
        }
    }
    shape
}

fn script_only() -> CaptureRequest {
    CaptureRequest { native: false, ..CaptureRequest::default() }
}

#[test]
fn frames_are_woven_and_named_until_their_source_is_removed() {
    let _lock = lock_tests();
    let source = register_source(Arc::new(Interpreter)).unwrap();
    let captured = interpret(&[1, 2], || interpret(&[3], || capture(&CaptureRequest::default())));
    assert_eq!(shape(captured), ".3.21.");
    assert_eq!(captured.stop(), None);
    let only = interpret(&[1, 2], || interpret(&[3], || capture(&script_only())));
    assert_eq!(shape(only), "321");
    let names: Vec<_> = frames(only).into_iter().map(|frame| locate(frame).unwrap().name).collect();
    assert_eq!(names.iter().map(|name| &**name).collect::<Vec<_>>(), ["word 3", "word 2", "word 1"]);
    let none = interpret(&[1], || capture(&CaptureRequest { script: false, ..CaptureRequest::default() }));
    assert_eq!(shape(none), ".");
    drop(source);
    assert_eq!(shape(interpret(&[1], || capture(&CaptureRequest::default()))), ".");
    assert_eq!(&*locate(frames(only)[0]).unwrap().name, "word 3", "a stack outlives its source");
}

#[test]
fn the_native_stack_begins_with_the_caller_and_equals_the_unwinders() {
    let _lock = lock_tests();
    #[inline(never)]
    fn both() -> (Capture, Vec<RawFrame>) {
        let captured = capture(&CaptureRequest::default());
        let mut addresses = [stackweave_unwind::CodeAddress::default(); 256];
        let unwound = stackweave_unwind::capture(&mut addresses, 0);
        (captured, addresses[..unwound.len].iter().map(|address| RawFrame::native(*address)).collect())
    }
    let (captured, unwound) = both();
    let woven = frames(captured);
    assert_eq!(woven.len(), unwound.len());
    assert_eq!(woven[1..], unwound[1..]);
    let RawFrameKind::Native(address) = woven[0].kind() else { panic!("{woven:?}") };
    let distance = address.address().wrapping_sub(both as fn() -> _ as usize as u64);
    assert!(distance < 4096, "the first frame is not the caller: {distance:#x}");
}

#[test]
fn skip_and_limit_count_woven_frames() {
    let _lock = lock_tests();
    let source = register_source(Arc::new(Interpreter)).unwrap();
    let words: Vec<u64> = (1..=200).collect();
    let take = |request: &CaptureRequest| interpret(&words, || interpret(&[300, 400], || capture(request)));
    let whole = frames(take(&CaptureRequest::default()));
    for (skip, limit) in [(0, 1), (0, 5), (2, 3), (5, 100), (0, 150), (whole.len() - 1, 10), (whole.len() + 5, 10)] {
        let captured = take(&CaptureRequest { skip, limit, ..CaptureRequest::default() });
        let expected: Vec<_> = whole.iter().skip(skip).take(limit).copied().collect();
        // The call site in this test differs from that of the first capture: compare from the frames that they
        // share.
        let same = |a: &[RawFrame], b: &[RawFrame]| {
            a.len() == b.len()
                && a.iter().zip(b).all(|(a, b)| a == b || !matches!(b.kind(), RawFrameKind::Script { .. }))
        };
        assert!(same(&frames(captured), &expected), "skip {skip} limit {limit}");
        assert_eq!(captured.stop(), (skip + limit < whole.len()).then_some(Stop::Limit), "skip {skip} limit {limit}");
    }
    drop(source);
}

#[test]
fn a_library_can_omit_itself() {
    let _lock = lock_tests();
    #[inline(never)]
    fn library(range: std::ops::Range<u64>) -> Capture {
        let captured = capture(&CaptureRequest { start: CaptureStart::OutsideOf(range), ..CaptureRequest::default() });
        std::hint::black_box(captured)
    }
    let start = library as fn(_) -> _ as usize as u64;
    let (all, outside) = (library(0..1), library(start..start + 4096));
    let (all, outside) = (frames(all), frames(outside));
    assert!(outside.len() < all.len());
    assert_eq!(all[all.len() - outside.len()..][1..], outside[1..]);
}

#[test]
fn a_library_can_omit_all_calls_inside_its_first_function() {
    let _lock = lock_tests();
    #[inline(never)]
    fn inner(start: CaptureStart, depth: u32) -> Capture {
        let captured = if depth == 0 {
            capture(&CaptureRequest { start, ..CaptureRequest::default() })
        } else {
            inner(start, depth - 1)
        };
        std::hint::black_box(captured)
    }
    #[inline(never)]
    fn library(leaves_out: bool, depth: u32) -> Capture {
        let here = std::hint::black_box(0_u8);
        let place = StackPointer((&raw const here).addr() as u64);
        let captured = inner(if leaves_out { CaptureStart::CallerOf(place) } else { CaptureStart::Caller }, depth);
        std::hint::black_box(&here);
        captured
    }
    for depth in [0, 1, 30] {
        let [all, outside] = [false, true].map(|leaves_out| frames(library(leaves_out, depth)));
        assert_eq!(all.len() - outside.len(), depth as usize + 2);
        assert_eq!(all[all.len() - outside.len()..], outside);
    }
    let nowhere = frames(inner(CaptureStart::CallerOf(StackPointer(1)), 3));
    assert_eq!(nowhere.len(), frames(inner(CaptureStart::Caller, 3)).len());
}

#[test]
fn equal_stacks_have_one_id_on_every_thread() {
    let _lock = lock_tests();
    fn ids() -> Vec<StackId> {
        (0..50).map(|_| capture(&CaptureRequest::default()).stack.unwrap()).collect()
    }
    let threads: Vec<_> = (0..4).map(|_| thread::spawn(ids)).collect();
    let ids: HashSet<StackId> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    assert_eq!(ids.len(), 1);
}

#[test]
fn a_warm_capture_does_not_allocate() {
    let _lock = lock_tests();
    let source = register_source(Arc::new(Interpreter)).unwrap();
    interpret(&[1, 2, 3], || {
        for round in 0..3 {
            let before = requests();
            for _ in 0..1000 {
                assert!(capture(&CaptureRequest::default()).stack.is_some());
            }
            if round == 2 {
                assert_eq!(requests(), before);
            }
        }
    });
    drop(source);
}

#[test]
fn removing_a_source_waits_for_captures_that_call_it() {
    let _lock = lock_tests();
    struct Slow {
        is_inside: AtomicBool,
        may_leave: AtomicBool,
        left: AtomicBool,
    }
    impl FrameSource for Slow {
        fn kind(&self) -> SourceKind {
            SourceKind::Script
        }
        fn walk(&self, _walk: SourceWalk<'_>) -> SourceWalkResult {
            self.is_inside.store(true, Ordering::SeqCst);
            while !self.may_leave.load(Ordering::SeqCst) {
                thread::yield_now();
            }
            thread::sleep(std::time::Duration::from_millis(20));
            self.left.store(true, Ordering::SeqCst);
            SourceWalkResult::default()
        }
        fn locate(&self, _frame: RawFrame) -> Option<SourceLocation> {
            None
        }
    }
    let (is_inside, may_leave) = (AtomicBool::new(false), AtomicBool::new(false));
    let slow = Arc::new(Slow { is_inside, may_leave, left: AtomicBool::new(false) });
    let registered = register_source(Arc::clone(&slow) as Arc<dyn FrameSource>).unwrap();
    let capturing = thread::spawn(|| capture(&CaptureRequest::default()));
    while !slow.is_inside.load(Ordering::SeqCst) {
        thread::yield_now();
    }
    slow.may_leave.store(true, Ordering::SeqCst);
    drop(registered);
    assert!(slow.left.load(Ordering::SeqCst));
    assert!(capturing.join().unwrap().stack.is_some());
}

#[test]
fn a_source_may_capture_and_remove_itself_inside_its_walk() {
    let _lock = lock_tests();
    static INNER: AtomicU32 = AtomicU32::new(0);
    thread_local!(static DEPTH: Cell<u32> = const { Cell::new(0) });
    struct Nested;
    impl FrameSource for Nested {
        fn kind(&self) -> SourceKind {
            SourceKind::Script
        }
        fn walk(&self, walk: SourceWalk<'_>) -> SourceWalkResult {
            walk.frames[0] = RawFrame::script(walk.source, 77);
            walk.activations[0] = StackPointer(0);
            if DEPTH.get() == 0 {
                DEPTH.set(1);
                let inner = capture(&CaptureRequest::default());
                INNER.store(inner.stack.map_or(0, StackId::get), Ordering::SeqCst);
                DEPTH.set(0);
            }
            SourceWalkResult { len: 1, stop: SourceStop::EndOfStack, ..SourceWalkResult::default() }
        }
        fn locate(&self, _frame: RawFrame) -> Option<SourceLocation> {
            None
        }
    }
    let registered = register_source(Arc::new(Nested)).unwrap();
    let outer = capture(&CaptureRequest::default());
    assert_eq!(shape(outer), "77.");
    let inner = StackId::new(INNER.load(Ordering::SeqCst)).unwrap();
    assert!(stacks().len(inner) > stacks().len(outer.stack.unwrap()), "the inner one also contains the source's walk");
    drop(registered);
}

#[test]
fn stats_count_captures_and_their_ends() {
    let _lock = lock_tests();
    let before = stats();
    for _ in 0..10 {
        assert_eq!(capture(&script_only()).native_stop, StopReason::EndOfStack);
    }
    let after = stats();
    assert!(after.captures >= before.captures + 10);
    assert!(after.stopped_by(SourceStop::EndOfStack) >= before.stopped_by(SourceStop::EndOfStack) + 10);
}

#[test]
fn a_second_python_source_is_refused() {
    let _lock = lock_tests();
    struct Python;
    impl FrameSource for Python {
        fn kind(&self) -> SourceKind {
            SourceKind::Python
        }
        fn walk(&self, _walk: SourceWalk<'_>) -> SourceWalkResult {
            SourceWalkResult { stop: SourceStop::NoThreadState, ..SourceWalkResult::default() }
        }
        fn locate(&self, _frame: RawFrame) -> Option<SourceLocation> {
            None
        }
    }
    let first = register_source(Arc::new(Python)).unwrap();
    assert!(register_source(Arc::new(Python)).is_none());
    drop(first);
    drop(register_source(Arc::new(Python)).unwrap());
}

/// An interpreter that reports whether its frames are the same as in its last walk.
struct Careful;

thread_local! {
    static LAST: RefCell<Vec<(u64, u64)>> = const { RefCell::new(Vec::new()) };
    /// Whether the next walk is left before its end, as by a signal handler that jumps.
    static LEAVES: Cell<bool> = const { Cell::new(false) };
}

impl FrameSource for Careful {
    fn kind(&self) -> SourceKind {
        SourceKind::Python
    }

    fn walk(&self, walk: SourceWalk<'_>) -> SourceWalkResult {
        let running = RUNNING.with_borrow(Clone::clone);
        for (index, (word, activation)) in running.iter().rev().enumerate() {
            walk.frames[index] = RawFrame::script(0, *word);
            walk.activations[index] = StackPointer(*activation);
        }
        let is_unchanged = LAST.with_borrow(|last| *last == running);
        LAST.set(running.clone());
        if LEAVES.take() {
            resume_unwind(Box::new(()));
        }
        SourceWalkResult { len: running.len(), stop: SourceStop::EndOfStack, inside: None, is_unchanged }
    }

    fn locate(&self, _frame: RawFrame) -> Option<SourceLocation> {
        None
    }
}

#[test]
fn a_walk_that_was_left_has_not_the_stack_of_the_walk_before() {
    let _lock = lock_tests();
    let source = register_source(Arc::new(Careful)).unwrap();
    let captured = [(2, false), (2, false), (3, true), (3, false), (2, false)].map(|(word, leaves)| {
        interpret(&[1, word], || {
            LEAVES.set(leaves);
            catch_unwind(|| capture(&CaptureRequest::default())).ok()
        })
    });
    assert_eq!((captured[0], captured[2]), (captured[1], None));
    assert_ne!(captured[3], captured[0]);
    assert_eq!(captured[4], captured[0]);
    drop(source);
}

#[test]
fn a_repeated_capture_has_the_same_stack_and_others_do_not() {
    let _lock = lock_tests();
    check_repeated(register_source(Arc::new(Careful)).unwrap());
    check_repeated(register_source(Arc::new(Interpreter)).unwrap());
}

fn check_repeated(source: RegisteredSource) {
    let requests = [
        CaptureRequest::default(),
        CaptureRequest { skip: 1, ..CaptureRequest::default() },
        CaptureRequest { limit: 2, ..CaptureRequest::default() },
        CaptureRequest { python: false, ..CaptureRequest::default() },
        CaptureRequest { native: false, ..CaptureRequest::default() },
        CaptureRequest { start: CaptureStart::PythonCaller, ..CaptureRequest::default() },
    ];
    #[inline(never)]
    fn at_one_place(request: &CaptureRequest) -> Capture {
        std::hint::black_box(capture(request))
    }
    #[inline(never)]
    fn at_another(request: &CaptureRequest) -> Capture {
        std::hint::black_box(capture(request))
    }
    let take = |words: &[u64], place: usize, request: usize| {
        let request = &requests[request];
        interpret(words, || if place == 0 { at_one_place(request) } else { at_another(request) })
    };
    let ways = 3 * 2 * requests.len();
    let words: [&[u64]; 3] = [&[1, 2], &[1, 3], &[1]];
    let one = |way: usize| take(words[way % 3], way / 3 % 2, way / 6);
    let mut first = vec![None; ways];
    let mut random = stackweave_testkit::random::Random::new(9);
    let mut way = 0;
    for round in 0..20_000 {
        if random.below(3) == 0 {
            way = random.below(ways);
        }
        let captured = one(way);
        assert_eq!(captured, *first[way].get_or_insert(captured), "way {way}, round {round}");
    }
    let different: HashSet<_> = first.iter().flatten().map(|captured: &Capture| captured.stack).collect();
    assert!(different.len() > ways / 3, "{}", different.len());
    drop(source);
}

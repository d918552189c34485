//! Measures the cost of a walk on fresh frames: one walk per activation, timed inside the call.

use std::arch::x86_64::_rdtsc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use stackweave_core::{FrameSource, RawFrame, SourceWalk, StackPointer};
use stackweave_cpython::{Interpreter, PublicApi, PythonFrame, PythonSource};

use crate::sources::with_memory;

const DEPTH: usize = 256;
static TICKS: AtomicU64 = AtomicU64::new(0);

fn timed(work: impl FnOnce() -> usize) -> usize {
    // SAFETY: every x86-64 has the instruction.
    let before = unsafe { _rdtsc() };
    let len = std::hint::black_box(work());
    // SAFETY: as above.
    TICKS.store(unsafe { _rdtsc() } - before, Ordering::Relaxed);
    len
}

/// Times one direct walk.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_timed_walk() -> usize {
    let mut frames = [PythonFrame::default(); DEPTH];
    let interpreter = Interpreter::find().expect("it is supported");
    timed(|| interpreter.walk(std::hint::black_box(&mut frames)).len)
}

fn timed_source(memory: &mut [u64]) -> usize {
    let (mut frames, mut activations) = ([RawFrame::default(); DEPTH], [StackPointer(0); DEPTH]);
    let source = PythonSource::install().expect("there is an interpreter");
    timed(|| {
        let (frames, activations) = std::hint::black_box((&mut frames[..], &mut activations[..]));
        source.walk(SourceWalk { frames, activations, memory, source: 0, in_signal_handler: false }).len
    })
}

/// Times one walk with code ids along the last stack.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_timed_replay() -> usize {
    with_memory(timed_source)
}

/// Times one walk with code ids without a last stack.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_timed_source() -> usize {
    timed_source(&mut [])
}

/// Returns the nanoseconds of naming a frame.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_timed_locate(frame: u64) -> f64 {
    let source = PythonSource::install().expect("there is an interpreter");
    let frame = RawFrame::from_bits(frame).expect("a walk wrote it");
    let start = Instant::now();
    std::hint::black_box(source.locate(std::hint::black_box(frame)));
    start.elapsed().as_nanos() as f64
}

/// Times one walk by the public API.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_timed_public_walk() -> usize {
    let mut frames = [PythonFrame::default(); DEPTH];
    let api = PublicApi::find().expect("every interpreter has it");
    timed(|| api.walk(std::hint::black_box(&mut frames)).len)
}

/// Returns the nanoseconds of a direct walk, repeated at one stack: the best of many rounds.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_repeated_walk() -> f64 {
    const WALKS: u32 = 1000;
    let mut frames = [PythonFrame::default(); DEPTH];
    let interpreter = Interpreter::find().expect("it is supported");
    let round = |_| {
        let start = Instant::now();
        for _ in 0..WALKS {
            std::hint::black_box(interpreter.walk(std::hint::black_box(&mut frames)));
        }
        start.elapsed().as_nanos() as f64 / f64::from(WALKS)
    };
    (0..50).map(round).fold(f64::INFINITY, f64::min)
}

/// Does the same for walks with code ids, along the last stack.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_repeated_replay() -> f64 {
    const WALKS: u32 = 1000;
    let (mut frames, mut activations) = ([RawFrame::default(); DEPTH], [StackPointer(0); DEPTH]);
    let source = PythonSource::install().expect("there is an interpreter");
    let mut round = |memory: &mut [u64]| {
        let start = Instant::now();
        for _ in 0..WALKS {
            let (frames, activations) = (&mut frames[..], &mut activations[..]);
            let walk = SourceWalk { frames, activations, memory, source: 0, in_signal_handler: false };
            std::hint::black_box(source.walk(std::hint::black_box(walk)));
        }
        start.elapsed().as_nanos() as f64 / f64::from(WALKS)
    };
    with_memory(|memory| std::iter::repeat_with(|| round(memory)).take(50).fold(f64::INFINITY, f64::min))
}

/// Times an empty function.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_timed_nothing() -> usize {
    timed(|| 0)
}

/// Returns the time stamp ticks of the last timed call.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_ticks() -> u64 {
    TICKS.load(Ordering::Relaxed)
}

/// Returns the time stamp ticks in a nanosecond.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_ticks_per_nanosecond() -> f64 {
    // SAFETY: every x86-64 has the instruction.
    let (start, before) = (Instant::now(), unsafe { _rdtsc() });
    std::thread::sleep(Duration::from_millis(50));
    // SAFETY: as above.
    (unsafe { _rdtsc() } - before) as f64 / start.elapsed().as_nanos() as f64
}

//! Reading corrupted memory ends, and reports the problem.

use stackweave_cpython::layout::{Chain, VersionLayout};
use stackweave_testkit::random::Random;

use super::PythonThread;
use super::fake_process::{ACTIVATIONS, BASE, FIRST_LINE, FakeProcess, LINE, THREADS};
use super::fake_threading::name;
use super::problem::Problem;
use super::runtime::Runtime;
use super::snapshot::{PageSnapshot, PageSource};
use super::tasks::Tasks;

const SEED: u64 = 12;
/// Enough work for the unchanged process.
const WORK: u64 = 1 << 20;

pub(super) fn threads(memory: &dyn PageSource, runtime: &Runtime) -> Vec<PythonThread> {
    super::threads::read(&PageSnapshot::with_work(memory, WORK), runtime, &Tasks::with(1..=THREADS))
}

pub(super) fn frames_of(minor: u8) -> usize {
    if minor == 10 { ACTIVATIONS } else { 2 * ACTIVATIONS }
}

pub(super) fn minors() -> impl Iterator<Item = u8> {
    VersionLayout::OLDEST..=VersionLayout::NEWEST
}

#[test]
fn an_unchanged_process_is_read() {
    for minor in minors() {
        let (process, runtime) = FakeProcess::new(minor);
        let found = threads(&process, &runtime);
        assert_eq!(found.len(), THREADS as usize, "3.{minor}");
        for (thread, task) in found.iter().zip(1..) {
            assert_eq!(thread.problem, None, "3.{minor}");
            assert_eq!(thread.pthread, 0x1000 * u64::from(task));
            assert_eq!(thread.task, (minor > 10).then_some(task), "3.{minor}");
            assert_eq!(thread.has_gil, task == 1, "3.{minor}");
            assert_eq!(thread.name.as_deref(), Some(&*name(task)), "3.{minor}");
            assert_eq!(thread.frames.len(), frames_of(minor), "3.{minor}");
            let mut activations: Vec<_> = thread.frames.iter().map(|frame| frame.activation).collect();
            activations.dedup();
            assert_eq!(activations.len(), ACTIVATIONS, "3.{minor}");
            for frame in &thread.frames {
                let qualname = (minor > 10).then_some("A.work");
                assert_eq!((&*frame.name, frame.qualname.as_deref(), &*frame.filename), ("work", qualname, "work.py"));
                assert_eq!((frame.position.line, frame.first_line), (Some(LINE), Some(FIRST_LINE)), "3.{minor}");
                assert!(frame.activation.0 > BASE);
            }
        }
    }
}

#[test]
fn reading_ends_after_any_change() {
    println!("seed {SEED}");
    let mut random = Random::new(SEED);
    for minor in minors() {
        let (process, runtime) = FakeProcess::new(minor);
        let (mut problems, mut most, mut unnamed) = (0, 0, 0);
        for _ in 0..4000 {
            let mut changed = process.clone();
            for _ in 0..=random.below(6) {
                change(&mut changed.bytes, &mut random);
            }
            let found = threads(&changed, &runtime);
            unnamed += usize::from(found.iter().any(|thread| thread.name.is_none() && thread.problem.is_none()));
            problems += usize::from(found.iter().any(|thread| thread.problem.is_some()));
            most = most.max(found.iter().map(|thread| thread.frames.len()).sum());
        }
        assert!(problems > 100, "3.{minor}: {problems} problems");
        assert!(unnamed > 100, "3.{minor}: {unnamed} without names");
        assert!(most <= THREADS as usize * 3 * ACTIVATIONS, "3.{minor}: {most} frames");
    }
}

/// Replaces a word that is not zero: by a random, a similar or a small one, or by another word of the memory.
fn change(bytes: &mut [u8], random: &mut Random) {
    let words = bytes.len() / 8;
    let word = |bytes: &[u8], index: usize| u64::from_le_bytes(bytes[8 * index..8 * index + 8].try_into().unwrap());
    let at = loop {
        let at = random.below(words);
        if word(bytes, at) != 0 {
            break at;
        }
    };
    let old = word(bytes, at);
    let new = match random.below(6) {
        0 => random.bits(),
        1 => old ^ 1 << random.below(64),
        2 => BASE + 8 * random.below(words) as u64,
        3 => random.below(300) as u64,
        4 => old.wrapping_add(8).wrapping_sub(16 * random.below(2) as u64),
        _ => word(bytes, random.below(words)),
    };
    bytes[8 * at..8 * at + 8].copy_from_slice(&new.to_le_bytes());
}

#[test]
fn cycles_of_frames_are_reported() {
    for minor in minors() {
        let (mut process, runtime) = FakeProcess::new(minor);
        let (first, last) = (process.frames[0], *process.frames.last().unwrap());
        process.put(last, runtime.layout.frame.previous, first);
        let found = threads(&process, &runtime);
        // Where the lists of loops and of frames must match, the mismatch is found first.
        let has_lists =
            matches!(runtime.layout.thread.chain, Chain::EntryFlags { .. } | Chain::ShimsBehindCFrame { .. });
        let expected = if has_lists { Problem::BetweenLoops } else { Problem::Circle };
        assert_eq!(found[1].problem, Some(expected.to_string()), "3.{minor}");
        assert_eq!(found[1].frames.len(), if has_lists { 0 } else { frames_of(minor) }, "3.{minor}");
        assert_eq!((found[0].frames.len(), &found[0].problem), (frames_of(minor), &None), "3.{minor}");
    }
}

#[test]
fn cycles_of_threads_and_interpreters_are_reported() {
    for minor in minors() {
        let (mut process, runtime) = FakeProcess::new(minor);
        let (first, last) = (process.states[0], *process.states.last().unwrap());
        process.put(last, runtime.lists.next_thread, first);
        let check = |process: &FakeProcess| {
            let found = threads(process, &runtime);
            let (broken, known) = found.split_last().unwrap();
            assert_eq!((broken.pthread, &broken.problem), (0, &Some(Problem::Lists.to_string())), "3.{minor}");
            assert!(known.len() == THREADS as usize && known.iter().all(|thread| thread.problem.is_none()));
        };
        check(&process);
        process.put(last, runtime.lists.next_thread, 0);
        process.put(process.interpreter, runtime.lists.next_interpreter, process.interpreter);
        check(&process);
    }
}

#[test]
fn an_uninitialised_innermost_loop_is_omitted() {
    for minor in [11, 12] {
        let (mut process, runtime) = FakeProcess::new(minor);
        let (Chain::EntryFlags { c_frame, current_frame, previous_c_frame, .. }
        | Chain::ShimsBehindCFrame { c_frame, current_frame, previous_c_frame }) = runtime.layout.thread.chain
        else {
            unreachable!()
        };
        let state = process.states[1];
        let innermost = PageSnapshot::new(&process).word(state, c_frame).unwrap();
        let read = |process: &FakeProcess| threads(process, &runtime).pop().unwrap();
        for stale in [0, 8, BASE + 64, u64::MAX] {
            process.put(innermost, current_frame, stale);
            let thread = read(&process);
            assert_eq!((thread.frames.len(), thread.problem), (2 * ACTIVATIONS - 2, None), "3.{minor} {stale:#x}");
        }
        process.put(innermost, previous_c_frame, innermost);
        let thread = read(&process);
        assert_eq!((thread.frames.len(), thread.problem), (0, Some(Problem::BetweenLoops.to_string())), "3.{minor}");
    }
}

/// Endless frames, behind an unchanged process.
struct Endless(FakeProcess);

const ENDLESS: u64 = BASE + (1 << 40);
const STRIDE: u64 = 256;

impl PageSource for Endless {
    fn read(&self, address: u64, into: &mut [u8]) -> Option<()> {
        if address < ENDLESS {
            return self.0.read(address, into);
        }
        for (byte, at) in into.iter_mut().zip(address..) {
            *byte = match at % STRIDE {
                // The previous frame is the next in memory.
                place @ 8..16 => (at - place + STRIDE).to_le_bytes()[usize::try_from(place - 8).ok()?],
                // A frame that runs no Python.
                _ => 4,
            };
        }
        Some(())
    }
}

#[test]
fn walks_of_endless_frames_end() {
    for minor in 13..=VersionLayout::NEWEST {
        let (mut process, runtime) = FakeProcess::new(minor);
        let last = *process.frames.last().unwrap();
        process.put(last, runtime.layout.frame.previous, ENDLESS);
        let thread = threads(&Endless(process), &runtime).pop().unwrap();
        assert_eq!((thread.frames.len(), thread.problem), (frames_of(minor), Some(Problem::Unreadable.to_string())));
    }
}

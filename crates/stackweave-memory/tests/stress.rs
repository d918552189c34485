//! Many threads, forks, loads, signals and exits at once: nothing crashes, hangs or is lost.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a failure fails the test, which prints its figures")]

mod common;

use std::ffi::{CString, c_char, c_int};
use std::sync::atomic::{AtomicU64, Ordering};

use common::{Counts, Outcome, Recorded, bytes_by_function, command, function, run};
use stackweave_capture::{CaptureRequest, CaptureStart, capture};
use stackweave_memory::{MemoryMode, MemoryOptions};
use stackweave_recording::Recording;
use stackweave_testkit::child::{self, role};
use stackweave_testkit::fixtures::{ALLOCATING, ALLOCATING_LATER, STRESS};
use stackweave_testkit::library::Library;

/// The library with the stress functions.
struct Stress(Library);

macro_rules! call {
    ($stress:expr, $name:literal ($($argument:expr),*) as $type:ty) => {{
        // SAFETY: the fixture's function of that name has that type.
        let function: $type = unsafe { function(&$stress.0, $name) };
        // SAFETY: as it is meant to be called.
        unsafe { function($($argument),*) }
    }};
}

impl Stress {
    fn open() -> Self {
        Self(Library::open(STRESS).unwrap())
    }

    fn threads(&self, threads: u64, rounds: u64) {
        call!(self, "sw_stress_threads"(threads, rounds) as unsafe extern "C" fn(u64, u64));
    }

    fn churn(&self, seed: u64, rounds: u64) {
        call!(self, "sw_stress_churn"(seed, rounds) as unsafe extern "C" fn(u64, u64));
    }

    fn free_all(&self) {
        call!(self, "sw_stress_free_all"() as unsafe extern "C" fn());
    }

    /// Returns the functions' own counts: allocated bytes, allocated blocks, freed blocks; and the blocks of libraries
    /// that were loaded meanwhile.
    fn own_count(&self) -> [u64; 4] {
        ["sw_allocated_bytes", "sw_allocated_blocks", "sw_freed_blocks", "sw_loaded_blocks"].map(|name| {
            // SAFETY: the fixture's counter, of this size; no other thread is running.
            unsafe { self.0.symbol(name).cast::<u64>().read_volatile() }
        })
    }

    /// Asserts that every block they requested is in the recording, and none twice.
    fn assert_all_is_recorded(&self, outcome: &Outcome) -> Counts {
        let [bytes, allocated, freed, _] = self.own_count();
        let (counts, totals) = (Counts::of(&outcome.snapshot), &outcome.snapshot.devices[0].totals);
        assert_eq!(bytes_by_function(&outcome.snapshot, "sw_stress_").values().sum::<u64>(), bytes);
        let others = counts.allocations.checked_sub(allocated).unwrap();
        let others_freed = counts.frees.checked_sub(freed).unwrap();
        // The C library's own blocks, for its threads and for loaded modules.
        assert!(others < allocated / 10 && others_freed <= others, "{others} {others_freed} {counts:?}");
        assert_eq!(totals.replaced, 0, "{totals:?}");
        // The loader's memory for thread-local variables, which the C library frees when it reuses a stack.
        assert!(totals.unknown_frees < 1000, "{totals:?}");
        assert_eq!(counts.live_blocks - (others - others_freed), allocated - freed);
        println!("{counts:?}, {others} by the C library");
        counts
    }
}

/// Runs the test again in a separate process, in each mode.
fn in_both_modes(name: &str, play: fn(MemoryMode)) {
    match role().as_deref() {
        None => drop(["history", "aggregate"].map(|role| run(name, role, None))),
        Some("aggregate") => play(MemoryMode::Aggregate),
        Some(_) => play(MemoryMode::History),
    }
}

fn start(mode: MemoryMode) -> Recorded {
    Recorded::start(MemoryOptions { mode, ..MemoryOptions::default() })
}

#[test]
fn fifty_threads_free_blocks_that_others_have_allocated() {
    in_both_modes("fifty_threads_free_blocks_that_others_have_allocated", |mode| {
        let stress = Stress::open();
        let recorded = start(mode);
        for _ in 0..2 {
            stress.threads(50, 300);
        }
        stress.free_all();
        let outcome = recorded.stop();
        stress.assert_all_is_recorded(&outcome);
    });
}

#[test]
fn libraries_are_loaded_and_unloaded_in_threads() {
    in_both_modes("libraries_are_loaded_and_unloaded_in_threads", |mode| {
        let stress = Stress::open();
        let paths: Vec<CString> = [ALLOCATING[0].1, ALLOCATING[1].1, ALLOCATING[3].1, ALLOCATING_LATER]
            .map(|path| CString::new(path).unwrap())
            .into();
        let pointers: Vec<*const c_char> = paths.iter().map(|path| path.as_ptr()).collect();
        let recorded = start(mode);
        call!(
            stress,
            "sw_stress_loaders"(pointers.as_ptr(), pointers.len() as u64, 5_000)
                as unsafe extern "C" fn(*const *const c_char, u64, u64)
        );
        stress.free_all();
        let outcome = recorded.stop();
        let [bytes, allocated, _, loaded] = stress.own_count();
        assert_eq!(bytes_by_function(&outcome.snapshot, "sw_stress_").values().sum::<u64>(), bytes);
        let (counts, totals) = (Counts::of(&outcome.snapshot), &outcome.snapshot.devices[0].totals);
        assert!(counts.allocations >= allocated + loaded && loaded > 100, "{loaded} {allocated} {counts:?}");
        // A free by a library that is not hooked yet, or whose slot the loader is binding, is not recorded.
        assert!(totals.replaced < 10, "{totals:?}");
    });
}

static HANDLED: AtomicU64 = AtomicU64::new(0);

extern "C" fn capture_in_handler(_: c_int) {
    let request =
        CaptureRequest { python: true, native: true, script: true, skip: 0, limit: 100, start: CaptureStart::Caller };
    capture(&request);
    HANDLED.fetch_add(1, Ordering::Relaxed);
}

/// Interrupts the process a thousand times for each second of its processor time.
fn interrupt_often() {
    let interval = libc::timeval { tv_sec: 0, tv_usec: 1000 };
    let timer = libc::itimerval { it_interval: interval, it_value: interval };
    // SAFETY: the handler does only what handlers may do; the timer is the process's own.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = capture_in_handler as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(libc::sigaction(libc::SIGPROF, &raw const action, std::ptr::null_mut()), 0);
        assert_eq!(libc::setitimer(libc::ITIMER_PROF, &raw const timer, std::ptr::null_mut()), 0);
    }
}

#[test]
fn signal_handlers_capture_during_events() {
    in_both_modes("signal_handlers_capture_during_events", |mode| {
        let stress = Stress::open();
        let recorded = start(mode);
        interrupt_often();
        stress.threads(20, 200);
        call!(stress, "sw_throw"(500) as unsafe extern "C" fn(u64));
        stress.threads(20, 200);
        stress.free_all();
        let outcome = recorded.stop();
        assert!(HANDLED.load(Ordering::Relaxed) > 0);
        let [bytes, ..] = stress.own_count();
        assert_eq!(bytes_by_function(&outcome.snapshot, "sw_stress_").values().sum::<u64>(), bytes);
        assert_eq!(outcome.snapshot.devices[0].totals.replaced, 0);
    });
}

#[test]
fn forks_during_events() {
    const CHILDREN: usize = 24;
    in_both_modes("forks_during_events", |mode| {
        let stress = Stress::open();
        let recorded = start(mode);
        let shared = &SharedStress(&stress);
        std::thread::scope(|scope| {
            let stress = shared;
            scope.spawn(move || stress.get().threads(10, 4000));
            for which in 0..CHILDREN {
                fork_one(stress.get(), &recorded, which);
            }
        });
        stress.free_all();
        let files = std::fs::read_dir(recorded.path()).unwrap().count();
        assert!(files > 1, "children whose recording began have their own recordings");
        let outcome = recorded.stop();
        stress.assert_all_is_recorded(&outcome);
    });
}

/// The fixture that the threads of a scope share.
struct SharedStress<'a>(&'a Stress);
// SAFETY: all threads may call the fixture's functions.
unsafe impl Sync for SharedStress<'_> {}
impl SharedStress<'_> {
    fn get(&self) -> &Stress {
        self.0
    }
}

/// Forks a child that begins its own recording, or does not, and exits in one of two ways.
fn fork_one(stress: &Stress, recorded: &Recorded, which: usize) {
    // SAFETY: the child calls what the test is about, and exits. glibc makes its allocator usable in it.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // SAFETY: a limit for the child.
        unsafe { libc::alarm(30) };
        if which.is_multiple_of(2) {
            recorded.memory.begin_in_child();
        }
        stress.churn(which as u64, 500);
        // SAFETY: ends the child.
        unsafe { if which % 4 < 2 { libc::_exit(0) } else { libc::exit(0) } }
    }
    let mut status = 0;
    // SAFETY: waits for the child.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    assert_eq!(status, 0, "child {which}");
}

#[test]
fn events_before_an_immediate_exit_are_in_the_recording() {
    const NAME: &str = "events_before_an_immediate_exit_are_in_the_recording";
    if role().is_some() {
        let recorded = start(MemoryMode::History);
        println!("at {}", recorded.path().display());
        let stress = Stress::open();
        stress.churn(1, 200_000);
        // SAFETY: ends the process, in the middle of its recording.
        unsafe { libc::_exit(0) };
    }
    let output = child::run(&mut command(NAME, "exits", None));
    let text = child::text(&output);
    assert!(output.status.success(), "{text}");
    let folder = text.lines().find_map(|line| line.split_once("at ").map(|(_, path)| path.to_owned())).unwrap();
    let recording = Recording::open(&std::path::Path::new(&folder).join("out.swv"));
    let is_there = recording.is_ok_and(|recording| recording.processes().len() == 1);
    std::fs::remove_dir_all(folder).unwrap();
    assert!(is_there);
}

/// Returns the resident size of the process, in bytes.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

fn many_live_blocks(count: u64) {
    let stress = Stress::open();
    let recorded = start(MemoryMode::Aggregate);
    let before = resident();
    call!(stress, "sw_stress_many"(count, 32) as unsafe extern "C" fn(u64, usize) -> *mut *mut u8);
    let stats = recorded.memory.ledger_stats().unwrap();
    let own = count * (48 + 8);
    let (added, kept) = (resident() - before, stats.bytes_used as u64);
    println!(
        "{count} live blocks: {} MiB more, of which the program's own are {} MiB, the ledger {} MiB; {} bytes a block",
        added >> 20,
        own >> 20,
        kept >> 20,
        added.saturating_sub(own) / count
    );
    assert!(!stats.is_incomplete && kept < count * 64, "{stats:?}");
    let outcome = recorded.stop();
    let counts = Counts::of(&outcome.snapshot);
    let others = counts.allocations - count - 1;
    assert!(others < 100, "{counts:?}");
    assert_eq!(bytes_by_function(&outcome.snapshot, "sw_stress_many")["sw_stress_many"], count * (32 + 8));
}

#[test]
fn many_live_blocks_are_all_known() {
    const NAME: &str = "many_live_blocks_are_all_known";
    match role() {
        None => drop(run(NAME, "keeps", None)),
        Some(_) => many_live_blocks(300_000),
    }
}

#[test]
#[ignore = "takes a minute, and 2 GiB"]
fn ten_million_live_blocks_are_all_known() {
    const NAME: &str = "ten_million_live_blocks_are_all_known";
    match role() {
        None => println!("{}", run(NAME, "keeps", None)),
        Some(_) => many_live_blocks(10_000_000),
    }
}

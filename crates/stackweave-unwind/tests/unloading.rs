//! Unloaded libraries, and code that is mapped at their addresses.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![expect(clippy::cast_possible_truncation, reason = "the platform is 64-bit")]
#![expect(clippy::expect_used, reason = "a test that cannot do its work must fail")]

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use stackweave_testkit::fixtures::{PLUGIN_INNER, PLUGIN_OUTER, PluginEnter, call_through, sw_recurse_wide};
use stackweave_testkit::library::Library;
use stackweave_testkit::oracles::{ALL, SIGNAL_SAFE, libgcc};
use stackweave_testkit::random::Random;
use stackweave_testkit::stack::describe;
use stackweave_testkit::stack_checker::StackChecker;
use stackweave_testkit::tree::{CALL_ON_WAY_DOWN, CALL_ON_WAY_UP, FUNCTIONS, FramePointers, find_known, walk};
use stackweave_testkit::truth::{KnownFrame, first_untrue, outward_from_here};
use stackweave_testkit::{modules, subject};
use stackweave_unwind::{CodeAddress, StopReason};

const PLUGINS: [&str; 2] = [PLUGIN_INNER, PLUGIN_OUTER];

/// Locked by each test: the mappings of one test may use the address that another test needs to be free.
static MAPPINGS: Mutex<()> = Mutex::new(());

fn lock_tests() -> MutexGuard<'static, ()> {
    MAPPINGS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Loads the plugin, calls `check` through it, and unloads it. Returns the address of its function. The plugin is
/// called at a depth where the loader does not overwrite its frames.
fn check_inside(path: &str, check: &mut dyn FnMut()) -> u64 {
    let library = Library::open(path).expect("the fixture was built");
    let symbol = library.symbol("sw_plugin_enter");
    let mut enter = || {
        call_through(check, |callback, data| {
            // SAFETY: the symbol is that function of the fixture, which gets a callback with its own data.
            unsafe { std::mem::transmute::<*mut c_void, PluginEnter>(symbol)(callback, data) };
        });
    };
    call_through(&mut enter, |callback, data| {
        // SAFETY: the fixture gets a callback with its own data; 20 frames of 4 KiB fit.
        unsafe { sw_recurse_wide(20, callback, data) };
    });
    symbol as u64
}

#[test]
fn a_library_at_the_address_of_another_is_unwound_by_its_own_rules() {
    const ROUNDS: usize = 300;
    let _lock = lock_tests();
    let mut checker = StackChecker::new(4096);
    let mut same_place = 0;
    let mut last = 0;
    let before = stackweave_unwind::stats().resets;
    for round in 0..ROUNDS {
        let oracles = if round % 20 == 0 { ALL } else { SIGNAL_SAFE };
        let place = check_inside(PLUGINS[round % 2], &mut || checker.check_here("inside the plugin", oracles));
        if round % 10 == 0 {
            checker.check_here("after the plugin", SIGNAL_SAFE);
        }
        same_place += usize::from(place == last);
        last = place;
    }
    checker.expect_agreement(ROUNDS * 3);
    assert!(same_place > ROUNDS / 10, "the libraries were at one address in only {same_place} of {ROUNDS} rounds");
    if !subject::is_libgcc() {
        assert!(stackweave_unwind::stats().resets > before, "unloading was not noticed");
    }
}

/// Writable and executable memory at a given address.
struct MappedCode {
    start: *mut c_void,
    size: usize,
}

impl MappedCode {
    fn at(place: u64, bytes: &[u8]) -> Option<Self> {
        let place: *mut c_void = std::ptr::with_exposed_provenance_mut(place as usize);
        let protection = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
        // SAFETY: maps new memory, and never over existing mappings.
        let start = unsafe { libc::mmap(place, bytes.len(), protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return None;
        }
        // SAFETY: the mapping has that size, and is new.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), start.cast(), bytes.len()) };
        Some(Self { start, size: bytes.len() })
    }
}

impl Drop for MappedCode {
    fn drop(&mut self) {
        // SAFETY: unmaps what `at` mapped; no thread runs there any longer.
        unsafe { libc::munmap(self.start, self.size) };
    }
}

/// Returns the code of a plugin, and the offset of its function.
fn code_of(path: &str) -> (Vec<u8>, u64) {
    let library = Library::open(path).expect("the fixture was built");
    let enter = library.symbol("sw_plugin_enter") as u64;
    let module = modules::loaded().into_iter().find(|module| module.contains(enter)).expect("it is loaded");
    let code = module.code[0].clone();
    let start = code.start & !4095;
    let size = (code.end - start).next_multiple_of(4096) as usize;
    // SAFETY: complete pages of a mapped segment.
    let bytes = unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance(start as usize), size) };
    (bytes.to_vec(), enter - start)
}

/// Captures inside code that no table describes, at `enter`; returns the first wrong frame.
#[inline(never)]
fn first_untrue_frame_inside(enter: u64) -> Option<String> {
    let mut truth = Vec::new();
    let mut frames = vec![CodeAddress::default(); 512];
    let mut result = None;
    let mut outward = Vec::new();
    let mut check = || {
        let mut inside = [CodeAddress::default(); 64];
        let known = libgcc::capture(&mut inside, &mut [], 0);
        truth.push(KnownFrame::Within(libgcc::function_start(inside[0])));
        truth.extend(inside[1..known.len].iter().map(|&frame| KnownFrame::Exactly(frame)));
        result = Some(subject::capture(&mut frames, 0));
    };
    call_through(&mut check, |callback, data| {
        outward = outward_from_here();
        let enter: *const c_void = std::ptr::with_exposed_provenance(enter as usize);
        // SAFETY: the code there is that of the plugin, which is position-independent.
        unsafe { std::mem::transmute::<*const c_void, PluginEnter>(enter)(callback, data) };
    });
    // `sub $imm32, %rsp` and `call` are 12 bytes: behind them the plugin's inner function returns.
    truth.push(KnownFrame::Exactly(CodeAddress::return_address(enter + 12)));
    truth.extend(outward);
    let captured = result.expect("the plugin calls back");
    let untrue = first_untrue(&frames[..captured.len], &truth)?;
    let lines: Vec<_> = frames[..captured.len].iter().map(|&frame| describe(frame)).collect();
    Some(format!("frame {untrue}, {captured:?}\n{}", lines.join("\n")))
}

#[test]
fn code_at_the_address_of_a_library_is_not_unwound_by_its_rules() {
    const ENOUGH: usize = 20;
    let _lock = lock_tests();
    let (code, offset) = code_of(PLUGIN_OUTER);
    let mut checker = StackChecker::new(4096);
    let mut mapped = 0;
    for _ in 0..200 {
        let enter = check_inside(PLUGIN_INNER, &mut || checker.check_here("inside the plugin", SIGNAL_SAFE));
        if let Some(_code) = MappedCode::at(enter - offset, &code) {
            let untrue = first_untrue_frame_inside(enter);
            assert!(untrue.is_none(), "{}", untrue.unwrap_or_default());
            mapped += 1;
        }
        if mapped == ENOUGH {
            break;
        }
    }
    checker.expect_agreement(mapped);
    assert_eq!(mapped, ENOUGH, "the address of the library was rarely free");
}

/// Walks random paths and checks each frame against the known ones, until `stop` is set.
fn capture_until(stop: &AtomicBool, seed: u64) -> StackChecker {
    let mut random = Random::new(seed);
    let mut checker = StackChecker::new(512);
    let mut frames = vec![CodeAddress::default(); 512];
    let mut outward = vec![CodeAddress::default(); 512];
    loop {
        let mut path = vec![0_u8; 1 + random.below(30)];
        for step in &mut path {
            *step = random.byte_below(FUNCTIONS);
            *step |= if random.below(2) == 0 { CALL_ON_WAY_DOWN | CALL_ON_WAY_UP } else { 0 };
        }
        let outward_count = libgcc::capture(&mut outward, &mut [], 1).len;
        let outward = &outward[..outward_count];
        walk(FramePointers::Omitted, &path, &mut |known| {
            let captured = subject::capture(&mut frames, 0);
            let ours = &frames[..captured.len];
            let right =
                captured.stop == StopReason::EndOfStack && find_known(ours, known).is_some() && ours.ends_with(outward);
            checker.record_comparison("a thread's own frames", (ours, captured.stop), outward, (!right).then_some(0));
        });
        if stop.load(Ordering::Relaxed) {
            return checker;
        }
        thread::yield_now();
    }
}

#[test]
fn a_hundred_threads_capture_correctly_while_libraries_are_loaded_and_unloaded() {
    const THREADS: u64 = 100;
    let _lock = lock_tests();
    let stop = AtomicBool::new(false);
    let before = stackweave_unwind::stats().resets;
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|seed| {
                let stop = &stop;
                scope.spawn(move || capture_until(stop, seed))
            })
            .collect();
        let mut checker = StackChecker::new(4096);
        let deadline = Instant::now() + Duration::from_secs(3);
        let mut rounds = 0;
        while rounds < 20 || (Instant::now() < deadline && rounds < 20_000) {
            check_inside(PLUGINS[rounds % 2], &mut || checker.check_here("inside the plugin", SIGNAL_SAFE));
            rounds += 1;
        }
        stop.store(true, Ordering::Relaxed);
        let ledgers: Vec<_> = threads.into_iter().map(|thread| thread.join().expect("no panic")).collect();
        checker.expect_agreement(20);
        for checker in &ledgers {
            checker.expect_agreement(1);
        }
    });
    if !subject::is_libgcc() {
        assert!(stackweave_unwind::stats().resets > before, "unloading was not noticed");
    }
}

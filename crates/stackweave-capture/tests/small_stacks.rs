//! Handlers run on the alternate stack, as runtimes with small stacks require, and need little of it.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![expect(clippy::unwrap_used, reason = "a failed preparation fails the test")]

use std::ffi::c_void;
use std::mem::zeroed;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use stackweave_capture::DumpOptions;

#[allow(dead_code, reason = "other tests use the remaining items")]
mod dumping;

use dumping::{dump, lock_tests, wait_for};

const PAGE: usize = 4096;
/// The size of the small stack. A goroutine has 2 to 8 KB.
const SMALL: usize = 2 * PAGE;
/// The size of Go's alternate stacks.
const ALTERNATE: usize = 32 << 10;

/// Mapped memory with an inaccessible page below.
struct Memory {
    start: *mut c_void,
    bytes: usize,
}

impl Memory {
    fn map(bytes: usize) -> Self {
        // SAFETY: a new mapping.
        let start = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let start = libc::mmap(ptr::null_mut(), PAGE + bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
            assert_ne!(start, libc::MAP_FAILED);
            assert_eq!(libc::mprotect(start, PAGE, libc::PROT_NONE), 0);
            start
        };
        Self { start, bytes }
    }

    fn stack(&self) -> libc::stack_t {
        libc::stack_t { ss_sp: self.start.wrapping_byte_add(PAGE), ss_flags: 0, ss_size: self.bytes }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping has this size, and its test is over.
        unsafe { libc::munmap(self.start, PAGE + self.bytes) };
    }
}

static MAY_WAKE: AtomicBool = AtomicBool::new(false);
static ASLEEP: AtomicUsize = AtomicUsize::new(0);

/// Sleeps on the small stack.
#[inline(never)]
extern "C" fn sleep_on_a_small_stack() {
    ASLEEP.fetch_add(1, Ordering::SeqCst);
    let long = libc::timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    while !MAY_WAKE.load(Ordering::SeqCst) {
        // SAFETY: a complete timespec.
        unsafe { libc::nanosleep(&raw const long, ptr::null_mut()) };
    }
}

/// Runs on a small stack, with an alternate stack of this size; 0: none.
fn run_on_a_small_stack(alternate: usize) {
    let (small, alternate) = (Memory::map(SMALL), (alternate > 0).then(|| Memory::map(alternate)));
    let none = libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
    let signals = alternate.as_ref().map_or(none, Memory::stack);
    // SAFETY: both contexts and stacks live until the second context has ended, and the first is current again.
    unsafe {
        let mut old: libc::stack_t = zeroed();
        assert_eq!(libc::sigaltstack(&raw const signals, &raw mut old), 0);
        let (mut back, mut there): (libc::ucontext_t, libc::ucontext_t) = (zeroed(), zeroed());
        assert_eq!(libc::getcontext(&raw mut there), 0);
        there.uc_stack = small.stack();
        there.uc_link = &raw mut back;
        libc::makecontext(&raw mut there, sleep_on_a_small_stack, 0);
        assert_eq!(libc::swapcontext(&raw mut back, &raw const there), 0);
        assert_eq!(libc::sigaltstack(&raw const old, ptr::null_mut()), 0);
    }
}

/// Returns whether an offset in this program is in the function, generously.
fn is_asleep_in(offset: u64) -> bool {
    let address = sleep_on_a_small_stack as *const () as u64;
    let modules = stackweave_unwind::modules();
    let (_, module) = modules.find(address).unwrap();
    (address - module.start..address - module.start + 512).contains(&offset)
}

#[test]
fn threads_on_small_stacks_reply_with_complete_stacks() {
    let _lock = lock_tests();
    // The smallest stack that the kernel allows leaves almost nothing to a handler.
    // SAFETY: `sysconf` has no preconditions.
    let smallest = usize::try_from(unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) }).unwrap();
    let alternates = [ALTERNATE, SMALL.max(smallest + 1024)];
    let start = |alternate| {
        let body = move || run_on_a_small_stack(alternate);
        thread::Builder::new().name("sleeps".into()).spawn(body).unwrap()
    };
    let threads: Vec<_> = alternates.into_iter().map(start).collect();
    wait_for(|| ASLEEP.load(Ordering::SeqCst) == alternates.len());
    for _ in 0..20 {
        let (dumped, text) = dump(&DumpOptions { calling_thread: None, ..dumping::patient() });
        let dumped = dumped.unwrap();
        assert_eq!(dumped.answered, dumped.threads, "{text}");
        let sleeping: Vec<_> = text.split("\n\n").filter(|block| block.contains("\"sleeps\"")).collect();
        assert_eq!(sleeping.len(), alternates.len(), "{text}");
        for block in sleeping {
            let lines: Vec<String> = block.lines().map(str::to_owned).collect();
            // The function in which glibc begins a context has no unwind entry: the sleeping function is the last
            // but one of the stack.
            assert!(dumping::native_offsets(&lines).into_iter().any(is_asleep_in), "{block}");
        }
    }
    MAY_WAKE.store(true, Ordering::SeqCst);
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn every_installed_handler_uses_the_alternate_stack() {
    let _lock = lock_tests();
    let ours: Vec<_> = (1..=64)
        .filter_map(|signal| {
            // SAFETY: an all-zero `sigaction` is valid, and nothing is changed.
            let mut action: libc::sigaction = unsafe { zeroed() };
            // SAFETY: as above.
            let done = unsafe { libc::sigaction(signal, ptr::null(), &raw mut action) };
            (done == 0 && action.sa_sigaction > libc::SIG_IGN).then_some((signal, action.sa_flags))
        })
        .collect();
    assert!(ours.iter().any(|(signal, _)| *signal >= libc::SIGRTMIN()), "{ours:?}");
    assert!(ours.iter().all(|(_, flags)| flags & libc::SA_ONSTACK != 0), "{ours:?}");
}

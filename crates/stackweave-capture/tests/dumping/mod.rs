//! Threads at known locations, and a parser for dumps.

#![expect(clippy::unwrap_used, reason = "a failed preparation fails the test")]

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Builder, JoinHandle, yield_now};
use std::time::{Duration, Instant};

use stackweave_capture::{DumpError, DumpOptions, DumpSummary, dump_all_threads, prepare_dumps};
use stackweave_testkit::counting_allocator::requests;

pub(crate) mod script;

/// Takes the lock of tests that run in one process, because threads are process-wide.
pub(crate) fn lock_tests() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    let lock = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    prepare_dumps().unwrap();
    lock
}

pub(crate) fn wait_for(mut condition: impl FnMut() -> bool) {
    while !condition() {
        yield_now();
    }
}

/// A memory file.
pub(crate) struct MemoryFile(std::fs::File);

impl MemoryFile {
    pub(crate) fn new() -> Self {
        use std::os::fd::FromRawFd;
        // SAFETY: creates a new descriptor, which has no other owner.
        Self(unsafe { std::fs::File::from_raw_fd(libc::memfd_create(c"dump".as_ptr(), 0)) })
    }

    pub(crate) fn fd(&self) -> c_int {
        self.0.as_raw_fd()
    }

    pub(crate) fn text(&self) -> String {
        std::fs::read_to_string(format!("/proc/self/fd/{}", self.fd())).unwrap()
    }
}

/// Returns options for a machine on which threads get a turn only now and then.
pub(crate) fn patient() -> DumpOptions {
    DumpOptions { timeout: Duration::from_secs(60), ..DumpOptions::default() }
}

pub(crate) fn dump(options: &DumpOptions) -> (Result<DumpSummary, DumpError>, String) {
    let file = MemoryFile::new();
    (dump_all_threads(file.fd(), options), file.text())
}

/// Returns the lines of each thread by its name. Of threads with the same name, returns the last.
pub(crate) fn threads_in(text: &str) -> BTreeMap<String, Vec<String>> {
    let blocks = text.split("\n\n").skip(usize::from(text.starts_with("Stackweave")));
    let named = blocks.map(|block| {
        let lines: Vec<String> = block.lines().map(str::to_owned).collect();
        let task = lines[0].split(' ').nth(1).unwrap().to_owned();
        let name = lines[0].split('"').nth(1).unwrap().to_owned();
        let is_test = ["sleeps", "deaf", "stuck in loader", "stackweave-dog"].contains(&&*name);
        (if is_test { name } else { format!("{task} {name}") }, lines)
    });
    named.collect()
}

/// Returns the offsets in this program of a thread's frames.
pub(crate) fn native_offsets(lines: &[String]) -> Vec<u64> {
    let program = std::env::current_exe().unwrap();
    let program = program.file_name().unwrap().to_str().unwrap();
    let offset = |line: &String| {
        let (name, offset) = line.strip_prefix("  | ")?.rsplit_once("+0x")?;
        (program.starts_with(name)).then(|| u64::from_str_radix(offset, 16).unwrap())
    };
    lines.iter().filter_map(offset).collect()
}

/// Returns a generous range of offsets in this program for the function in which threads sleep.
pub(crate) fn sleep_function_range() -> (u64, u64) {
    let address = sleep_in_a_known_function as *const () as u64;
    let modules = stackweave_unwind::modules();
    let (_, module) = modules.find(address).unwrap();
    (address - module.start, address - module.start + 1024)
}

#[inline(never)]
fn sleep_in_a_known_function(may_wake: &AtomicBool) {
    let long = libc::timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    while !may_wake.load(Ordering::SeqCst) {
        // SAFETY: a complete timespec.
        unsafe { libc::nanosleep(&raw const long, std::ptr::null_mut()) };
    }
}

/// A thread that sleeps until it is woken, and then asserts that it has not allocated meanwhile.
pub(crate) struct SleepingThread {
    may_wake: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl SleepingThread {
    pub(crate) fn start(name: &str) -> Self {
        Self::start_with(name, false)
    }

    /// Starts a thread that blocks every signal.
    pub(crate) fn start_blocking_signals(name: &str) -> Self {
        Self::start_with(name, true)
    }

    fn start_with(name: &str, blocks_signals: bool) -> Self {
        let (may_wake, sleeps) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (may_continue, is_asleep) = (Arc::clone(&may_wake), Arc::clone(&sleeps));
        let body = move || {
            if blocks_signals {
                block_all_signals();
            }
            let before = requests();
            is_asleep.store(true, Ordering::SeqCst);
            sleep_in_a_known_function(&may_continue);
            assert_eq!(requests(), before, "a handler has allocated");
        };
        let thread = Builder::new().name(name.to_owned()).spawn(body).unwrap();
        wait_for(|| sleeps.load(Ordering::SeqCst));
        Self { may_wake, thread }
    }

    pub(crate) fn wake(self) {
        self.may_wake.store(true, Ordering::SeqCst);
        self.thread.join().unwrap();
    }
}

fn block_all_signals() {
    // SAFETY: an all-zero set is valid.
    let mut all: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is a local variable; the mask belongs to this thread.
    unsafe {
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
    }
}

/// Returns the number of pending signals of this user's processes, as the kernel counts them.
pub(crate) fn waiting_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("SigQ:\t")).unwrap();
    line.split('/').next().unwrap().parse().unwrap()
}

/// Returns whether a condition holds now or within half a minute.
pub(crate) fn becomes_true(condition: impl Fn() -> bool) -> bool {
    let end = Instant::now() + Duration::from_secs(30);
    while !condition() {
        if Instant::now() > end {
            return false;
        }
        thread::sleep(Duration::from_millis(10));
    }
    true
}

/// A thread that holds the loader's lock.
pub(crate) struct StuckInLoader {
    may_leave: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

struct InLoader {
    is_inside: AtomicBool,
    may_leave: Arc<AtomicBool>,
}

impl StuckInLoader {
    pub(crate) fn start() -> Self {
        unsafe extern "C" fn hang(_: *mut libc::dl_phdr_info, _: usize, state: *mut c_void) -> c_int {
            // SAFETY: the state that is passed below.
            let state = unsafe { &*state.cast::<InLoader>() };
            state.is_inside.store(true, Ordering::SeqCst);
            wait_for(|| state.may_leave.load(Ordering::SeqCst));
            1
        }
        let may_leave = Arc::new(AtomicBool::new(false));
        let state = Arc::new(InLoader { is_inside: AtomicBool::new(false), may_leave: Arc::clone(&may_leave) });
        let inside = Arc::clone(&state);
        let body = move || {
            // SAFETY: the callback has the right signature, and the state outlives the call.
            unsafe { libc::dl_iterate_phdr(Some(hang), Arc::as_ptr(&inside).cast_mut().cast()) };
        };
        let thread = Builder::new().name("stuck in loader".to_owned()).spawn(body).unwrap();
        wait_for(|| state.is_inside.load(Ordering::SeqCst));
        Self { may_leave, thread }
    }

    pub(crate) fn release(self) {
        self.may_leave.store(true, Ordering::SeqCst);
        self.thread.join().unwrap();
    }
}

/// A pipe that blocks every writer.
pub(crate) struct FullPipe {
    reader: std::io::PipeReader,
    writer: std::io::PipeWriter,
}

impl FullPipe {
    pub(crate) fn new() -> Self {
        let (reader, writer) = std::io::pipe().unwrap();
        // SAFETY: fills the pipe without blocking, and then makes it blocking again.
        unsafe {
            libc::fcntl(writer.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK);
            while libc::write(writer.as_raw_fd(), [0_u8; 4096].as_ptr().cast(), 4096) > 0 {}
            libc::fcntl(writer.as_raw_fd(), libc::F_SETFL, 0);
        }
        Self { reader, writer }
    }

    pub(crate) fn fd(&self) -> c_int {
        self.writer.as_raw_fd()
    }

    /// Starts reading in the background.
    pub(crate) fn drain(self) {
        thread::spawn(move || {
            let mut reader = self.reader;
            let _kept_open = self.writer;
            let _ = std::io::copy(&mut reader, &mut std::io::sink());
        });
    }
}

/// Returns whether a thread waits in the system call `write`, whose number is 1.
pub(crate) fn is_in_write(task: c_int) -> bool {
    let call = std::fs::read_to_string(format!("/proc/self/task/{task}/syscall"));
    call.is_ok_and(|call| call.starts_with("1 "))
}

/// Returns the result of a condition in a forked child.
pub(crate) fn in_child(condition: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child calls only functions that must work after a fork, and then ends immediately.
    unsafe {
        match libc::fork() {
            0 => libc::_exit(i32::from(!condition())),
            child => {
                let mut status = -1;
                libc::waitpid(child, &raw mut status, 0) == child && status == 0
            }
        }
    }
}

/// Returns the signal of dumps: the highest with a handler.
pub(crate) fn highest_handled_signal() -> c_int {
    let has_handler = |signal: &c_int| ![libc::SIG_DFL, libc::SIG_IGN].contains(&handler(*signal, None));
    (libc::SIGRTMIN()..=libc::SIGRTMAX()).rev().find(has_handler).unwrap()
}

/// Replaces a handler, and returns the previous one.
pub(crate) fn replace_handler(signal: c_int, with: usize) -> usize {
    handler(signal, Some(with))
}

fn handler(signal: c_int, new: Option<usize>) -> usize {
    // SAFETY: all-zero actions are valid.
    let (mut action, mut old): (libc::sigaction, libc::sigaction) = unsafe { std::mem::zeroed() };
    action.sa_sigaction = new.unwrap_or_default();
    let action = if new.is_some() { &raw const action } else { std::ptr::null() };
    // SAFETY: the action is to do nothing, or the default.
    assert_eq!(unsafe { libc::sigaction(signal, action, &raw mut old) }, 0);
    old.sa_sigaction
}

//! Threads that are somewhere known, and dumps read back.

#![expect(clippy::unwrap_used, reason = "what can't be had fails the test")]

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Builder, JoinHandle, yield_now};
use std::time::{Duration, Instant};

use stackweave_capture::{CantDump, DumpOptions, Dumped, dump_all_threads, prepare_dumps};
use stackweave_testkit::counting_allocator::requests;

pub(crate) mod script;

/// Threads are the process's, so tests that run in one process take turns.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    prepare_dumps().unwrap();
    turn
}

pub(crate) fn wait_for(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        yield_now();
    }
}

/// A file without a name.
pub(crate) struct MemoryFile(std::fs::File);

impl MemoryFile {
    pub(crate) fn new() -> Self {
        use std::os::fd::FromRawFd;
        // SAFETY: makes a new descriptor, which is ours.
        Self(unsafe { std::fs::File::from_raw_fd(libc::memfd_create(c"dump".as_ptr(), 0)) })
    }

    pub(crate) fn fd(&self) -> c_int {
        self.0.as_raw_fd()
    }

    pub(crate) fn text(&self) -> String {
        std::fs::read_to_string(format!("/proc/self/fd/{}", self.fd())).unwrap()
    }
}

pub(crate) fn dump(options: &DumpOptions) -> (Result<Dumped, CantDump>, String) {
    let file = MemoryFile::new();
    (dump_all_threads(file.fd(), options), file.text())
}

/// The lines of each thread, by its name. Of threads with one name, the last.
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

/// The offsets in this program among a thread's frames.
pub(crate) fn native_offsets(lines: &[String]) -> Vec<u64> {
    let program = std::env::current_exe().unwrap();
    let program = program.file_name().unwrap().to_str().unwrap();
    let offset = |line: &String| {
        let (name, offset) = line.strip_prefix("  | ")?.rsplit_once("+0x")?;
        (program.starts_with(name)).then(|| u64::from_str_radix(offset, 16).unwrap())
    };
    lines.iter().filter_map(offset).collect()
}

/// Where the function that threads sleep in is in this program, generously.
pub(crate) fn asleep_in() -> (u64, u64) {
    let address = sleep_in_a_known_function as *const () as u64;
    let modules = stackweave_unwind::modules();
    let (_, module) = modules.find(address).unwrap();
    (address - module.start, address - module.start + 1024)
}

#[inline(never)]
fn sleep_in_a_known_function(may_wake: &AtomicBool) {
    let long = libc::timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    while !may_wake.load(Ordering::SeqCst) {
        // SAFETY: a whole timespec.
        unsafe { libc::nanosleep(&raw const long, std::ptr::null_mut()) };
    }
}

/// A thread that sleeps until it is woken, and asserts then that it has not allocated meanwhile.
pub(crate) struct Asleep {
    may_wake: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Asleep {
    pub(crate) fn start(name: &str) -> Self {
        Self::start_with(name, false)
    }

    /// One that blocks every signal.
    pub(crate) fn start_deaf(name: &str) -> Self {
        Self::start_with(name, true)
    }

    fn start_with(name: &str, is_deaf: bool) -> Self {
        let (may_wake, sleeps) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (wakes, tells) = (Arc::clone(&may_wake), Arc::clone(&sleeps));
        let body = move || {
            if is_deaf {
                block_all_signals();
            }
            let before = requests();
            tells.store(true, Ordering::SeqCst);
            sleep_in_a_known_function(&wakes);
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
    // SAFETY: an all-zero set is a valid one.
    let mut all: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is a local; the mask is this thread's own.
    unsafe {
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
    }
}

/// How many signals wait for this user's processes, as the kernel counts them.
pub(crate) fn waiting_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("SigQ:\t")).unwrap();
    line.split('/').next().unwrap().parse().unwrap()
}

/// Whether a condition holds now or within half a minute.
pub(crate) fn comes_true(condition: impl Fn() -> bool) -> bool {
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
            // SAFETY: what is passed below.
            let state = unsafe { &*state.cast::<InLoader>() };
            state.is_inside.store(true, Ordering::SeqCst);
            wait_for(|| state.may_leave.load(Ordering::SeqCst));
            1
        }
        let may_leave = Arc::new(AtomicBool::new(false));
        let state = Arc::new(InLoader { is_inside: AtomicBool::new(false), may_leave: Arc::clone(&may_leave) });
        let inside = Arc::clone(&state);
        let body = move || {
            // SAFETY: the callback fits, and the state outlives the call.
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

/// A pipe that blocks whoever writes to it.
pub(crate) struct FullPipe {
    reader: std::io::PipeReader,
    writer: std::io::PipeWriter,
}

impl FullPipe {
    pub(crate) fn new() -> Self {
        let (reader, writer) = std::io::pipe().unwrap();
        // SAFETY: fills the pipe without blocking, then lets it block.
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

    /// Reads in the background from now on.
    pub(crate) fn drain(self) {
        thread::spawn(move || {
            let mut reader = self.reader;
            let _kept_open = self.writer;
            let _ = std::io::copy(&mut reader, &mut std::io::sink());
        });
    }
}

/// Whether a thread waits in `write`, whose number is 1.
pub(crate) fn is_in_write(task: c_int) -> bool {
    let call = std::fs::read_to_string(format!("/proc/self/task/{task}/syscall"));
    call.is_ok_and(|call| call.starts_with("1 "))
}

/// Whether it is so in a forked child.
pub(crate) fn in_child(is_so: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child calls what it must be able to after a fork, and then ends at once.
    unsafe {
        match libc::fork() {
            0 => libc::_exit(i32::from(!is_so())),
            child => {
                let mut status = -1;
                libc::waitpid(child, &raw mut status, 0) == child && status == 0
            }
        }
    }
}

/// The signal that dumps use: the highest with a handler.
pub(crate) fn highest_handled_signal() -> c_int {
    let has_handler = |signal: &c_int| ![libc::SIG_DFL, libc::SIG_IGN].contains(&handler(*signal, None));
    (libc::SIGRTMIN()..=libc::SIGRTMAX()).rev().find(has_handler).unwrap()
}

/// Puts another handler in the place of one, and gives that.
pub(crate) fn replace_handler(signal: c_int, with: usize) -> usize {
    handler(signal, Some(with))
}

fn handler(signal: c_int, new: Option<usize>) -> usize {
    // SAFETY: all-zero actions are valid ones, and places for others.
    let (mut action, mut old): (libc::sigaction, libc::sigaction) = unsafe { std::mem::zeroed() };
    action.sa_sigaction = new.unwrap_or_default();
    let action = if new.is_some() { &raw const action } else { std::ptr::null() };
    // SAFETY: the action is to do nothing, or the default.
    assert_eq!(unsafe { libc::sigaction(signal, action, &raw mut old) }, 0);
    old.sa_sigaction
}

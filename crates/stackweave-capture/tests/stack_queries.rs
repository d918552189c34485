//! Stack queries from this process to itself: what the handler writes, and when it writes nothing.

#![expect(clippy::unwrap_used, reason = "a failed preparation fails the test")]
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::collections::BTreeSet;
use std::ffi::{CString, c_void};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use stackweave_capture::stack_query::{QUERY_FILE_PREFIX, SIGNAL_MAPPING_PREFIX, StackQuery};
use stackweave_capture::{dump_signal, prepare_answers};
use stackweave_testkit::counting_allocator::{CountingAllocator, requests};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Allows one query at a time.
fn lock_tests() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    let lock = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    prepare_answers().unwrap();
    lock
}

fn memory_file(name: &str) -> File {
    let name = CString::new(name).unwrap();
    // SAFETY: creates a new descriptor, which has no other owner.
    unsafe { File::from_raw_fd(libc::memfd_create(name.as_ptr(), 0)) }
}

fn query_file() -> File {
    memory_file(&format!("{QUERY_FILE_PREFIX}{}", std::process::id()))
}

/// Sends the signal to this thread, and returns after its handler has run.
fn send(value: u64) {
    let value =
        libc::sigval { sival_ptr: std::ptr::with_exposed_provenance_mut::<c_void>(usize::try_from(value).unwrap()) };
    // SAFETY: the signal has a handler.
    assert_eq!(unsafe { libc::pthread_sigqueue(libc::pthread_self(), dump_signal().unwrap(), value) }, 0);
}

fn query_value(file: &File) -> u64 {
    StackQuery { descriptor: file.as_raw_fd().cast_unsigned() }.to_value()
}

fn text(file: &File) -> String {
    std::fs::read_to_string(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap()
}

/// Returns the ids of this process's threads.
fn threads() -> BTreeSet<i32> {
    let entries = std::fs::read_dir("/proc/self/task").unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_str().unwrap().parse().unwrap()).collect()
}

#[test]
fn all_threads_are_written_without_allocation_and_errno_is_kept() {
    let _lock = lock_tests();
    let file = query_file();
    let value = query_value(&file);
    let threads_before = threads();
    let before = requests();
    // SAFETY: the address of this thread's error number.
    unsafe { *libc::__errno_location() = 77 };
    send(value);
    // SAFETY: as above.
    let error = unsafe { *libc::__errno_location() };
    assert_eq!((requests(), error), (before, 77));
    let text = text(&file);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], format!("stackweave-answer 1 {}", std::process::id()));
    assert_eq!(*lines.last().unwrap(), "end");
    let line_of = |thread: i32| {
        let begin = format!("thread {thread} ");
        let mut found = lines.iter().enumerate().filter(|(_, line)| line.starts_with(&begin));
        let (at, _) = found.next().unwrap_or_else(|| panic!("{thread} is missing: {text}"));
        assert_eq!(found.count(), 0, "{thread} is there twice: {text}");
        at
    };
    // Threads of other tests may start and end meanwhile.
    for &thread in threads_before.intersection(&threads()) {
        line_of(thread);
    }
    // SAFETY: `gettid` has no preconditions.
    let own = line_of(unsafe { libc::gettid() });
    assert!(lines[own + 1].starts_with("x 7"), "the interrupted function: {text}");
    let frames = lines[own + 2..].iter().take_while(|line| line.starts_with("r ")).count();
    assert!(frames > 3, "{text}");
}

#[test]
fn a_file_receives_one_reply() {
    let _lock = lock_tests();
    let file = query_file();
    send(query_value(&file));
    let first = text(&file);
    send(query_value(&file));
    assert_eq!(text(&file), first);
    assert!(!first.is_empty());
}

#[test]
fn nothing_is_written_without_a_valid_query() {
    let _lock = lock_tests();
    let file = query_file();
    send(file.as_raw_fd().cast_unsigned().into());
    assert_eq!(text(&file), "", "the value has no mark");
    for name in ["", "stackweave-question-1", "stackweave-question-"] {
        let other = memory_file(name);
        send(query_value(&other));
        assert_eq!(text(&other), "", "{name}");
    }
    send(StackQuery { descriptor: u32::MAX }.to_value());
    let (mut reader, writer) = std::io::pipe().unwrap();
    send(StackQuery { descriptor: writer.as_raw_fd().cast_unsigned() }.to_value());
    drop(writer);
    let mut read = String::new();
    reader.read_to_string(&mut read).unwrap();
    assert_eq!(read, "");
}

#[test]
fn the_memory_map_advertises_the_current_signal() {
    let _lock = lock_tests();
    let shown = || {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let name = |line: &str| line.split_once("/memfd:").map(|(_, name)| name.to_owned());
        maps.lines().filter_map(name).collect::<Vec<_>>()
    };
    let name = |signal| vec![format!("{SIGNAL_MAPPING_PREFIX}{signal} (deleted)")];
    let signal = dump_signal().unwrap();
    assert_eq!(shown(), name(signal));
    prepare_answers().unwrap();
    assert_eq!(shown(), name(signal), "once");
    // SAFETY: no process sends the signal.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
    stackweave_capture::prepare_dumps().unwrap();
    assert_ne!(dump_signal().unwrap(), signal);
    assert_eq!(shown(), name(dump_signal().unwrap()));
}

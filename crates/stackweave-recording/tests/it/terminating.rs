//! SIGTERM and SIGHUP with their default action close recordings properly, and end the process as usual.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;
use std::{fs, mem, ptr, thread};

use stackweave_recording::file::EndReason;
use stackweave_recording::live::{Recorder, RecorderOptions, RingLimits};
use stackweave_testkit::child;
use stackweave_testkit::random::Random;

use crate::recorded::{ReadBack, mark, start};

const ROUNDS: usize = 60;
const THREADS: u64 = 3;
/// The time after which a child counts as hanging.
const LIMIT: Duration = Duration::from_secs(40);

/// Forks a child that runs `work`, and returns its process id.
fn fork(work: impl FnOnce()) -> libc::pid_t {
    // SAFETY: this process has one thread, so the child is unrestricted.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        work();
        // SAFETY: no preconditions.
        unsafe { libc::_exit(99) };
    }
    pid
}

/// Waits for a child, and kills it if it hangs.
fn status_of(pid: libc::pid_t) -> Option<libc::c_int> {
    let mut status = 0;
    let pause = Duration::from_millis(1);
    for _ in 0..LIMIT.as_millis() / pause.as_millis() {
        // SAFETY: a child of this process, and a valid pointer to its status.
        if unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) } == pid {
            return Some(status);
        }
        thread::sleep(pause);
    }
    // SAFETY: as above.
    unsafe {
        libc::kill(pid, libc::SIGKILL);
        libc::waitpid(pid, &raw mut status, 0);
    }
    None
}

fn send(pid: libc::pid_t, signal: libc::c_int) {
    // SAFETY: a child of this process that has not been waited for.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
}

#[track_caller]
fn assert_ended_by(pid: libc::pid_t, signal: libc::c_int) {
    let status = status_of(pid).expect("the process hangs");
    assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == signal, "{status:#x}");
}

/// Waits until the file exists.
fn wait_for(path: &Path) {
    while !path.exists() {
        thread::sleep(Duration::from_micros(50));
    }
}

fn churn(recorder: &Recorder) -> ! {
    let mark = mark(recorder);
    let work = |producer: u64| {
        for index in 0.. {
            recorder.record(mark, &[producer, index]);
            // The signal may interrupt an allocation, while the allocator's lock is held.
            drop(std::hint::black_box(vec![0_u8; 1 + usize::try_from(index * 37 % 5_000).unwrap()]));
        }
    };
    thread::scope(|scope| {
        for producer in 1..THREADS {
            scope.spawn(move || work(producer));
        }
        work(THREADS);
    });
    unreachable!("it records until it is ended")
}

fn terminate_at_any_moment(folder: &Path) {
    let mut random = Random::new(17);
    for round in 0..ROUNDS {
        let path = folder.join(format!("{round}.swv"));
        let ring = (round % 3 == 0).then_some(RingLimits { bytes: Some(1 << 20), seconds: None });
        let signal = if round % 2 == 0 { libc::SIGTERM } else { libc::SIGHUP };
        let options = RecorderOptions { ring, dump_at_exit: true, memory: 512 * 1024, ..RecorderOptions::new(&path) };
        let ready = folder.join(format!("{round}.ready"));
        let pid = fork(|| {
            let recorder = start(options);
            fs::write(&ready, "").unwrap();
            churn(&recorder)
        });
        wait_for(&ready);
        thread::sleep(Duration::from_micros(random.below(8_000) as u64));
        send(pid, signal);
        assert_ended_by(pid, signal);
        let read = ReadBack::whole(&path);
        let reason = if signal == libc::SIGTERM { EndReason::Terminated } else { EndReason::HungUp };
        assert_eq!(read.end.map(|end| end.reason), Some(reason), "round {round}");
        for (producer, values) in read.marks() {
            let first = if ring.is_some() { values[0] } else { 0 };
            assert!((first..).zip(&values).all(|(expected, found)| expected == *found), "round {round}: {producer}");
        }
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_process_that_is_terminated_at_any_moment_closes_its_recording() {
    let name = "terminating::a_process_that_is_terminated_at_any_moment_closes_its_recording";
    child::in_own_process(name, terminate_at_any_moment);
}

/// Returns the current action of a signal.
fn handler_of(signal: libc::c_int) -> libc::sighandler_t {
    // SAFETY: zeros are a valid action, and the pointer is valid for writes.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        libc::sigaction(signal, ptr::null(), &raw mut action);
        action.sa_sigaction
    }
}

extern "C" fn leave(_: libc::c_int) {
    // SAFETY: no preconditions.
    unsafe { libc::_exit(7) };
}

fn check_handlers(folder: &Path) {
    assert_eq!(handler_of(libc::SIGTERM), libc::SIG_DFL);
    let first = start(RecorderOptions::new(folder.join("first.swv")));
    let second = start(RecorderOptions::new(folder.join("second.swv")));
    assert_ne!(handler_of(libc::SIGTERM), libc::SIG_DFL);
    first.stop();
    assert_ne!(handler_of(libc::SIGHUP), libc::SIG_DFL, "another recording still needs it");
    second.stop();
    assert_eq!([libc::SIGTERM, libc::SIGHUP].map(handler_of), [libc::SIG_DFL; 2]);
    // Handlers of the program are not replaced, whenever they are installed.
    let own = leave as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // SAFETY: a handler that only ends the process, and an ignored signal.
    unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
    let recorder = start(RecorderOptions::new(folder.join("third.swv")));
    // SAFETY: as above.
    unsafe { libc::signal(libc::SIGTERM, own) };
    recorder.flush().unwrap();
    assert_eq!([libc::SIGTERM, libc::SIGHUP].map(handler_of), [own, libc::SIG_IGN]);
    recorder.stop();
    assert_eq!([libc::SIGTERM, libc::SIGHUP].map(handler_of), [own, libc::SIG_IGN]);
    // SAFETY: as above.
    unsafe { libc::signal(libc::SIGTERM, libc::SIG_DFL) };
    let off = start(RecorderOptions { handle_signals: false, ..RecorderOptions::new(folder.join("off.swv")) });
    assert_eq!(handler_of(libc::SIGTERM), libc::SIG_DFL);
    off.stop();
}

#[test]
fn handlers_of_the_program_stay_and_the_default_action_is_restored() {
    child::in_own_process(
        "terminating::handlers_of_the_program_stay_and_the_default_action_is_restored",
        check_handlers,
    );
}

fn check_processes(folder: &Path) {
    // Two recordings end before the process does.
    let ready = folder.join("ready");
    let pid = fork(|| {
        let recorders = ["one.swv", "two.swv"].map(|name| start(RecorderOptions::new(folder.join(name))));
        let marks = recorders.each_ref().map(mark);
        recorders.iter().zip(marks).for_each(|(recorder, mark)| recorder.record(mark, &[1, 2]));
        fs::write(&ready, "").unwrap();
        thread::sleep(LIMIT);
    });
    wait_for(&ready);
    send(pid, libc::SIGTERM);
    // As `timeout` does, which signals the process and then its group.
    send(pid, libc::SIGTERM);
    assert_ended_by(pid, libc::SIGTERM);
    for name in ["one.swv", "two.swv"] {
        let read = ReadBack::whole(&folder.join(name));
        assert_eq!(read.end.map(|end| end.reason), Some(EndReason::Terminated), "{name}");
    }
    // A child that has recorded nothing, and one that does not record, end immediately and leave no files.
    let recorder = start(RecorderOptions { follow_forks: false, ..RecorderOptions::new(folder.join("parent.swv")) });
    let pid = fork(|| thread::sleep(LIMIT));
    send(pid, libc::SIGHUP);
    assert_ended_by(pid, libc::SIGHUP);
    recorder.stop();
}

#[test]
fn recordings_and_children_of_a_process_end_with_it() {
    child::in_own_process("terminating::recordings_and_children_of_a_process_end_with_it", check_processes);
}

/// Returns whether the pipe accepts more bytes.
fn has_room(pipe: libc::c_int) -> bool {
    let mut poll = libc::pollfd { fd: pipe, events: libc::POLLOUT, revents: 0 };
    // SAFETY: one whole entry.
    unsafe { libc::poll(&raw mut poll, 1, 0) == 1 }
}

#[test]
fn a_blocked_writer_does_not_keep_the_process_alive() {
    let name = "terminating::a_blocked_writer_does_not_keep_the_process_alive";
    child::in_own_process(name, |folder| {
        let path = folder.join("pipe");
        let name = CString::new(path.as_os_str().as_bytes()).unwrap();
        // SAFETY: a valid name.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        // SAFETY: as above; open for both directions, so that no open waits for the other end.
        let pipe = unsafe { libc::open(name.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
        assert!(pipe >= 0);
        let ready = folder.join("ready");
        let pid = fork(|| {
            let recorder = start(RecorderOptions { memory: 1 << 16, overwrite: true, ..RecorderOptions::new(&path) });
            fs::write(&ready, "").unwrap();
            churn(&recorder)
        });
        wait_for(&ready);
        while has_room(pipe) {
            thread::sleep(Duration::from_millis(1));
        }
        send(pid, libc::SIGTERM);
        assert_ended_by(pid, libc::SIGTERM);
    });
}

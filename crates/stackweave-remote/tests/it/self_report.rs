//! Processes that are queried: what they reply, and that processes without support are not signalled.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use stackweave_remote::{ReportError, ReportedFrame, request_report};
use stackweave_testkit::child::{command, own_executable, role};

const TIME: Duration = Duration::from_secs(20);

/// This test again, in a role, until it is dropped.
struct Target {
    child: Child,
    _input: ChildStdin,
}

impl Target {
    fn start(test: &str, role: &str) -> Self {
        let mut command = command(&own_executable(), test, role);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("ready")), "it has begun");
        let input = child.stdin.take().unwrap();
        Self { child, _input: input }
    }

    fn number(&self) -> u32 {
        self.child.id()
    }

    fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reports that it is ready, and waits for the end of its input.
fn wait_here() {
    std::io::stdout().write_all(b"\nready\n").unwrap();
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

/// Starts a sleeping thread with this name, and waits until it runs, because it sets its name itself.
fn start_sleeper(name: &str) {
    let (sender, is_running) = channel();
    std::thread::Builder::new().name(name.into()).spawn(move || sleep_for_good(&sender)).unwrap();
    is_running.recv().unwrap();
}

#[inline(never)]
fn sleep_for_good(sender: &Sender<()>) {
    sender.send(()).unwrap();
    loop {
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_process_reports_its_threads() {
    const TEST: &str = "self_report::a_process_reports_its_threads";
    if role().is_some() {
        start_sleeper("sleeper");
        stackweave_capture::prepare_answers().unwrap();
        return wait_here();
    }
    let mut target = Target::start(TEST, "target");
    let mut answered = 0;
    for _ in 0..50 {
        let answer = request_report(target.number(), TIME).unwrap();
        assert_eq!((answer.process, answer.threads[0].task, answer.more), (target.number(), target.number(), 0));
        let sleeper = answer.threads.iter().find(|thread| thread.name == "sleeper").unwrap();
        assert!(answer.threads.iter().all(|thread| "RSD".contains(thread.state)), "{answer:?}");
        if sleeper.frames.is_empty() {
            // It waits for a second, which may pass before the thread gets a core.
            assert!(sleeper.problem.as_ref().is_some_and(|why| why.contains("has not answered")), "{sleeper:?}");
            continue;
        }
        assert!(sleeper.frames.len() > 3 && sleeper.problem.is_none(), "{sleeper:?}");
        assert!(matches!(sleeper.frames[0], ReportedFrame::Native(address) if address.is_exact()));
        answered += 1;
    }
    assert!(answered > 0);
    assert!(target.is_alive());
}

#[test]
fn many_concurrent_queries_are_all_answered() {
    const TEST: &str = "self_report::many_concurrent_queries_are_all_answered";
    if role().is_some() {
        (0..8).for_each(|number| start_sleeper(&format!("sleeper {number}")));
        stackweave_capture::prepare_answers().unwrap();
        return wait_here();
    }
    let mut target = Target::start(TEST, "target");
    let number = target.number();
    let querying = (0..4).map(|_| {
        std::thread::spawn(move || {
            (0..25).map(|_| request_report(number, TIME).unwrap().threads.len()).collect::<Vec<_>>()
        })
    });
    for counts in querying.collect::<Vec<_>>().into_iter().flat_map(|thread| thread.join().unwrap()) {
        assert!(counts >= 9, "{counts}");
    }
    assert!(target.is_alive());
}

#[test]
fn processes_without_support_are_not_signalled() {
    const TEST: &str = "self_report::processes_without_support_are_not_signalled";
    match role().as_deref() {
        Some("without") => return wait_here(),
        Some("taken back") => {
            stackweave_capture::prepare_answers().unwrap();
            let signal = stackweave_capture::dump_signal().unwrap();
            // SAFETY: the default action, which would end this process.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
            return wait_here();
        }
        _ => {}
    }
    for (role, expected) in
        [("without", ReportError::NotLoaded), ("taken back", ReportError::NoHandler(libc::SIGRTMAX()))]
    {
        let mut target = Target::start(TEST, role);
        assert_eq!(request_report(target.number(), TIME), Err(expected));
        assert!(target.is_alive());
    }
    assert_eq!(request_report(u32::MAX, TIME), Err(ReportError::NoProcess));
}

#[test]
fn another_handler_is_detected_and_a_process_that_cannot_reply_is_reported() {
    const TEST: &str = "self_report::another_handler_is_detected_and_a_process_that_cannot_reply_is_reported";
    extern "C" fn nothing(_: i32) {}
    if let Some(role) = role() {
        stackweave_capture::prepare_answers().unwrap();
        let signal = stackweave_capture::dump_signal().unwrap();
        // SAFETY: a handler that does nothing; a complete set; a signal that stops this process.
        unsafe {
            match &*role {
                "other handler" => drop(libc::signal(signal, nothing as *const () as usize)),
                "blocks" => {
                    let mut set: libc::sigset_t = std::mem::zeroed();
                    libc::sigfillset(&raw mut set);
                    libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
                }
                _ => {}
            }
        }
        return wait_here();
    }
    let (short, signal) = (Duration::from_millis(50), libc::SIGRTMAX());
    let mut other = Target::start(TEST, "other handler");
    assert_eq!(request_report(other.number(), short), Err(ReportError::Silent(signal, short)));
    assert!(other.is_alive());
    let stopped = Target::start(TEST, "stopped");
    let number = stopped.number().cast_signed();
    // SAFETY: a signal to a child of this process, which is waited for until it has stopped.
    unsafe {
        libc::kill(number, libc::SIGSTOP);
        libc::waitpid(number, std::ptr::null_mut(), libc::WUNTRACED);
    }
    assert_eq!(request_report(stopped.number(), short), Err(ReportError::Stopped));
    let mut blocking = Target::start(TEST, "blocks");
    // Check its threads: the runner's main thread, if there is one besides the test's, has not blocked the signal.
    let answer = request_report(blocking.number(), short);
    assert!(answer.is_ok() || answer == Err(ReportError::Blocked(signal)), "{answer:?}");
    assert!(blocking.is_alive());
}

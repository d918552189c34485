//! Processes that are asked: what they say, and that those who would not understand are left alone.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use stackweave_remote::{NoReport, ReportedFrame, request_report};
use stackweave_testkit::child::{command, own_executable, role};

const TIME: Duration = Duration::from_secs(20);

/// This test again, in a role, until it is dropped.
struct Patient {
    child: Child,
    _input: ChildStdin,
}

impl Patient {
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

impl Drop for Patient {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Says that it is ready, and waits for the end of its input.
fn wait_here() {
    std::io::stdout().write_all(b"\nready\n").unwrap();
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

/// Starts a thread of that name which sleeps, and waits until it runs: it takes its name itself.
fn start_sleeper(name: &str) {
    let (says, is_there) = channel();
    std::thread::Builder::new().name(name.into()).spawn(move || sleep_for_good(&says)).unwrap();
    is_there.recv().unwrap();
}

#[inline(never)]
fn sleep_for_good(says: &Sender<()>) {
    says.send(()).unwrap();
    loop {
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_process_says_where_its_threads_are() {
    const TEST: &str = "self_report::a_process_says_where_its_threads_are";
    if role().is_some() {
        start_sleeper("sleeper");
        stackweave_capture::prepare_answers().unwrap();
        return wait_here();
    }
    let mut patient = Patient::start(TEST, "patient");
    let mut answered = 0;
    for _ in 0..50 {
        let answer = request_report(patient.number(), TIME).unwrap();
        assert_eq!((answer.process, answer.threads[0].task, answer.more), (patient.number(), patient.number(), 0));
        let sleeper = answer.threads.iter().find(|thread| thread.name == "sleeper").unwrap();
        assert!(answer.threads.iter().all(|thread| "RSD".contains(thread.state)), "{answer:?}");
        if sleeper.frames.is_empty() {
            // It has a second, which may pass before it gets a core.
            assert!(sleeper.problem.as_ref().is_some_and(|why| why.contains("has not answered")), "{sleeper:?}");
            continue;
        }
        assert!(sleeper.frames.len() > 3 && sleeper.problem.is_none(), "{sleeper:?}");
        assert!(matches!(sleeper.frames[0], ReportedFrame::Native(address) if address.is_exact()));
        answered += 1;
    }
    assert!(answered > 0);
    assert!(patient.is_alive());
}

#[test]
fn many_ask_at_once_and_all_are_answered() {
    const TEST: &str = "self_report::many_ask_at_once_and_all_are_answered";
    if role().is_some() {
        (0..8).for_each(|number| start_sleeper(&format!("sleeper {number}")));
        stackweave_capture::prepare_answers().unwrap();
        return wait_here();
    }
    let mut patient = Patient::start(TEST, "patient");
    let number = patient.number();
    let asking = (0..4).map(|_| {
        std::thread::spawn(move || {
            (0..25).map(|_| request_report(number, TIME).unwrap().threads.len()).collect::<Vec<_>>()
        })
    });
    for counts in asking.collect::<Vec<_>>().into_iter().flat_map(|thread| thread.join().unwrap()) {
        assert!(counts >= 9, "{counts}");
    }
    assert!(patient.is_alive());
}

#[test]
fn nobody_else_is_sent_a_signal() {
    const TEST: &str = "self_report::nobody_else_is_sent_a_signal";
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
    for (role, expected) in [("without", NoReport::NotLoaded), ("taken back", NoReport::NoHandler(libc::SIGRTMAX()))] {
        let mut patient = Patient::start(TEST, role);
        assert_eq!(request_report(patient.number(), TIME), Err(expected));
        assert!(patient.is_alive());
    }
    assert_eq!(request_report(u32::MAX, TIME), Err(NoReport::NoProcess));
}

#[test]
fn another_handler_wins_and_a_process_that_can_t_answer_is_told() {
    const TEST: &str = "self_report::another_handler_wins_and_a_process_that_can_t_answer_is_told";
    extern "C" fn nothing(_: i32) {}
    if let Some(role) = role() {
        stackweave_capture::prepare_answers().unwrap();
        let signal = stackweave_capture::dump_signal().unwrap();
        // SAFETY: a handler that does nothing; a set that is whole; a signal that stops this process.
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
    let mut other = Patient::start(TEST, "other handler");
    assert_eq!(request_report(other.number(), short), Err(NoReport::Silent(signal, short)));
    assert!(other.is_alive());
    let stopped = Patient::start(TEST, "stopped");
    let number = stopped.number().cast_signed();
    // SAFETY: a signal to a child of ours, which is waited for until it has stopped.
    unsafe {
        libc::kill(number, libc::SIGSTOP);
        libc::waitpid(number, std::ptr::null_mut(), libc::WUNTRACED);
    }
    assert_eq!(request_report(stopped.number(), short), Err(NoReport::Stopped));
    let mut blocking = Patient::start(TEST, "blocks");
    // Its threads: the runner's main thread has not blocked it, if there is one beside the test's.
    let answer = request_report(blocking.number(), short);
    assert!(answer.is_ok() || answer == Err(NoReport::Blocked(signal)), "{answer:?}");
    assert!(blocking.is_alive());
}

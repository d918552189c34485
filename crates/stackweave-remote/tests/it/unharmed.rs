//! What was looked at goes on as if nobody had.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use stackweave_remote::{CantRead, stacks_of};
use stackweave_testkit::child;

use crate::patient::{Program, names, options, thread_in};

/// What the patient computes, again and again.
fn result() -> u64 {
    (0..100_000)
        .fold(1, |value: u64, _| value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407))
}

#[test]
fn work_comes_out_the_same_after_a_hundred_looks() {
    const LOOKS: usize = 100;
    let program = Program::build();
    let patient = program.start("work");
    for look in 0..LOOKS {
        let stacks = patient.stacks();
        assert_eq!(stacks.threads.len(), 4, "{look}");
        assert!(stacks.threads.iter().all(|thread| thread.problem.is_none()), "{stacks:#?}");
        // Every one of these is queued: none may be lost, wherever it meets the stop.
        patient.send_with_value(libc::SIGRTMIN());
    }
    let (status, text) = patient.finish();
    let result = result();
    assert_eq!(text.trim_end(), format!("{result} {result} {LOOKS} 0"));
    assert_eq!(status.code(), Some(7));
}

#[test]
fn a_process_that_was_stopped_stays_so() {
    let program = Program::build();
    let patient = program.start("work");
    patient.send(libc::SIGSTOP);
    patient.wait_for('T');
    for _ in 0..3 {
        let stacks = patient.stacks();
        assert!(stacks.threads.iter().all(|thread| thread.state == 'T' && thread.problem.is_none()), "{stacks:#?}");
        thread_in(&stacks, "sleep_in_calls");
        patient.wait_for('T');
    }
    patient.send(libc::SIGCONT);
    let (status, _) = patient.finish();
    assert_eq!(status.code(), Some(7));
}

#[test]
fn threads_may_come_and_go_meanwhile() {
    let program = Program::build();
    let patient = program.start("spawn");
    for _ in 0..50 {
        let stacks = patient.stacks();
        assert!(names(&stacks.threads[0]).contains(&"main"), "{stacks:#?}");
    }
}

#[test]
fn who_is_killed_while_looking_leaves_the_process_running() {
    const NAME: &str = "unharmed::who_is_killed_while_looking_leaves_the_process_running";
    if let Some(process) = child::role() {
        let process = process.parse().unwrap();
        loop {
            let _ = stacks_of(process, &options());
        }
    }
    let program = Program::build();
    let patient = program.start("work");
    for round in 0..10 {
        let mut looking =
            child::command(&child::own_executable(), NAME, &patient.number().to_string()).spawn().unwrap();
        // Long enough to be in the middle of something, and each time of something else.
        std::thread::sleep(Duration::from_millis(100 + 7 * round));
        looking.kill().unwrap();
        looking.wait().unwrap();
    }
    let stacks = patient.stacks();
    assert_eq!(stacks.threads.len(), 4);
    let (status, text) = patient.finish();
    assert_eq!(text.trim_end(), format!("{0} {0} 0 0", result()));
    assert_eq!(status.code(), Some(7));
}

#[test]
fn a_thread_that_nothing_stops_does_not_hold_up_the_others() {
    let program = Program::build();
    let mut patient = program.start("vfork");
    let stuck = |stacks: &stackweave_remote::ProcessStacks| stacks.threads[1].state == 'D';
    let mut options = options();
    options.patience = Duration::from_millis(50);
    let end = Instant::now() + Duration::from_secs(2);
    let stacks = loop {
        let stacks = stacks_of(patient.number(), &options).unwrap();
        if stuck(&stacks) || Instant::now() > end {
            break stacks;
        }
    };
    assert_eq!(stacks.threads[1].problem.as_deref(), Some("it waits in the kernel, where nothing can stop it"));
    assert!(names(&stacks.threads[0]).contains(&"main"), "{stacks:#?}");
    // The child in its memory ends, and the thread goes on.
    assert_eq!(patient.line(), "back");
    assert_eq!(patient.finish().0.code(), Some(5));
}

#[test]
fn a_process_that_somebody_traces_is_not_read() {
    let program = Program::build();
    let patient = program.start("work");
    let number = patient.number().cast_signed();
    let nothing = std::ptr::null_mut::<u8>();
    // SAFETY: numbers only. The tracee runs on, and is let go when this thread ends.
    assert_eq!(unsafe { libc::ptrace(libc::PTRACE_SEIZE, number, nothing, nothing) }, 0);
    let refused = stacks_of(patient.number(), &options()).unwrap_err();
    assert!(matches!(refused, CantRead::Traced { process, .. } if process == patient.number()), "{refused:?}");
}

#[test]
fn what_is_no_process_any_more_is_told() {
    const NAME: &str = "unharmed::what_is_no_process_any_more_is_told";
    if child::role().is_some() {
        // Never waits for it.
        eprintln!("{}", Command::new("true").spawn().unwrap().id());
        std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        return;
    }
    // Not a child of this process: who looks waits for what it has stopped, and would take the end that the parent is to be told.
    let mut parent = child::command(&child::own_executable(), NAME, "parent");
    let mut parent = parent.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(parent.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let number = line.trim().parse().unwrap();
    let end = Instant::now() + Duration::from_secs(20);
    let refused = loop {
        let refused = stacks_of(number, &options());
        if matches!(refused, Err(CantRead::Ended(_))) || Instant::now() > end {
            break refused.unwrap_err();
        }
    };
    assert_eq!(refused, CantRead::Ended(number));
    let number = parent.id();
    parent.kill().unwrap();
    parent.wait().unwrap();
    assert_eq!(stacks_of(number, &options()).unwrap_err(), CantRead::NoProcess(number));
}

#[test]
fn another_users_process_is_refused_with_a_remedy() {
    use std::os::unix::process::CommandExt as _;
    const NAME: &str = "unharmed::another_users_process_is_refused_with_a_remedy";
    const NOBODY: u32 = 65534;
    if let Some(process) = child::role() {
        let refused = stacks_of(process.parse().unwrap(), &options()).unwrap_err();
        eprintln!("{refused}");
        return;
    }
    // SAFETY: asks for a number.
    if unsafe { libc::geteuid() } != 0 {
        println!("skipped: only the administrator can be somebody else");
        return;
    }
    let program = Program::build();
    let patient = program.start("work");
    let folder = stackweave_testkit::folder::Folder::new();
    let executable = folder.file("looks");
    std::fs::copy(child::own_executable(), &executable).unwrap();
    let mut looking = child::command(&executable, NAME, &patient.number().to_string());
    let output = child::run(looking.uid(NOBODY).gid(NOBODY));
    let text = child::text(&output);
    let expected = format!("not allowed to look into process {}: it runs as another user; use sudo", patient.number());
    assert!(text.contains(&expected), "{text}");
}

//! Inspections have no effects on the process.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use stackweave_remote::{InspectionError, stacks_of};
use stackweave_testkit::child;

use crate::target::{Program, names, options, thread_in};

/// Returns the result that the target computes again and again.
fn result() -> u64 {
    (0..100_000)
        .fold(1, |value: u64, _| value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407))
}

#[test]
fn results_are_the_same_after_a_hundred_inspections() {
    const INSPECTIONS: usize = 100;
    let program = Program::build();
    let target = program.start("work");
    for round in 0..INSPECTIONS {
        let stacks = target.stacks();
        assert_eq!(stacks.threads.len(), 4, "{round}");
        assert!(stacks.threads.iter().all(|thread| thread.problem.is_none()), "{stacks:#?}");
        // Every one of these is queued: none may be lost, even if it arrives while the thread is stopped.
        target.send_with_value(libc::SIGRTMIN());
    }
    let (status, text) = target.finish();
    let result = result();
    assert_eq!(text.trim_end(), format!("{result} {result} {INSPECTIONS} 0"));
    assert_eq!(status.code(), Some(7));
}

#[test]
fn a_stopped_process_stays_stopped() {
    let program = Program::build();
    let target = program.start("work");
    target.send(libc::SIGSTOP);
    target.wait_for('T');
    for _ in 0..3 {
        let stacks = target.stacks();
        assert!(stacks.threads.iter().all(|thread| thread.state == 'T' && thread.problem.is_none()), "{stacks:#?}");
        thread_in(&stacks, "sleep_in_calls");
        target.wait_for('T');
    }
    target.send(libc::SIGCONT);
    let (status, _) = target.finish();
    assert_eq!(status.code(), Some(7));
}

#[test]
fn threads_may_start_and_end_meanwhile() {
    let program = Program::build();
    let target = program.start("spawn");
    for _ in 0..50 {
        let stacks = target.stacks();
        assert!(names(&stacks.threads[0]).contains(&"main"), "{stacks:#?}");
    }
}

#[test]
fn a_killed_inspection_leaves_the_process_running() {
    const NAME: &str = "side_effects::a_killed_inspection_leaves_the_process_running";
    if let Some(process) = child::role() {
        let process = process.parse().unwrap();
        loop {
            let _ = stacks_of(process, &options());
        }
    }
    let program = Program::build();
    let target = program.start("work");
    for round in 0..10 {
        let mut inspector =
            child::command(&child::own_executable(), NAME, &target.number().to_string()).spawn().unwrap();
        // Long enough to be in the middle of an inspection, at a different step each time.
        std::thread::sleep(Duration::from_millis(100 + 7 * round));
        inspector.kill().unwrap();
        inspector.wait().unwrap();
    }
    let stacks = target.stacks();
    assert_eq!(stacks.threads.len(), 4);
    let (status, text) = target.finish();
    assert_eq!(text.trim_end(), format!("{0} {0} 0 0", result()));
    assert_eq!(status.code(), Some(7));
}

#[test]
fn an_unstoppable_thread_does_not_delay_the_others() {
    let program = Program::build();
    let mut target = program.start("vfork");
    let stuck = |stacks: &stackweave_remote::ProcessStacks| stacks.threads[1].state == 'D';
    let mut options = options();
    options.stop_timeout = Duration::from_millis(50);
    let end = Instant::now() + Duration::from_secs(2);
    let stacks = loop {
        let stacks = stacks_of(target.number(), &options).unwrap();
        if stuck(&stacks) || Instant::now() > end {
            break stacks;
        }
    };
    assert_eq!(stacks.threads[1].problem.as_deref(), Some("it waits in the kernel, where nothing can stop it"));
    assert!(names(&stacks.threads[0]).contains(&"main"), "{stacks:#?}");
    // The child in its memory ends, and the thread continues.
    assert_eq!(target.line(), "back");
    assert_eq!(target.finish().0.code(), Some(5));
}

#[test]
fn a_process_that_is_already_traced_is_not_read() {
    let program = Program::build();
    let target = program.start("work");
    let number = target.number().cast_signed();
    let nothing = std::ptr::null_mut::<u8>();
    // SAFETY: takes only numbers. The tracee continues, and is detached when this thread ends.
    assert_eq!(unsafe { libc::ptrace(libc::PTRACE_SEIZE, number, nothing, nothing) }, 0);
    let refused = stacks_of(target.number(), &options()).unwrap_err();
    assert!(matches!(refused, InspectionError::Traced { process, .. } if process == target.number()), "{refused:?}");
}

#[test]
fn an_ended_process_is_reported() {
    const NAME: &str = "side_effects::an_ended_process_is_reported";
    if child::role().is_some() {
        // It never waits for its child.
        eprintln!("{}", Command::new("true").spawn().unwrap().id());
        std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        return;
    }
    // Not a child of this process: the inspection waits for threads that it has stopped, and would consume the
    // exit status that the parent expects.
    let mut parent = child::command(&child::own_executable(), NAME, "parent");
    let mut parent = parent.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(parent.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let number = line.trim().parse().unwrap();
    let end = Instant::now() + Duration::from_secs(20);
    let refused = loop {
        let refused = stacks_of(number, &options());
        if matches!(refused, Err(InspectionError::Ended(_))) || Instant::now() > end {
            break refused.unwrap_err();
        }
    };
    assert_eq!(refused, InspectionError::Ended(number));
    let number = parent.id();
    parent.kill().unwrap();
    parent.wait().unwrap();
    assert_eq!(stacks_of(number, &options()).unwrap_err(), InspectionError::NoProcess(number));
}

#[test]
fn a_process_of_another_user_is_refused_with_a_remedy() {
    use std::os::unix::process::CommandExt as _;
    const NAME: &str = "side_effects::a_process_of_another_user_is_refused_with_a_remedy";
    const OTHER_USER: u32 = 65534;
    if let Some(process) = child::role() {
        let refused = stacks_of(process.parse().unwrap(), &options()).unwrap_err();
        eprintln!("{refused}");
        return;
    }
    // SAFETY: `geteuid` has no preconditions.
    if unsafe { libc::geteuid() } != 0 {
        println!("skipped: only the administrator can become another user");
        return;
    }
    let program = Program::build();
    let target = program.start("work");
    let folder = stackweave_testkit::folder::Folder::new();
    let executable = folder.file("looks");
    std::fs::copy(child::own_executable(), &executable).unwrap();
    let mut inspector = child::command(&executable, NAME, &target.number().to_string());
    let output = child::run(inspector.uid(OTHER_USER).gid(OTHER_USER));
    let text = child::text(&output);
    let expected = format!("not allowed to look into process {}: it runs as another user; use sudo", target.number());
    assert!(text.contains(&expected), "{text}");
}

//! Phases that are open at a fork are open in both processes, and end in each separately.

use std::path::{Path, PathBuf};

use stackweave_recording::timing::{AnomalyCounts, Outcome, Timing};
use stackweave_testkit::child::in_own_process;

use super::{Table, events, frame, options, read, stop_and_read, timing_with};

/// Forks, runs `inside` in the child, and waits for it.
fn in_child(inside: impl FnOnce()) -> u32 {
    // SAFETY: the child only does what is allowed after a fork of a process with threads: glibc lets it allocate.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(inside));
        // SAFETY: ends the process.
        unsafe { libc::_exit(i32::from(result.is_err())) }
    }
    let mut status = 0;
    // SAFETY: a child of this process, and memory for its status.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    assert_eq!(status, 0, "the child ended well");
    pid.unsigned_abs()
}

fn beside(folder: &Path, pid: u32) -> PathBuf {
    folder.join(format!("out.{pid}.swv"))
}

fn forked(folder: &Path, record: impl Fn(&Timing)) -> (Timing, u32) {
    let timing = timing_with(options(folder.join("out.swv")));
    timing.at(0).push(frame("outer"));
    timing.at(10).push(frame("inner"));
    let child = in_child(|| record(&timing));
    (timing, child)
}

#[test]
fn a_child_continues_open_phases() {
    let name = "recorded_phases::forking::a_child_continues_open_phases";
    in_own_process(name, |folder| {
        let (timing, child) = forked(folder, |timing| {
            assert_eq!(timing.depth(), 2);
            timing.at(20).push(frame("of the child"));
            assert!(timing.at(25).pop() && timing.at(30).pop() && timing.at(50).pop());
            assert!(!timing.at(60).pop());
            // Phases from before the fork are not counted as calls again.
            let expected = Table::new(
                &[("outer", [0, 0, 20, 30]), ("inner", [0, 0, 5, 10]), ("of the child", [1, 1, 5, 5])],
                &[("outer", "inner", [0, 0, 5, 10]), ("inner", "of the child", [1, 1, 5, 5])],
            );
            assert_eq!(stop_and_read(timing), expected);
        });
        assert!(timing.at(100).pop() && timing.at(200).pop());
        assert_eq!(timing.anomalies(), AnomalyCounts::default(), "the child's pop is the child's");
        let expected = Table::new(
            &[("outer", [1, 1, 110, 200]), ("inner", [1, 1, 90, 90])],
            &[("outer", "inner", [1, 1, 90, 90])],
        );
        assert_eq!(stop_and_read(&timing), expected);
        assert_eq!(read(&beside(folder, child)).processes().len(), 1);
    });
}

#[test]
fn a_token_of_the_parent_closes_in_the_child() {
    in_own_process("recorded_phases::forking::a_token_of_the_parent_closes_in_the_child", |folder| {
        let timing = timing_with(options(folder.join("out.swv")));
        let outer = timing.at(0).push(frame("outer"));
        timing.at(10).push(frame("inner"));
        let child = in_child(|| {
            timing.at(20).forked();
            timing.at(21).forked();
            assert!(timing.at(30).close(outer, Outcome::Failed, b""));
            timing.recorder().stop();
        });
        let kinds: Vec<(String, i64)> =
            events(&beside(folder, child)).into_iter().map(|event| (event.kind, event.at)).collect();
        let expected = [("still-open", 20), ("still-open", 20), ("end-left-open", 30), ("end-failed", 30)];
        assert_eq!(kinds, expected.map(|(kind, at)| (kind.to_owned(), at)));
        assert!(timing.at(40).close(outer, Outcome::Done, b""));
    });
}

#[test]
fn a_child_without_events_has_no_file() {
    let folder = in_own_process("recorded_phases::forking::a_child_without_events_has_no_file", |folder| {
        let (timing, _) = forked(folder, |timing| assert_eq!(timing.depth(), 2));
        assert!(timing.at(20).pop() && timing.at(30).pop());
        stop_and_read(&timing);
    });
    assert!(folder.is_none_or(|folder| folder.names() == ["out.swv"]));
}

#[test]
fn a_child_without_open_phases_records_only_its_own() {
    in_own_process("recorded_phases::forking::a_child_without_open_phases_records_only_its_own", |folder| {
        let timing = timing_with(options(folder.join("out.swv")));
        timing.at(0).push(frame("before"));
        timing.at(5).pop();
        let child = in_child(|| {
            timing.at(7).push(frame("child"));
            timing.at(9).pop();
            timing.recorder().stop();
        });
        assert_eq!(events(&beside(folder, child)).len(), 2);
    });
}

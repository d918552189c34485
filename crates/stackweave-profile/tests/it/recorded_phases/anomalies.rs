//! Unexpected sequences of events cause no panic, and the recording stays in order.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;

use stackweave_recording::timing::{AnomalyCounts, Outcome, Timing};
use stackweave_recording::{RecorderOptions, Recording, WhenFull};
use stackweave_store::label;
use stackweave_testkit::folder::Folder;

use super::{RecordedEvent, Table, event, events, frame, options, stop_and_read, timing, timing_with};

#[test]
fn pops_without_pushes_are_counted_and_have_a_location() {
    let folder = Folder::new();
    let timing = timing(&folder);
    assert!(!timing.at(1).pop());
    timing.at(2).push(frame("work"));
    assert!(timing.at(3).pop());
    assert!(!timing.at(4).pop_with(Outcome::Failed, br#"{"error": "lost"}"#));
    assert!(!timing.at(5).pop_if_open());
    timing.at(5).unmatched_pop(label("pop without push", "compiler.py", 42), None);
    assert_eq!(timing.anomalies(), AnomalyCounts { unmatched_pops: 3, ..AnomalyCounts::default() });
    assert_eq!(stop_and_read(&timing), Table::new(&[("work", [1, 1, 1, 1])], &[]));
    let unmatched: Vec<i64> = of_kind(&timing, "unmatched-pop").iter().map(|event| event.at).collect();
    assert_eq!(unmatched, [1, 4, 5]);
}

fn of_kind(timing: &Timing, kind: &str) -> Vec<RecordedEvent> {
    events(&timing.recorder().path()).into_iter().filter(|event| event.kind == kind).collect()
}

#[test]
fn tokens_close_their_phase_once_and_on_their_thread() {
    let folder = Folder::new();
    let timing = timing(&folder);
    let outer = timing.at(0).push(frame("outer"));
    let inner = timing.at(10).push(frame("inner"));
    assert_eq!((outer.depth(), inner.depth()), (0, 1));
    thread::scope(|scope| {
        scope.spawn(|| {
            timing.at(11).push(frame("elsewhere"));
            assert!(!timing.at(12).close(outer, Outcome::Done, b""), "another thread's");
            assert!(timing.at(13).pop());
        });
    });
    assert!(timing.at(20).close(outer, Outcome::Failed, b""), "the outer one first");
    assert!(!timing.at(21).close(inner, Outcome::Done, b""), "it was ended with the outer one");
    assert!(!timing.at(22).close(outer, Outcome::Done, b""), "closed before");
    let other = timing.at(30).push(frame("other"));
    assert!(!timing.at(31).close(outer, Outcome::Done, b""), "its place is another's");
    assert!(timing.at(40).close(other, Outcome::Done, b""));
    assert_eq!(timing.anomalies(), AnomalyCounts { left_open: 1, lost_tokens: 4, ..AnomalyCounts::default() });
    let functions =
        [("outer", [1, 1, 10, 20]), ("inner", [1, 1, 10, 10]), ("elsewhere", [1, 1, 2, 2]), ("other", [1, 1, 10, 10])];
    assert_eq!(stop_and_read(&timing), Table::new(&functions, &[("outer", "inner", [1, 1, 10, 10])]));
}

#[test]
fn details_that_are_too_long_do_not_lose_the_phase() {
    let folder = Folder::new();
    let timing = timing(&folder);
    let long = format!("{{\"text\": \"{}\"}}", "x".repeat(70_000)).into_bytes();
    timing.at(1).push_run(frame("run"), &long);
    timing.at(2).push_with(frame("inner"), &long);
    assert!(timing.at(3).pop_with(Outcome::Failed, &long) && timing.at(4).pop_with(Outcome::Done, &long));
    let expected = Table::new(&[("run", [1, 1, 2, 3]), ("inner", [1, 1, 1, 1])], &[("run", "inner", [1, 1, 1, 1])]);
    assert_eq!(stop_and_read(&timing), expected);
    let details: Vec<String> = events(&timing.recorder().path()).into_iter().map(|event| event.details).collect();
    assert_eq!(details, vec![r#"{"omitted_bytes": 70012}"#; 4]);
}

#[test]
fn phases_inside_of_a_query_of_open_phases_are_refused() {
    let folder = Folder::new();
    let timing = timing(&folder);
    timing.at(0).push(frame("outer"));
    timing.with_open(|open| {
        let token = timing.at(1).push(frame("refused"));
        assert_eq!((open.len(), timing.depth(), timing.current()), (1, 1, Some(frame("outer"))));
        assert!(timing.at(2).pop(), "it had its push");
        assert!(!timing.at(3).close(token, Outcome::Done, b""));
    });
    assert!(timing.at(4).pop());
    assert_eq!(timing.anomalies(), AnomalyCounts { refused: 3, ..AnomalyCounts::default() });
    assert_eq!(stop_and_read(&timing), Table::new(&[("outer", [1, 1, 4, 4])], &[]));
}

#[test]
fn changes_during_a_pause_are_known_after_it() {
    let folder = Folder::new();
    let timing = timing(&folder);
    timing.at(0).push(frame("outer"));
    timing.at(10).push(frame("ends unrecorded"));
    timing.recorder().pause();
    timing.at(20).pop();
    timing.at(30).push(frame("begins unrecorded"));
    timing.recorder().resume();
    timing.at(40).push(frame("inner"));
    assert!(timing.at(45).pop() && timing.at(50).pop());
    timing.recorder().pause();
    timing.at(60).pop();
    timing.recorder().resume();
    timing.at(70).push(frame("alone"));
    assert!(timing.at(71).pop());
    let summary = timing.recorder().stop();
    let table = super::table_of(&super::profile_of(super::read(&summary.path).processes()));
    // A phase without a recorded end ends with its thread's last event; one without a recorded start is no call.
    let functions = [
        ("outer", [1, 1, 40, 50]),
        ("ends unrecorded", [1, 1, 0, 0]),
        ("begins unrecorded", [0, 0, 5, 10]),
        ("inner", [1, 1, 5, 5]),
        ("alone", [1, 1, 1, 1]),
    ];
    assert_eq!(table.functions, Table::new(&functions, &[]).functions);
}

/// The event after a loss notices it: that event may be out of order, and the next one records the open phases.
#[test]
fn only_the_first_event_after_a_loss_is_out_of_order() {
    let folder = Folder::new();
    let path = folder.file("dropped.swv");
    let timing = timing_with(RecorderOptions { when_full: WhenFull::Drop, memory: 0, ..RecorderOptions::new(path) });
    let names = ["a", "b", "c", "d"].map(frame);
    for _ in 0..50_000 {
        for name in names {
            timing.push(name);
        }
        assert!(names.iter().all(|_| timing.pop()));
    }
    let summary = timing.recorder().stop();
    assert!(summary.lost.values().sum::<u64>() > 0, "the buffers were never full");
    let recording = Recording::open(&summary.path).unwrap();
    let table = super::table_of(&super::profile_of(recording.processes()));
    let nests = |caller: &str, callee: &str| ["ab", "bc", "cd"].contains(&&*format!("{caller}{callee}"));
    let wrong = table.callers.iter().filter(|((caller, callee), _)| !nests(caller, callee));
    let wrong: i64 = wrong.map(|(_, cost)| cost[0]).sum();
    let open_records = of_kind(&timing, "still-open").iter().map(|event| event.at).collect::<BTreeSet<i64>>().len();
    assert!(open_records > 0 && wrong <= i64::try_from(open_records).unwrap(), "{wrong} wrong of {open_records}");
}

#[test]
fn a_stopped_recording_ignores_events() {
    let folder = Folder::new();
    let timing = timing(&folder);
    timing.at(0).push(frame("work"));
    timing.at(1).pop();
    timing.recorder().stop();
    let token = timing.push(frame("late"));
    assert!(timing.close(token, Outcome::Done, b"") && !timing.pop());
    let all = events(&timing.recorder().path());
    assert_eq!(all, [event("begin", 0, "work", ""), event("end", 1, "", "")]);
}

thread_local! {
    static BEFORE: RefCell<Option<AtThreadEnd>> = const { RefCell::new(None) };
    static AFTER: RefCell<Option<AtThreadEnd>> = const { RefCell::new(None) };
}

struct AtThreadEnd(Arc<Timing>, &'static str);

impl Drop for AtThreadEnd {
    fn drop(&mut self) {
        let Self(timing, name) = self;
        let token = timing.push(frame(name));
        timing.push(frame("inside"));
        assert!(timing.pop() && timing.current() == Some(frame(name)));
        assert!(timing.close(token, Outcome::Done, b""));
        timing.pop();
    }
}

#[test]
fn destructors_of_a_thread_can_record_phases() {
    let folder = Folder::new();
    let timing = Arc::new(timing_with(options(folder.file("ends.swv"))));
    let held = Arc::clone(&timing);
    let ended = thread::spawn(move || {
        BEFORE.set(Some(AtThreadEnd(Arc::clone(&held), "before")));
        held.push(frame("left open"));
        AFTER.set(Some(AtThreadEnd(held, "behind")));
    });
    ended.join().unwrap();
    let table = stop_and_read(&timing);
    let calls: Vec<(&str, i64)> = table.functions.iter().map(|(name, cost)| (&**name, cost[0])).collect();
    assert_eq!(calls, [("before", 1), ("behind", 1), ("inside", 2), ("left open", 1)]);
    let anomalies = timing.anomalies();
    // Either one destructor runs while the phase is open, and pops it; or both run after the thread has ended it.
    assert!(matches!((anomalies.unmatched_pops, anomalies.left_open), (1, 0) | (2, 1)), "{anomalies:?}");
}

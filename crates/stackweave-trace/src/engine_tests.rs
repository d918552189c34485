//! Cases that are easy to follow; `model_tests.rs` has random ones.

use stackweave_cpython::calls::{Entering, Leaving, Verdict};

use crate::fake_thread::{DESCRIBED, EXCLUDED, FakeFrame, FakeThread, GENERATORS, label_call};
use crate::limits::TraceLimits;
use crate::sink::TraceEvent;

fn call(fake: &FakeThread, address: u64, code: u32, caller: Option<FakeFrame>) -> FakeFrame {
    let frame = FakeFrame::new(address, code).called_by(caller);
    fake.enter(Entering::Call, frame);
    frame
}

#[test]
fn calls_that_are_open_at_the_first_event_are_recorded_at_any_depth() {
    let fake = FakeThread::new(TraceLimits::NONE);
    let mut caller = None;
    for depth in 1..=1000 {
        caller = Some(FakeFrame::new(depth * 64, 1).called_by(caller));
    }
    call(&fake, 8, 2, caller);
    let replayed = fake.replay();
    assert_eq!((replayed.open.len(), replayed.counted), (1001, vec![2]));
    assert_eq!(fake.rules.repairs.get(), 0);
}

#[test]
fn calls_that_are_open_at_the_start_are_excluded_on_every_thread_if_requested() {
    for first_is_an_end in [false, true] {
        let fake = FakeThread::new(TraceLimits::NONE);
        fake.shows_outer.set(false);
        let main = FakeFrame::new(64, 1);
        let outer = FakeFrame::new(128, 2).called_by(Some(main));
        if first_is_an_end {
            fake.leave(Leaving::Return, FakeFrame::new(192, 3).called_by(Some(outer)));
        }
        let inner = call(&fake, 192, 4, Some(outer));
        assert_eq!((fake.replay().open.len(), fake.replay().counted), (1, vec![4]));
        fake.leave(Leaving::Return, inner);
        fake.leave(Leaving::Return, outer);
        call(&fake, 128, 5, Some(main));
        assert_eq!((fake.replay().open.len(), fake.replay().counted), (1, vec![4, 5]));
        assert_eq!(fake.rules.repairs.get(), 0);
    }
}

#[test]
fn the_first_event_may_be_an_end() {
    let fake = FakeThread::new(TraceLimits::NONE);
    let outer = FakeFrame::new(64, 1);
    fake.leave(Leaving::Return, FakeFrame::new(128, 2).called_by(Some(outer)));
    assert_eq!(fake.events(), [TraceEvent::Open, TraceEvent::Open, TraceEvent::Return]);
    assert_eq!(fake.replay().functions(), [1]);
}

#[test]
fn missing_end_events_are_compensated() {
    let fake = FakeThread::new(TraceLimits::NONE);
    let outer = call(&fake, 64, 1, None);
    let inner = call(&fake, 128, 2, Some(outer));
    call(&fake, 192, 3, Some(inner));
    call(&fake, 256, 4, Some(outer));
    assert_eq!(fake.replay().functions(), [1, 4]);
    assert_eq!(fake.rules.repairs.get(), 1);
    fake.leave(Leaving::Return, outer);
    assert!(fake.replay().open.is_empty());
}

#[test]
fn greenlets_alternate_and_each_gets_its_stack_back() {
    let fake = FakeThread::new(TraceLimits::NONE);
    let main = call(&fake, 64, 1, None);
    let first = call(&fake, 128, 2, Some(main));
    fake.begin_span(7);
    let other = call(&fake, 1024, 3, None);
    assert_eq!(fake.replay().functions(), [3]);
    call(&fake, 192, 4, Some(first));
    let replayed = fake.replay();
    assert_eq!((replayed.functions(), replayed.open.len()), (vec![1, 2, 4], 4));
    // The other greenlet ends without a call in between.
    fake.leave(Leaving::Return, other);
    assert!(fake.replay().open.is_empty());
}

#[test]
fn a_span_resumes_with_its_generator() {
    let fake = FakeThread::new(TraceLimits::NONE);
    let main = call(&fake, 64, 1, None);
    let generator = call(&fake, 128, GENERATORS, Some(main));
    fake.begin_span(7);
    fake.leave(Leaving::Yield, generator);
    assert_eq!(fake.replay().functions(), [1]);
    call(&fake, 256, 2, Some(main));
    let elsewhere = FakeFrame::new(256, 2).called_by(Some(main));
    fake.enter(Entering::Resume, generator.called_by(Some(elsewhere)));
    let replayed = fake.replay();
    assert_eq!(replayed.functions(), [1, 2, GENERATORS]);
    assert_eq!(replayed.open.last(), Some(&label_call(7).to_bits()));
    assert!(fake.end_span() && !fake.end_span());
    fake.leave(Leaving::Return, generator);
    assert_eq!(fake.replay().functions(), [1, 2]);
}

#[test]
fn a_span_outlives_the_function_that_began_it() {
    let fake = FakeThread::new(TraceLimits::NONE);
    let main = call(&fake, 64, 1, None);
    let helper = call(&fake, 128, 2, Some(main));
    fake.begin_span(7);
    fake.leave(Leaving::Return, helper);
    assert_eq!(fake.replay().open.last(), Some(&label_call(7).to_bits()));
    let other = call(&fake, 128, 3, Some(main));
    assert!(fake.end_span());
    assert_eq!(fake.replay().functions(), [1, 3]);
    fake.leave(Leaving::Raise, other);
    fake.leave(Leaving::Return, main);
    let replayed = fake.replay();
    assert!(replayed.open.is_empty());
    assert_eq!(replayed.counted, [1, 2, 3]);
}

#[test]
fn a_native_function_ends_with_the_frame_that_called_it() {
    let fake = FakeThread::new(TraceLimits::NONE);
    let main = call(&fake, 64, 1, None);
    fake.engine().enter_native(label_call(9), main);
    let inner = call(&fake, 128, 2, Some(main));
    fake.leave(Leaving::Return, inner);
    fake.engine().leave_native(false, main);
    assert_eq!(fake.replay().open.len(), 1);
    fake.engine().enter_native(label_call(9), main);
    fake.leave(Leaving::Raise, main);
    assert!(fake.replay().open.is_empty());
    fake.engine().leave_native(true, main);
    assert!(fake.replay().open.is_empty());
}

#[test]
fn an_excluded_function_is_disabled_and_its_callees_get_its_caller() {
    let fake = FakeThread::new(TraceLimits::NONE);
    let main = call(&fake, 64, 1, None);
    let hidden = FakeFrame::new(128, EXCLUDED).called_by(Some(main));
    assert_eq!(fake.enter(Entering::Call, hidden), Verdict::Disable);
    let inner = call(&fake, 192, 2, Some(hidden));
    assert_eq!(fake.replay().functions(), [1, 2]);
    fake.leave(Leaving::Return, inner);
    call(&fake, 192, 3, Some(hidden));
    assert_eq!(fake.replay().functions(), [1, 3]);
    assert_eq!(fake.leave(Leaving::Return, hidden), Verdict::Disable);
    assert_eq!(fake.rules.repairs.get(), 0);
}

#[test]
fn short_calls_are_excluded_unless_a_call_in_them_is_long() {
    let fake = FakeThread::new(TraceLimits { min_duration: 100, ..TraceLimits::NONE });
    let main = call(&fake, 64, 1, None);
    let short = call(&fake, 128, 2, Some(main));
    fake.leave(Leaving::Return, short);
    assert!(fake.events().is_empty());
    let middle = call(&fake, 128, 3, Some(main));
    let long = call(&fake, 192, 4, Some(middle));
    fake.recorded.pass(100);
    fake.leave(Leaving::Return, long);
    assert_eq!(fake.events(), [TraceEvent::Call, TraceEvent::Call, TraceEvent::Call, TraceEvent::Return]);
    fake.leave(Leaving::Return, middle);
    fake.leave(Leaving::Return, main);
    let replayed = fake.replay();
    assert_eq!((replayed.counted, replayed.open.len()), (vec![1, 3, 4], 0));
    assert_eq!((fake.rules.hidden.get(), fake.rules.late.get()), (1, 3));
}

#[test]
fn a_span_in_a_possibly_short_call_is_recorded_with_the_call() {
    let fake = FakeThread::new(TraceLimits { min_duration: 100, ..TraceLimits::NONE });
    let main = call(&fake, 64, 1, None);
    fake.begin_span(7);
    assert!(fake.end_span());
    fake.leave(Leaving::Return, main);
    assert_eq!(fake.replay().counted, [1]);
}

#[test]
fn deep_calls_are_excluded() {
    let fake = FakeThread::new(TraceLimits { max_depth: 2, ..TraceLimits::NONE });
    let main = call(&fake, 64, 1, None);
    let second = call(&fake, 128, 2, Some(main));
    let third = call(&fake, 192, 3, Some(second));
    fake.leave(Leaving::Return, third);
    fake.leave(Leaving::Return, second);
    assert_eq!((fake.replay().counted, fake.rules.hidden.get()), (vec![1, 2], 1));
}

#[test]
fn only_ends_are_recorded_after_the_last_event() {
    let fake = FakeThread::new(TraceLimits { max_events: 2, ..TraceLimits::NONE });
    let main = call(&fake, 64, 1, None);
    let second = call(&fake, 128, 2, Some(main));
    let third = call(&fake, 192, 3, Some(second));
    for frame in [third, second, main] {
        fake.leave(Leaving::Return, frame);
    }
    let replayed = fake.replay();
    assert_eq!((replayed.counted, replayed.open.len(), fake.rules.dropped.get()), (vec![1, 2], 0, 1));
}

#[test]
fn a_demoted_function_is_not_recorded_any_more() {
    let mut fake = FakeThread::new(TraceLimits::NONE);
    fake.functions.demotes.insert(2);
    let main = call(&fake, 64, 1, None);
    for _ in 0..3 {
        let frame = call(&fake, 128, 2, Some(main));
        assert_eq!(fake.leave(Leaving::Return, frame), Verdict::Record);
    }
    let frame = FakeFrame::new(128, 2).called_by(Some(main));
    assert_eq!(fake.enter(Entering::Call, frame), Verdict::Disable);
    assert_eq!(fake.leave(Leaving::Return, frame), Verdict::Disable);
    assert_eq!(fake.replay().counted, [1, 2, 2, 2]);
}

#[test]
fn a_function_is_judged_by_its_self_time() {
    let fake = FakeThread::new(TraceLimits::NONE);
    let main = call(&fake, 64, 1, None);
    for _ in 0..3 {
        let outer = call(&fake, 128, 2, Some(main));
        fake.recorded.pass(10);
        let inner = call(&fake, 192, 3, Some(outer));
        fake.recorded.pass(1000);
        fake.leave(Leaving::Return, inner);
        fake.leave(Leaving::Return, outer);
    }
    let judged = fake.functions.judged.borrow();
    let ticks = |number| judged.iter().find(|judged| judged.0 == number).map(|judged| judged.1);
    assert!(ticks(3).is_some_and(|ticks| ticks >= 3000), "{judged:?}");
    assert!(ticks(2).is_some_and(|ticks| (30..100).contains(&ticks)), "{judged:?}");
}

#[test]
fn the_describer_is_called_once_for_each_described_call() {
    let fake = FakeThread::new(TraceLimits::NONE);
    let frame = call(&fake, 64, DESCRIBED, None);
    fake.leave(Leaving::Return, frame);
    call(&fake, 64, DESCRIBED, None);
    assert_eq!(*fake.functions.described.borrow(), [DESCRIBED, DESCRIBED]);
    assert_eq!(fake.replay().counted, [DESCRIBED, DESCRIBED]);
}

#[test]
fn a_pause_ends_all_calls_and_spans_resume_after_it() {
    let fake = FakeThread::new(TraceLimits::NONE);
    let main = call(&fake, 64, 1, None);
    fake.begin_span(7);
    let inner = call(&fake, 128, 2, Some(main));
    fake.stack.pause(fake.writer(), 1000);
    assert!(fake.replay().open.is_empty());
    fake.recorded.pass(2000);
    fake.since.set(1500);
    fake.leave(Leaving::Return, inner);
    let replayed = fake.replay();
    assert_eq!(replayed.functions(), [1]);
    assert_eq!(replayed.open.last(), Some(&label_call(7).to_bits()));
}

#[test]
fn a_forked_child_records_again_what_is_open() {
    let fake = FakeThread::new(TraceLimits::NONE);
    let main = call(&fake, 64, 1, None);
    fake.begin_span(7);
    call(&fake, 128, 2, Some(main));
    fake.recorded.events.borrow_mut().clear();
    fake.stack.record_open_again(fake.writer(), 5000);
    assert_eq!(fake.events(), [TraceEvent::Open; 3]);
    assert_eq!(fake.replay().functions(), [1, 2]);
}

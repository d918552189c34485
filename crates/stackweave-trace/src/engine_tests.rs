//! Cases that a reader can follow; `model_tests.rs` has those that nobody thinks of.

use stackweave_cpython::calls::{Entering, Leaving, Verdict};

use crate::fake::{DESCRIBED, Frame, GENERATORS, LEFT_OUT, World, label_call};
use crate::rules::Limits;
use crate::sink::What;

fn call(world: &World, address: u64, code: u32, caller: Option<Frame>) -> Frame {
    let frame = Frame::new(address, code).called_by(caller);
    world.enter(Entering::Call, frame);
    frame
}

#[test]
fn what_is_open_at_the_first_event_is_opened_however_deep() {
    let world = World::new(Limits::NONE);
    let mut caller = None;
    for depth in 1..=1000 {
        caller = Some(Frame::new(depth * 64, 1).called_by(caller));
    }
    call(&world, 8, 2, caller);
    let replayed = world.replay();
    assert_eq!((replayed.open.len(), replayed.counted), (1001, vec![2]));
    assert_eq!(world.rules.repairs.get(), 0);
}

#[test]
fn what_is_open_around_the_start_is_left_out_on_every_thread_if_wanted() {
    for first_is_an_end in [false, true] {
        let world = World::new(Limits::NONE);
        world.shows_outer.set(false);
        let main = Frame::new(64, 1);
        let outer = Frame::new(128, 2).called_by(Some(main));
        if first_is_an_end {
            world.leave(Leaving::Return, Frame::new(192, 3).called_by(Some(outer)));
        }
        let inner = call(&world, 192, 4, Some(outer));
        assert_eq!((world.replay().open.len(), world.replay().counted), (1, vec![4]));
        world.leave(Leaving::Return, inner);
        world.leave(Leaving::Return, outer);
        call(&world, 128, 5, Some(main));
        assert_eq!((world.replay().open.len(), world.replay().counted), (1, vec![4, 5]));
        assert_eq!(world.rules.repairs.get(), 0);
    }
}

#[test]
fn the_first_event_may_be_an_end() {
    let world = World::new(Limits::NONE);
    let outer = Frame::new(64, 1);
    world.leave(Leaving::Return, Frame::new(128, 2).called_by(Some(outer)));
    assert_eq!(world.events(), [What::Open, What::Open, What::Return]);
    assert_eq!(world.replay().functions(), [1]);
}

#[test]
fn ends_that_nobody_told_are_made_up_for() {
    let world = World::new(Limits::NONE);
    let outer = call(&world, 64, 1, None);
    let inner = call(&world, 128, 2, Some(outer));
    call(&world, 192, 3, Some(inner));
    call(&world, 256, 4, Some(outer));
    assert_eq!(world.replay().functions(), [1, 4]);
    assert_eq!(world.rules.repairs.get(), 1);
    world.leave(Leaving::Return, outer);
    assert!(world.replay().open.is_empty());
}

#[test]
fn greenlets_take_turns_and_each_finds_its_stack_again() {
    let world = World::new(Limits::NONE);
    let main = call(&world, 64, 1, None);
    let first = call(&world, 128, 2, Some(main));
    world.begin_span(7);
    let other = call(&world, 1024, 3, None);
    assert_eq!(world.replay().functions(), [3]);
    call(&world, 192, 4, Some(first));
    let replayed = world.replay();
    assert_eq!((replayed.functions(), replayed.open.len()), (vec![1, 2, 4], 4));
    // The other one ends without a call in between.
    world.leave(Leaving::Return, other);
    assert!(world.replay().open.is_empty());
}

#[test]
fn a_span_goes_on_with_the_generator_that_it_is_in() {
    let world = World::new(Limits::NONE);
    let main = call(&world, 64, 1, None);
    let generator = call(&world, 128, GENERATORS, Some(main));
    world.begin_span(7);
    world.leave(Leaving::Yield, generator);
    assert_eq!(world.replay().functions(), [1]);
    call(&world, 256, 2, Some(main));
    let elsewhere = Frame::new(256, 2).called_by(Some(main));
    world.enter(Entering::Resume, generator.called_by(Some(elsewhere)));
    let replayed = world.replay();
    assert_eq!(replayed.functions(), [1, 2, GENERATORS]);
    assert_eq!(replayed.open.last(), Some(&label_call(7).to_bits()));
    assert!(world.end_span() && !world.end_span());
    world.leave(Leaving::Return, generator);
    assert_eq!(world.replay().functions(), [1, 2]);
}

#[test]
fn a_span_outlives_the_function_that_began_it() {
    let world = World::new(Limits::NONE);
    let main = call(&world, 64, 1, None);
    let helper = call(&world, 128, 2, Some(main));
    world.begin_span(7);
    world.leave(Leaving::Return, helper);
    assert_eq!(world.replay().open.last(), Some(&label_call(7).to_bits()));
    let other = call(&world, 128, 3, Some(main));
    assert!(world.end_span());
    assert_eq!(world.replay().functions(), [1, 3]);
    world.leave(Leaving::Raise, other);
    world.leave(Leaving::Return, main);
    let replayed = world.replay();
    assert!(replayed.open.is_empty());
    assert_eq!(replayed.counted, [1, 2, 3]);
}

#[test]
fn a_native_function_ends_with_the_frame_that_called_it() {
    let world = World::new(Limits::NONE);
    let main = call(&world, 64, 1, None);
    world.engine().enter_native(label_call(9), main);
    let inner = call(&world, 128, 2, Some(main));
    world.leave(Leaving::Return, inner);
    world.engine().leave_native(false, main);
    assert_eq!(world.replay().open.len(), 1);
    world.engine().enter_native(label_call(9), main);
    world.leave(Leaving::Raise, main);
    assert!(world.replay().open.is_empty());
    world.engine().leave_native(true, main);
    assert!(world.replay().open.is_empty());
}

#[test]
fn what_is_left_out_is_disabled_and_its_callees_are_its_callers() {
    let world = World::new(Limits::NONE);
    let main = call(&world, 64, 1, None);
    let hidden = Frame::new(128, LEFT_OUT).called_by(Some(main));
    assert_eq!(world.enter(Entering::Call, hidden), Verdict::Disable);
    let inner = call(&world, 192, 2, Some(hidden));
    assert_eq!(world.replay().functions(), [1, 2]);
    world.leave(Leaving::Return, inner);
    call(&world, 192, 3, Some(hidden));
    assert_eq!(world.replay().functions(), [1, 3]);
    assert_eq!(world.leave(Leaving::Return, hidden), Verdict::Disable);
    assert_eq!(world.rules.repairs.get(), 0);
}

#[test]
fn short_calls_are_left_out_unless_something_in_them_is_long() {
    let world = World::new(Limits { min_duration: 100, ..Limits::NONE });
    let main = call(&world, 64, 1, None);
    let short = call(&world, 128, 2, Some(main));
    world.leave(Leaving::Return, short);
    assert!(world.events().is_empty());
    let middle = call(&world, 128, 3, Some(main));
    let long = call(&world, 192, 4, Some(middle));
    world.written.pass(100);
    world.leave(Leaving::Return, long);
    assert_eq!(world.events(), [What::Call, What::Call, What::Call, What::Return]);
    world.leave(Leaving::Return, middle);
    world.leave(Leaving::Return, main);
    let replayed = world.replay();
    assert_eq!((replayed.counted, replayed.open.len()), (vec![1, 3, 4], 0));
    assert_eq!((world.rules.hidden.get(), world.rules.late.get()), (1, 3));
}

#[test]
fn a_span_in_a_call_that_may_be_short_is_kept_with_it() {
    let world = World::new(Limits { min_duration: 100, ..Limits::NONE });
    let main = call(&world, 64, 1, None);
    world.begin_span(7);
    assert!(world.end_span());
    world.leave(Leaving::Return, main);
    assert_eq!(world.replay().counted, [1]);
}

#[test]
fn deep_calls_are_left_out() {
    let world = World::new(Limits { max_depth: 2, ..Limits::NONE });
    let main = call(&world, 64, 1, None);
    let second = call(&world, 128, 2, Some(main));
    let third = call(&world, 192, 3, Some(second));
    world.leave(Leaving::Return, third);
    world.leave(Leaving::Return, second);
    assert_eq!((world.replay().counted, world.rules.hidden.get()), (vec![1, 2], 1));
}

#[test]
fn after_the_last_event_only_ends_are_recorded() {
    let world = World::new(Limits { max_events: 2, ..Limits::NONE });
    let main = call(&world, 64, 1, None);
    let second = call(&world, 128, 2, Some(main));
    let third = call(&world, 192, 3, Some(second));
    for frame in [third, second, main] {
        world.leave(Leaving::Return, frame);
    }
    let replayed = world.replay();
    assert_eq!((replayed.counted, replayed.open.len(), world.rules.dropped.get()), (vec![1, 2], 0, 1));
}

#[test]
fn what_is_demoted_is_not_told_of_any_more() {
    let mut world = World::new(Limits::NONE);
    world.functions.demotes.insert(2);
    let main = call(&world, 64, 1, None);
    for _ in 0..3 {
        let frame = call(&world, 128, 2, Some(main));
        assert_eq!(world.leave(Leaving::Return, frame), Verdict::Tell);
    }
    let frame = Frame::new(128, 2).called_by(Some(main));
    assert_eq!(world.enter(Entering::Call, frame), Verdict::Disable);
    assert_eq!(world.leave(Leaving::Return, frame), Verdict::Disable);
    assert_eq!(world.replay().counted, [1, 2, 2, 2]);
}

#[test]
fn a_function_is_judged_by_its_own_time() {
    let world = World::new(Limits::NONE);
    let main = call(&world, 64, 1, None);
    for _ in 0..3 {
        let outer = call(&world, 128, 2, Some(main));
        world.written.pass(10);
        let inner = call(&world, 192, 3, Some(outer));
        world.written.pass(1000);
        world.leave(Leaving::Return, inner);
        world.leave(Leaving::Return, outer);
    }
    let judged = world.functions.judged.borrow();
    let ticks = |number| judged.iter().find(|judged| judged.0 == number).map(|judged| judged.1);
    assert!(ticks(3).is_some_and(|ticks| ticks >= 3000), "{judged:?}");
    assert!(ticks(2).is_some_and(|ticks| (30..100).contains(&ticks)), "{judged:?}");
}

#[test]
fn described_calls_are_asked_about_once_each() {
    let world = World::new(Limits::NONE);
    let frame = call(&world, 64, DESCRIBED, None);
    world.leave(Leaving::Return, frame);
    call(&world, 64, DESCRIBED, None);
    assert_eq!(*world.functions.asked.borrow(), [DESCRIBED, DESCRIBED]);
    assert_eq!(world.replay().counted, [DESCRIBED, DESCRIBED]);
}

#[test]
fn a_pause_ends_everything_and_spans_go_on_after_it() {
    let world = World::new(Limits::NONE);
    let main = call(&world, 64, 1, None);
    world.begin_span(7);
    let inner = call(&world, 128, 2, Some(main));
    world.thread.pause(world.pen(), 1000);
    assert!(world.replay().open.is_empty());
    world.written.pass(2000);
    world.since.set(1500);
    world.leave(Leaving::Return, inner);
    let replayed = world.replay();
    assert_eq!(replayed.functions(), [1]);
    assert_eq!(replayed.open.last(), Some(&label_call(7).to_bits()));
}

#[test]
fn a_forked_child_says_again_what_is_open() {
    let world = World::new(Limits::NONE);
    let main = call(&world, 64, 1, None);
    world.begin_span(7);
    call(&world, 128, 2, Some(main));
    world.written.events.borrow_mut().clear();
    world.thread.say_again(world.pen(), 5000);
    assert_eq!(world.events(), [What::Open; 3]);
    assert_eq!(world.replay().functions(), [1, 2]);
}

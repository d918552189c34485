//! A thread that is stopped anywhere while it interns a stack blocks no thread, not even itself.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::thread;

use stackweave_core::{CodeAddress, RawFrame, StackId};
use stackweave_store::StackTable;
use stackweave_testkit::counting_allocator::requests;
use stackweave_testkit::signals::{SignalStack, Ticker, with_handlers};

use crate::interruption::{INTERRUPTIONS, Interrupted, in_forked_child, interrupt_at};

/// Returns five frames, of which two are unique to this stack.
fn stack(number: u64) -> [RawFrame; 5] {
    [number * 2 + 0x10_0000, number + 0x7f00_0000_0000, 0x300, 0x200, 0x100]
        .map(|address| RawFrame::native(CodeAddress::return_address(address)))
}

#[test]
fn a_handler_that_interns_the_same_new_stack_gets_the_same_id() {
    let table = StackTable::new();
    table.intern(&stack(0));
    let instructions = interrupt_at(usize::MAX, || table.intern(&stack(1))).steps;
    let mut interrupted = 0;
    for (number, at) in (2..).zip((0..instructions).step_by(1 + instructions / INTERRUPTIONS)) {
        let Interrupted { outer, inner, was_reached, .. } = interrupt_at(at, || table.intern(&stack(number)));
        assert!(table.frames(outer.unwrap()).eq(stack(number)));
        // Some stacks need fewer instructions, so that the last interruptions may not be reached.
        if was_reached {
            assert_eq!(outer, inner, "interrupted before instruction {at}");
            interrupted += 1;
        }
    }
    assert!(interrupted + 5 > INTERRUPTIONS, "{interrupted} of {INTERRUPTIONS}");
    let stats = table.stats();
    assert_eq!(stats.refused, 0);
    // Two nodes for each stack: those of threads that lost a race were reused.
    assert!(stats.stacks as usize <= 3 + 2 * (2 + INTERRUPTIONS) + 2, "{stats:?}");
}

#[test]
fn adding_the_very_first_stack_may_be_interrupted() {
    let table = StackTable::new();
    let instructions = interrupt_at(usize::MAX, || table.intern(&stack(1))).steps;
    for at in (0..instructions).step_by(1 + instructions / (INTERRUPTIONS / 4)) {
        let table = StackTable::new();
        let Interrupted { outer, inner, was_reached, .. } = interrupt_at(at, || table.intern(&stack(1)));
        assert!(outer == inner || !was_reached, "interrupted before instruction {at}");
        assert!(table.frames(outer.unwrap()).eq(stack(1)));
    }
}

#[test]
fn threads_and_their_handlers_agree_while_a_timer_ticks() {
    const STACKS: usize = 60_000;
    let table = StackTable::new();
    let given: Vec<AtomicU32> = (0..STACKS).map(|_| AtomicU32::new(0)).collect();
    let now = AtomicUsize::new(0);
    let wrong = AtomicUsize::new(0);
    let intern = |number: usize| {
        let id = table.intern(&stack(number as u64)).map_or(0, StackId::get);
        let before = given[number].swap(id, Ordering::Relaxed);
        if id == 0 || (before != 0 && before != id) {
            wrong.fetch_add(1, Ordering::Relaxed);
        }
    };
    let mut on_tick = |_: *mut c_void| {
        let number = now.load(Ordering::Relaxed);
        (number..(number + 3).min(STACKS)).for_each(intern);
    };
    thread::scope(|scope| {
        scope.spawn(|| (0..STACKS).rev().for_each(intern));
        with_handlers(&[libc::SIGUSR2], SignalStack::Alternate, &mut on_tick, || {
            let _ticker = Ticker::start(libc::SIGUSR2, 50);
            for number in 0..STACKS {
                now.store(number, Ordering::Relaxed);
                intern(number);
            }
        });
    });
    assert_eq!(wrong.load(Ordering::Relaxed), 0);
    assert!(
        (0..STACKS).all(|number| table.intern(&stack(number as u64)).map(StackId::get)
            == Some(given[number].load(Ordering::Relaxed)))
    );
}

/// Checks in a forked child that known stacks are known, and a new one gets an id.
fn child_goes_on(table: &StackTable, known: StackId, round: u64) -> bool {
    (0..3000)
        .all(|number| table.intern(&stack(number + round)).is_some_and(|id| table.frames(id).eq(stack(number + round))))
        && table.intern(&stack(0)) == Some(known)
}

#[test]
fn a_forked_child_continues_wherever_the_parents_threads_were() {
    let table = StackTable::new();
    let known = table.intern(&stack(0)).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0;
            while !done.load(Ordering::Relaxed) {
                number = (number + 1) % 300_000;
                assert!(table.intern(&stack(number)).is_some());
            }
        });
        for round in 0..40 {
            let status = in_forked_child(|| child_goes_on(&table, known, round * 5000));
            assert_eq!(status, 0, "round {round}");
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn interning_never_calls_the_allocator() {
    let table = StackTable::new();
    let before = requests();
    let mut sum = 0;
    for round in 0..3 {
        for number in 0..50_000 {
            sum += table.intern(&stack(number + round)).map_or(0, |id| u64::from(id.get()) + u64::from(table.len(id)));
            sum += table.intern(&stack(number)).map_or(0, |id| table.frames(id).count() as u64);
        }
    }
    assert_eq!(requests() - before, 0);
    assert!(sum > 0);
}

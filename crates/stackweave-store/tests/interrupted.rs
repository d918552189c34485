//! A thread stopped anywhere in the middle of interning hinders nobody, least of all itself.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::thread;

use stackweave_core::{CodeAddress, RawFrame, StackId};
use stackweave_store::StackTable;
use stackweave_testkit::counting_allocator::{CountingAllocator, requests};
use stackweave_testkit::fixtures::{sw_trap_off, sw_trap_on};
use stackweave_testkit::signals::{SignalStack, Ticker, with_handlers};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Five frames of which two are this stack's own.
fn stack(number: u64) -> [RawFrame; 5] {
    [number * 2 + 0x10_0000, number + 0x7f00_0000_0000, 0x300, 0x200, 0x100]
        .map(|address| RawFrame::native(CodeAddress::return_address(address)))
}

/// At how many instructions, evenly spread, interning is interrupted.
const PLACES: usize = 64;

const TRAP_FLAG: i64 = 1 << 8;

/// Interns `stack` one instruction at a time; before the instruction number `at`, a handler interns it too, and
/// the rest runs freely. Returns both ids, and how many steps there were.
fn interrupt_at(table: &StackTable, stack: &[RawFrame], at: usize) -> (Option<StackId>, Option<StackId>, usize) {
    let (mut step, mut inner, mut outer) = (0, None, None);
    let mut on_step = |context: *mut c_void| {
        if step == at {
            inner = table.intern(stack);
            // SAFETY: the context is that of the handler that runs. Without the flag no step follows.
            unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_EFL as usize] &= !TRAP_FLAG };
        }
        step += 1;
    };
    with_handlers(&[libc::SIGTRAP], SignalStack::Normal, &mut on_step, || {
        // SAFETY: SIGTRAP has a handler now.
        unsafe { sw_trap_on() };
        outer = table.intern(stack);
        // SAFETY: sets a flag of the processor.
        unsafe { sw_trap_off() };
    });
    (outer, inner, step)
}

#[test]
fn a_handler_that_interns_the_same_new_stack_gets_the_same_id() {
    let table = StackTable::new();
    table.intern(&stack(0));
    let (_, _, instructions) = interrupt_at(&table, &stack(1), usize::MAX);
    let mut interrupted = 0;
    for (number, at) in (2..).zip((0..instructions).step_by(1 + instructions / PLACES)) {
        let (outer, inner, _) = interrupt_at(&table, &stack(number), at);
        assert!(table.frames(outer.unwrap()).eq(stack(number)));
        // Not every stack takes as many instructions, so that the last places may not be reached.
        if inner.is_some() {
            assert_eq!(outer, inner, "interrupted before instruction {at}");
            interrupted += 1;
        }
    }
    assert!(interrupted + 5 > PLACES, "{interrupted} of {PLACES}");
    let stats = table.stats();
    assert_eq!(stats.refused, 0);
    // Two nodes for each stack: those that lost a race were used again.
    assert!(stats.stacks as usize <= 3 + 2 * (2 + PLACES) + 2, "{stats:?}");
}

#[test]
fn the_first_stack_of_all_may_be_interrupted_too() {
    let (_, _, instructions) = interrupt_at(&StackTable::new(), &stack(1), usize::MAX);
    for at in (0..instructions).step_by(1 + instructions / (PLACES / 4)) {
        let table = StackTable::new();
        let (outer, inner, _) = interrupt_at(&table, &stack(1), at);
        assert_eq!(outer, inner.or(outer), "interrupted before instruction {at}");
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

/// What a forked child does: what was known is known, what is new gets an id.
fn child_goes_on(table: &StackTable, known: StackId, round: u64) -> bool {
    (0..3000)
        .all(|number| table.intern(&stack(number + round)).is_some_and(|id| table.frames(id).eq(stack(number + round))))
        && table.intern(&stack(0)) == Some(known)
}

#[test]
fn a_forked_child_goes_on_wherever_the_parents_threads_were() {
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
            // SAFETY: the child only interns, and ends; the parent waits for it.
            let status = unsafe {
                let child = libc::fork();
                if child == 0 {
                    libc::alarm(60);
                    libc::_exit(i32::from(!child_goes_on(&table, known, round * 5000)));
                }
                let mut status = -1;
                assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
                status
            };
            assert_eq!(status, 0, "round {round}");
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn no_stack_known_or_new_asks_the_allocator() {
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

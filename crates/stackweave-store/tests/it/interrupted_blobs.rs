//! A thread that is stopped anywhere while it adds an object, its bytes or its address, blocks no thread, not even
//! itself.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::thread;

use stackweave_core::BlobId;
use stackweave_store::{AddressMap, BlobTable};
use stackweave_testkit::counting_allocator::requests;
use stackweave_testkit::signals::{SignalStack, Ticker, with_handlers};

use crate::interruption::{INTERRUPTIONS, Interrupted, in_forked_child, interrupt_at};

/// A model of code objects: bytes with an address.
struct Objects {
    blobs: BlobTable,
    addresses: AddressMap,
}

impl Objects {
    const fn new() -> Self {
        Self { blobs: BlobTable::new(), addresses: AddressMap::new() }
    }

    fn enter(&self, number: u64) -> Option<u32> {
        let known = self.addresses.get(address(number));
        known.or_else(|| self.addresses.insert(address(number), self.intern(number)?.get()))
    }

    fn intern(&self, number: u64) -> Option<BlobId> {
        self.blobs.intern(&[b"name", &number.to_le_bytes(), b"a file", &[7; 30]])
    }

    /// Returns whether `value` belongs to object `number`, and its bytes are right.
    fn is_right(&self, number: u64, value: Option<u32>) -> bool {
        let bytes = value.and_then(BlobId::new).and_then(|id| self.blobs.get(id));
        bytes.is_some_and(|bytes| bytes[4..12] == number.to_le_bytes() && bytes.len() == 48)
            && self.addresses.get(address(number)) == value
    }
}

fn address(number: u64) -> u64 {
    0x7f00_0000_0000 + number * 176
}

#[test]
fn a_handler_that_adds_the_same_new_object_gets_the_same_id() {
    let objects = Objects::new();
    objects.enter(0);
    let instructions = interrupt_at(usize::MAX, || objects.enter(1)).steps;
    let mut interrupted = 0;
    for (number, at) in (2..).zip((0..instructions).step_by(1 + instructions / INTERRUPTIONS)) {
        let Interrupted { outer, inner, was_reached, .. } = interrupt_at(at, || objects.enter(number));
        assert!(objects.is_right(number, outer));
        // Some objects need fewer instructions, so that the last interruptions may not be reached.
        if was_reached {
            assert_eq!(outer, inner, "interrupted before instruction {at}");
            interrupted += 1;
        }
    }
    assert!(interrupted + 5 > INTERRUPTIONS, "{interrupted} of {INTERRUPTIONS}");
    let (blobs, addresses) = (objects.blobs.stats(), objects.addresses.stats());
    assert_eq!((blobs.refused, addresses.refused), (0, 0));
    // One id for each: those of threads that lost a race were reused.
    assert!(blobs.blobs as usize <= 3 + INTERRUPTIONS, "{blobs:?}");
    assert!(
        addresses.live <= 2 + INTERRUPTIONS as u64 && u64::from(addresses.addresses) == addresses.live,
        "{addresses:?}"
    );
}

#[test]
fn adding_the_very_first_object_may_be_interrupted() {
    let objects = Objects::new();
    let instructions = interrupt_at(usize::MAX, || objects.enter(1)).steps;
    for at in (0..instructions).step_by(1 + instructions / (INTERRUPTIONS / 2)) {
        let objects = Objects::new();
        let Interrupted { outer, inner, was_reached, .. } = interrupt_at(at, || objects.enter(1));
        assert!(outer == inner || !was_reached, "interrupted before instruction {at}");
        assert!(objects.is_right(1, outer));
    }
}

#[test]
fn a_value_is_removed_once_even_if_a_handler_removes_it_at_the_same_time() {
    let objects = Objects::new();
    objects.enter(1);
    let instructions = interrupt_at(usize::MAX, || objects.addresses.remove(address(1))).steps;
    for at in (0..instructions).step_by(1 + instructions / INTERRUPTIONS) {
        objects.enter(1);
        let Interrupted { outer, inner, was_reached, .. } = interrupt_at(at, || objects.addresses.remove(address(1)));
        assert_eq!(outer.xor(inner), Some(1), "interrupted before instruction {at}");
        assert!(was_reached || inner.is_none());
        assert_eq!(objects.addresses.get(address(1)), None);
    }
}

#[test]
fn threads_and_their_handlers_agree_while_a_timer_ticks() {
    const OBJECTS: usize = 60_000;
    let objects = Objects::new();
    let given: Vec<AtomicU32> = (0..OBJECTS).map(|_| AtomicU32::new(0)).collect();
    let now = AtomicUsize::new(0);
    let wrong = AtomicUsize::new(0);
    let enter = |number: usize| {
        let id = objects.enter(number as u64).unwrap_or(0);
        let before = given[number].swap(id, Ordering::Relaxed);
        if id == 0 || (before != 0 && before != id) {
            wrong.fetch_add(1, Ordering::Relaxed);
        }
    };
    let mut on_tick = |_: *mut c_void| {
        let number = now.load(Ordering::Relaxed);
        (number..(number + 3).min(OBJECTS)).for_each(enter);
    };
    thread::scope(|scope| {
        scope.spawn(|| (0..OBJECTS).rev().for_each(enter));
        with_handlers(&[libc::SIGUSR2], SignalStack::Alternate, &mut on_tick, || {
            let _ticker = Ticker::start(libc::SIGUSR2, 50);
            for number in 0..OBJECTS {
                now.store(number, Ordering::Relaxed);
                enter(number);
            }
        });
    });
    assert_eq!(wrong.load(Ordering::Relaxed), 0);
    assert!((0..OBJECTS).all(|number| objects.is_right(number as u64, Some(given[number].load(Ordering::Relaxed)))));
}

/// Checks in a forked child that known objects are known, a new one gets an id, and a removed one is gone.
fn child_goes_on(objects: &Objects, known: u32, round: u64) -> bool {
    (round..round + 3000).all(|number| objects.is_right(number, objects.enter(number)))
        && objects.is_right(0, Some(known))
        && objects.addresses.remove(address(0)) == Some(known)
        && objects.addresses.get(address(0)).is_none()
}

#[test]
fn a_forked_child_continues_wherever_the_parents_threads_were() {
    let objects = Objects::new();
    let known = objects.enter(0).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0;
            while !done.load(Ordering::Relaxed) {
                number = number % 300_000 + 1;
                assert!(objects.enter(number).is_some());
                if number % 3 == 0 {
                    assert!(objects.addresses.remove(address(number)).is_some());
                }
            }
        });
        for round in 0..40 {
            let status = in_forked_child(|| child_goes_on(&objects, known, round * 5000 + 1));
            assert_eq!(status, 0, "round {round}");
        }
        done.store(true, Ordering::Relaxed);
    });
}

/// Makes the kernel refuse all further memory to this process.
fn refuse_all_memory() {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: reads the limit, and changes nothing else.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const none) }, 0);
}

fn new_ones_are_refused(fresh: &Objects, objects: &Objects, known: u32) -> bool {
    refuse_all_memory();
    (0..3).all(|number| fresh.intern(number).is_none() && fresh.addresses.insert(address(number), 1).is_none())
        && (fresh.blobs.stats().refused, fresh.addresses.stats().refused, fresh.blobs.len()) == (3, 3, 0)
        // Longer than the mapped part, which remains usable.
        && objects.blobs.intern(&[&[1; 10_000][..]; 10]).is_none()
        && objects.blobs.stats().refused == 1
        && objects.is_right(0, Some(known))
        && (1..200).all(|number| objects.is_right(number, objects.enter(number)))
        && objects.blobs.stats().refused == 1
}

#[test]
fn without_memory_new_objects_are_refused_and_counted_and_known_ones_remain() {
    let (fresh, objects) = (Objects::new(), Objects::new());
    let known = objects.enter(0).unwrap();
    assert_eq!(in_forked_child(|| new_ones_are_refused(&fresh, &objects, known)), 0);
}

#[test]
fn adding_objects_never_calls_the_allocator() {
    let objects = Objects::new();
    let before = requests();
    let mut wrong = 0;
    for round in 0..3 {
        for number in 0..50_000 {
            wrong += u32::from(!objects.is_right(number + round, objects.enter(number + round)));
            wrong += u32::from(objects.intern(number).map(BlobId::get) != objects.addresses.get(address(number)));
            if number % 5 == 0 {
                wrong += u32::from(objects.addresses.remove(address(number)).is_none());
                wrong += u32::from(!objects.is_right(number, objects.enter(number)));
            }
        }
    }
    assert_eq!((requests() - before, wrong), (0, 0));
}

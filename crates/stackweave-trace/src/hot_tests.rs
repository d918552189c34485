//! What hot files claim: nothing is allocated on the way of an event.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use crate::codes::{Codes, State};
use crate::entry::{Entry, Status};
use crate::shadow::Shadow;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

/// Counts what the calling thread allocates.
struct Counting;

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: passed on to the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: passed on to the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn a_known_function_is_entered_and_left_without_memory() {
    let (shadow, codes) = (Shadow::new(), Codes::new());
    shadow.follow();
    codes.set_state(7, State::Plain);
    codes.time(7, 1, u32::MAX);
    let entry = Entry { key: 64, call: 7 << 40, code: 7, status: Status::Written, ..Entry::OUTERMOST };
    let before = ALLOCATIONS.get();
    for _ in 0..1000 {
        while shadow.has_room() {
            assert_eq!(codes.state(7), State::Plain);
            shadow.push_written::<true>(entry);
        }
        while shadow.len() > 0 {
            shadow.pop_written();
            shadow.add_inside(1);
            assert!(codes.time(7, 1, u32::MAX).is_none() && !codes.is_over(7));
        }
    }
    assert_eq!(ALLOCATIONS.get(), before);
    shadow.set_limit(0);
    shadow.lift_limit();
    for _ in 0..100 {
        shadow.push(entry);
    }
    assert!(ALLOCATIONS.get() > before, "what is counted is counted");
}

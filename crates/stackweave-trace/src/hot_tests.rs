//! The claims of hot files: an event allocates nothing.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use crate::code_states::{CodeState, CodeStates};
use crate::shadow::Shadow;
use crate::shadow_entry::{EntryStatus, ShadowEntry};

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

/// Counts the allocations of the calling thread.
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
fn calls_of_a_known_function_allocate_nothing() {
    let (shadow, codes) = (Shadow::new(), CodeStates::new());
    shadow.follow();
    codes.set_state(7, CodeState::Plain);
    codes.time(7, 1, u32::MAX);
    let entry = ShadowEntry { key: 64, call: 7 << 40, code: 7, status: EntryStatus::Written, ..ShadowEntry::OUTERMOST };
    let before = ALLOCATIONS.get();
    for _ in 0..1000 {
        while shadow.has_room() {
            assert_eq!(codes.state(7), CodeState::Plain);
            shadow.push_written::<true>(entry);
        }
        while shadow.len() > 0 {
            shadow.pop_written();
            shadow.add_callee_ticks(1);
            assert!(codes.time(7, 1, u32::MAX).is_none() && !codes.is_finished(7));
        }
    }
    assert_eq!(ALLOCATIONS.get(), before);
    shadow.set_limit(0);
    shadow.lift_limit();
    for _ in 0..100 {
        shadow.push(entry);
    }
    assert!(ALLOCATIONS.get() > before, "the counter works");
}

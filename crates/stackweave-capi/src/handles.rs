//! What hosts have registered, by handles that are given once and taken back once. No lock, so that a forked child finds
//! none held.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::process;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::gate::Gate;
use crate::tag;

/// As many values as there are slots. Made to be a `static`.
pub(crate) struct Handles<T, const N: usize> {
    slots: [Slot<T>; N],
    given: AtomicU32,
}

struct Slot<T> {
    state: AtomicU64,
    /// Open while there is a value.
    gate: Gate,
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: a value is written and taken by the one thread that has claimed its slot, and shared with those inside the gate.
unsafe impl<T: Send + Sync> Sync for Slot<T> {}

const FREE: u64 = 0;
/// With the number of the process: somebody is writing or reading the value. No handle has this bit.
const CLAIMED: u64 = 1 << 63;

impl<T> Slot<T> {
    const fn free() -> Self {
        Self { state: AtomicU64::new(FREE), gate: Gate::closed(), value: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    fn handle(&self) -> Option<u64> {
        let state = self.state.load(Ordering::Acquire);
        (state != FREE && state & CLAIMED == 0).then_some(state)
    }
}

impl<T, const N: usize> Handles<T, N> {
    pub(crate) const fn new() -> Self {
        Self { slots: [const { Slot::free() }; N], given: AtomicU32::new(0) }
    }

    /// Keeps the value; it comes back if there is no slot, or no handle, left.
    pub(crate) fn insert(&self, value: T) -> Result<u64, T> {
        let claim = CLAIMED | u64::from(process::id());
        // What another process has claimed, a parent of this one, nobody here will finish.
        let is_free = |state: u64| state == FREE || (state & CLAIMED != 0 && state != claim);
        let take = |slot: &&Slot<T>| {
            let claimed = |state: u64| is_free(state).then_some(claim);
            slot.state.fetch_update(Ordering::Acquire, Ordering::Relaxed, claimed).is_ok()
        };
        let Some(slot) = self.slots.iter().find(take) else { return Err(value) };
        let next = |given: u32| given.checked_add(1);
        let Ok(before) = self.given.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next) else {
            slot.state.store(FREE, Ordering::Release);
            return Err(value);
        };
        // SAFETY: claimed above.
        unsafe { (*slot.value.get()).write(value) };
        slot.gate.open();
        let handle = tag::put(before + 1);
        slot.state.store(handle, Ordering::Release);
        Ok(handle)
    }

    /// Whether there is any value.
    pub(crate) fn any(&self) -> bool {
        self.slots.iter().any(|slot| slot.handle().is_some())
    }

    /// What `look` finds in the first value, in the order of their handles, in which it finds something.
    pub(crate) fn find<R>(&self, mut look: impl FnMut(&T) -> Option<R>) -> Option<R> {
        let mut slots: Vec<_> = self.slots.iter().filter_map(|slot| Some((slot.handle()?, slot))).collect();
        slots.sort_unstable_by_key(|(handle, _)| *handle);
        slots.into_iter().find_map(|(_, slot)| {
            let _pass = slot.gate.enter()?;
            // SAFETY: the gate is open while there is a value, and whoever takes it waits for those inside.
            look(unsafe { (*slot.value.get()).assume_init_ref() })
        })
    }

    /// Takes the value with this handle, which then is nobody's for ever, when no other thread looks at it any more.
    /// Must not be called inside a [`Gate`].
    pub(crate) fn take(&self, handle: u64) -> Option<T> {
        tag::take(handle)?;
        let claim = CLAIMED | u64::from(process::id());
        let take =
            |slot: &&Slot<T>| slot.state.compare_exchange(handle, claim, Ordering::Acquire, Ordering::Relaxed).is_ok();
        let slot = self.slots.iter().find(take)?;
        slot.gate.close();
        // SAFETY: claimed above; a slot with a handle has a value, and nobody is inside the gate.
        let value = unsafe { (*slot.value.get()).assume_init_read() };
        slot.state.store(FREE, Ordering::Release);
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_works_once() {
        let handles: Handles<String, 2> = Handles::new();
        let (one, two) = (handles.insert("one".into()).unwrap(), handles.insert("two".into()).unwrap());
        assert_eq!(handles.insert("three".into()), Err("three".into()));
        assert_eq!(handles.take(one).as_deref(), Some("one"));
        assert_eq!(handles.take(one), None);
        let three = handles.insert("three".into()).unwrap();
        assert_ne!(three, one);
        for foreign in [0, 1, u64::MAX, CLAIMED, one, two ^ 1 << 33] {
            assert_eq!(handles.take(foreign), None, "{foreign:#x}");
        }
        assert_eq!(handles.take(three).as_deref(), Some("three"));
        assert_eq!(handles.take(two).as_deref(), Some("two"));
    }

    #[test]
    fn values_are_looked_at_in_order() {
        let handles: Handles<u32, 3> = Handles::new();
        assert!(!handles.any());
        let [one, _, _] = [10, 20, 30].map(|value| handles.insert(value).unwrap());
        handles.take(one);
        handles.insert(40).unwrap();
        let mut seen = Vec::new();
        assert_eq!(handles.find(|value| (seen.push(*value), None::<u32>).1), None);
        assert_eq!(seen, [20, 30, 40]);
        assert_eq!(handles.find(|value| (*value > 20).then_some(*value)), Some(30));
        assert!(handles.any());
    }

    #[test]
    fn what_a_parent_left_half_done_is_taken_over() {
        let handles: Handles<u32, 1> = Handles::new();
        handles.slots[0].state.store(CLAIMED | u64::from(process::id() + 1), Ordering::Relaxed);
        let handle = handles.insert(5).unwrap();
        assert_eq!(handles.take(handle), Some(5));
        handles.slots[0].state.store(CLAIMED | u64::from(process::id()), Ordering::Relaxed);
        assert_eq!(handles.insert(6), Err(6));
    }
}

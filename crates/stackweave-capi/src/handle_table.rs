//! Values that hosts have registered, by handle. A handle is never reused. The table has no lock, so a forked child can't
//! inherit a held one.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::process;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::callback_gate::CallbackGate;
use crate::library_tag;

/// Holds up to `N` values. Intended for a `static`.
pub(crate) struct HandleTable<T, const N: usize> {
    slots: [HandleSlot<T>; N],
    last_number: AtomicU32,
}

struct HandleSlot<T> {
    state: AtomicU64,
    /// Open while the slot has a value.
    gate: CallbackGate,
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: a value is written and moved out by the one thread that has claimed its slot, and shared with threads in the gate.
unsafe impl<T: Send + Sync> Sync for HandleSlot<T> {}

const FREE: u64 = 0;
/// Combined with a process id: a thread of that process is writing the value or moving it out. No handle has this bit.
const CLAIMED: u64 = 1 << 63;

impl<T> HandleSlot<T> {
    const fn free() -> Self {
        Self {
            state: AtomicU64::new(FREE),
            gate: CallbackGate::closed(),
            value: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    fn handle(&self) -> Option<u64> {
        let state = self.state.load(Ordering::Acquire);
        (state != FREE && state & CLAIMED == 0).then_some(state)
    }
}

impl<T, const N: usize> HandleTable<T, N> {
    pub(crate) const fn new() -> Self {
        Self { slots: [const { HandleSlot::free() }; N], last_number: AtomicU32::new(0) }
    }

    /// Adds a value and returns its handle. Returns the value if no slot or no handle is left.
    pub(crate) fn insert(&self, value: T) -> Result<u64, T> {
        let claim = CLAIMED | u64::from(process::id());
        // A slot that a parent process had claimed at the fork is free: the thread that claimed it is not in this process.
        let is_free = |state: u64| state == FREE || (state & CLAIMED != 0 && state != claim);
        let take = |slot: &&HandleSlot<T>| {
            let claimed = |state: u64| is_free(state).then_some(claim);
            slot.state.fetch_update(Ordering::Acquire, Ordering::Relaxed, claimed).is_ok()
        };
        let Some(slot) = self.slots.iter().find(take) else { return Err(value) };
        let next = |last: u32| last.checked_add(1);
        let Ok(before) = self.last_number.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next) else {
            slot.state.store(FREE, Ordering::Release);
            return Err(value);
        };
        // SAFETY: claimed above.
        unsafe { (*slot.value.get()).write(value) };
        slot.gate.open();
        let handle = library_tag::add(before + 1);
        slot.state.store(handle, Ordering::Release);
        Ok(handle)
    }

    /// Returns whether the table has a value.
    pub(crate) fn any(&self) -> bool {
        self.slots.iter().any(|slot| slot.handle().is_some())
    }

    /// Calls `query` with each value, in the order of the handles, until it returns a result. Returns that result.
    pub(crate) fn find<R>(&self, mut query: impl FnMut(&T) -> Option<R>) -> Option<R> {
        let mut slots: Vec<_> = self.slots.iter().filter_map(|slot| Some((slot.handle()?, slot))).collect();
        slots.sort_unstable_by_key(|(handle, _)| *handle);
        slots.into_iter().find_map(|(_, slot)| {
            let _permit = slot.gate.enter()?;
            // SAFETY: the gate is open while the slot has a value, and `remove` waits for the threads inside.
            query(unsafe { (*slot.value.get()).assume_init_ref() })
        })
    }

    /// Removes the value with this handle, once no other thread uses it. Must not be called inside a [`CallbackGate`].
    pub(crate) fn remove(&self, handle: u64) -> Option<T> {
        library_tag::strip(handle)?;
        let claim = CLAIMED | u64::from(process::id());
        let take = |slot: &&HandleSlot<T>| {
            slot.state.compare_exchange(handle, claim, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        let slot = self.slots.iter().find(take)?;
        slot.gate.close();
        // SAFETY: claimed above; a slot with a handle has a value, and no thread is inside the gate.
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
        let handles: HandleTable<String, 2> = HandleTable::new();
        let (one, two) = (handles.insert("one".into()).unwrap(), handles.insert("two".into()).unwrap());
        assert_eq!(handles.insert("three".into()), Err("three".into()));
        assert_eq!(handles.remove(one).as_deref(), Some("one"));
        assert_eq!(handles.remove(one), None);
        let three = handles.insert("three".into()).unwrap();
        assert_ne!(three, one);
        for foreign in [0, 1, u64::MAX, CLAIMED, one, two ^ 1 << 33] {
            assert_eq!(handles.remove(foreign), None, "{foreign:#x}");
        }
        assert_eq!(handles.remove(three).as_deref(), Some("three"));
        assert_eq!(handles.remove(two).as_deref(), Some("two"));
    }

    #[test]
    fn values_are_visited_in_the_order_of_their_handles() {
        let handles: HandleTable<u32, 3> = HandleTable::new();
        assert!(!handles.any());
        let [one, _, _] = [10, 20, 30].map(|value| handles.insert(value).unwrap());
        handles.remove(one);
        handles.insert(40).unwrap();
        let mut visited = Vec::new();
        assert_eq!(handles.find(|value| (visited.push(*value), None::<u32>).1), None);
        assert_eq!(visited, [20, 30, 40]);
        assert_eq!(handles.find(|value| (*value > 20).then_some(*value)), Some(30));
        assert!(handles.any());
    }

    #[test]
    fn a_slot_that_a_parent_process_had_claimed_is_reused() {
        let handles: HandleTable<u32, 1> = HandleTable::new();
        handles.slots[0].state.store(CLAIMED | u64::from(process::id() + 1), Ordering::Relaxed);
        let handle = handles.insert(5).unwrap();
        assert_eq!(handles.remove(handle), Some(5));
        handles.slots[0].state.store(CLAIMED | u64::from(process::id()), Ordering::Relaxed);
        assert_eq!(handles.insert(6), Err(6));
    }
}

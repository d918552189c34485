//! The shadow stack of a thread: its open calls, outermost first.
//!
//! Hot file: inlined functions neither allocate nor lock. Only its own thread changes it, or another that holds the GIL
//! while its thread does not.

use std::cell::{Cell, UnsafeCell};
use std::ptr;

use crate::shadow_entry::{EntryStatus, NOWHERE, ShadowEntry};

const FIRST_CAPACITY: usize = 64;

/// Replaces the innermost entry while the stack is suspended.
static SUSPENDED: ShadowEntry = ShadowEntry::UNKNOWN;

/// A stack of entries; the outermost is outside all frames.
///
/// Its innermost entry may be read while an event is being recorded, because a recorder then records what is open. So
/// an entry is added or removed once the event for that is recorded.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Shadow {
    /// The innermost entry.
    top: Cell<*mut ShadowEntry>,
    /// The last entry that fits. May be set lower, so that [`Shadow::has_room`] is false at that depth.
    limit: Cell<*mut ShadowEntry>,
    /// The innermost entry of a suspended stack, else null.
    suspended_top: Cell<*mut ShadowEntry>,
    /// The number of entries that are not written, without the outermost.
    unwritten: Cell<usize>,
    /// The number of these that may still be written.
    pending: Cell<usize>,
    entries: UnsafeCell<Vec<ShadowEntry>>,
}

impl Shadow {
    /// Creates the stack of a thread that is not followed yet.
    pub(crate) fn new() -> Self {
        let shadow = Self {
            top: Cell::new(ptr::null_mut()),
            limit: Cell::new(ptr::null_mut()),
            suspended_top: Cell::new(ptr::null_mut()),
            unwritten: Cell::new(0),
            pending: Cell::new(0),
            entries: UnsafeCell::new(vec![ShadowEntry::UNKNOWN; FIRST_CAPACITY]),
        };
        shadow.top.set(shadow.base());
        shadow.lift_limit();
        shadow
    }

    fn base(&self) -> *mut ShadowEntry {
        // SAFETY: there are no other references to the vector itself: entries are reached by pointers.
        unsafe { (*self.entries.get()).as_mut_ptr() }
    }

    fn capacity(&self) -> usize {
        // SAFETY: as above.
        unsafe { (*self.entries.get()).len() }
    }

    /// Removes all entries. The thread is no longer followed.
    pub(crate) fn clear(&self) {
        let base = self.base();
        // SAFETY: the outermost entry always exists.
        unsafe { *base = ShadowEntry::UNKNOWN };
        self.top.set(base);
        self.unwritten.set(0);
        self.pending.set(0);
    }

    /// Follows the thread from now on: it has no entries yet.
    pub(crate) fn follow(&self) {
        self.clear();
        // SAFETY: as above.
        unsafe { *self.base() = ShadowEntry::OUTERMOST };
    }

    /// Returns whether the thread is followed.
    pub(crate) fn is_followed(&self) -> bool {
        // SAFETY: as above.
        unsafe { (*self.base()).key != NOWHERE }
    }

    /// Returns the innermost entry.
    #[inline(always)]
    pub(crate) fn top(&self) -> &ShadowEntry {
        // SAFETY: it points to an entry of the vector, or to a static one. Code that changes an entry has no such
        // reference.
        unsafe { &*self.top.get() }
    }

    /// Returns the number of entries, without the outermost.
    pub(crate) fn len(&self) -> usize {
        let innermost = if self.is_suspended() { self.suspended_top.get() } else { self.top.get() };
        (innermost as usize - self.base() as usize) / size_of::<ShadowEntry>()
    }

    /// Returns how many of them are written.
    pub(crate) fn written(&self) -> u64 {
        (self.len() - self.unwritten.get()) as u64
    }

    /// Returns whether some may still be written.
    pub(crate) fn has_pending(&self) -> bool {
        self.pending.get() != 0
    }

    /// Returns the entry at this index; 0 is the outermost.
    pub(crate) fn at(&self, index: usize) -> ShadowEntry {
        debug_assert!(index <= self.len(), "entry {index} of {}", self.len());
        // SAFETY: within the vector.
        unsafe { *self.base().add(index) }
    }

    /// Returns the index of the innermost entry that `wanted` accepts, if there is one.
    pub(crate) fn find_last(&self, wanted: impl Fn(&ShadowEntry) -> bool) -> Option<usize> {
        (1..=self.len()).rev().find(|index| wanted(&self.at(*index)))
    }

    /// Marks a pending entry as written.
    pub(crate) fn set_written(&self, index: usize) {
        if self.at(index).status == EntryStatus::Pending {
            // SAFETY: within the vector.
            unsafe { (*self.base().add(index)).status = EntryStatus::Written };
            self.unwritten.set(self.unwritten.get() - 1);
            self.pending.set(self.pending.get() - 1);
        }
    }

    /// Adds a written entry for which there is room. Its times are only set if they are `TIMED`.
    #[inline(always)]
    pub(crate) fn push_written<const TIMED: bool>(&self, entry: ShadowEntry) {
        debug_assert!(self.has_room(), "no room");
        // SAFETY: there is room for one more, and the whole capacity is initialised.
        unsafe {
            let next = self.top.get().add(1);
            (*next).key = entry.key;
            (*next).call = entry.call;
            (*next).code = entry.code;
            (*next).kind = entry.kind;
            (*next).status = EntryStatus::Written;
            if TIMED {
                (*next).began = entry.began;
                (*next).callee_ticks = 0;
            }
            self.top.set(next);
        }
    }

    /// Adds the time of a callee to the innermost entry.
    #[inline(always)]
    pub(crate) fn add_callee_ticks(&self, ticks: u64) {
        // SAFETY: an entry of the vector: nothing ends while the stack is suspended.
        unsafe { (*self.top.get()).callee_ticks += ticks };
    }

    /// Returns whether an entry can be added without growing.
    #[inline(always)]
    pub(crate) fn has_room(&self) -> bool {
        self.top.get() != self.limit.get()
    }

    /// Adds an entry.
    pub(crate) fn push(&self, entry: ShadowEntry) {
        self.grow_if_full();
        self.unwritten.set(self.unwritten.get() + usize::from(entry.status != EntryStatus::Written));
        self.pending.set(self.pending.get() + usize::from(entry.status == EntryStatus::Pending));
        // SAFETY: there is room for one more.
        unsafe {
            let next = self.top.get().add(1);
            next.write(entry);
            self.top.set(next);
        }
    }

    /// Removes the innermost entry, which is written.
    #[inline(always)]
    pub(crate) fn pop_written(&self) {
        // SAFETY: the caller knows that there is one besides the outermost.
        self.top.set(unsafe { self.top.get().sub(1) });
    }

    /// Removes the innermost entry.
    pub(crate) fn pop(&self) {
        let status = self.top().status;
        debug_assert!(self.len() > 0, "nothing is open");
        self.unwritten.set(self.unwritten.get() - usize::from(status != EntryStatus::Written));
        self.pending.set(self.pending.get() - usize::from(status == EntryStatus::Pending));
        self.pop_written();
    }

    #[cold]
    fn grow_if_full(&self) {
        let len = self.len();
        if len + 1 < self.capacity() {
            return;
        }
        // SAFETY: there are no references to the vector or its entries.
        unsafe { (*self.entries.get()).resize(2 * self.capacity(), ShadowEntry::OUTERMOST) };
        // SAFETY: the entries keep their indexes.
        self.top.set(unsafe { self.base().add(len) });
        self.lift_limit();
    }

    /// Sets the limit to the capacity.
    pub(crate) fn lift_limit(&self) {
        self.set_limit(self.capacity() - 1);
    }

    /// Makes [`Shadow::has_room`] return false when that many entries are open.
    pub(crate) fn set_limit(&self, entries: usize) {
        // SAFETY: within the vector.
        self.limit.set(unsafe { self.base().add(entries.min(self.capacity() - 1)) });
    }

    /// Suspends the stack until [`Shadow::resume`]: meanwhile no frame matches the innermost entry, or is called from
    /// it.
    pub(crate) fn suspend(&self) {
        if !self.is_suspended() {
            self.suspended_top.set(self.top.replace((&raw const SUSPENDED).cast_mut()));
        }
    }

    /// Ends the suspension.
    pub(crate) fn resume(&self) {
        if self.is_suspended() {
            self.top.set(self.suspended_top.replace(ptr::null_mut()));
        }
    }

    /// Returns whether the stack is suspended.
    pub(crate) fn is_suspended(&self) -> bool {
        !self.suspended_top.get().is_null()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: u64, status: EntryStatus) -> ShadowEntry {
        ShadowEntry { key, call: key << 40, code: 7, status, ..ShadowEntry::OUTERMOST }
    }

    #[test]
    fn a_new_stack_matches_no_frame_until_it_is_followed() {
        let shadow = Shadow::new();
        assert!(!shadow.is_followed() && shadow.top().frame() == NOWHERE);
        shadow.follow();
        assert!(shadow.is_followed() && shadow.top().frame() == 0 && shadow.len() == 0);
    }

    #[test]
    fn a_stack_grows_and_keeps_its_entries() {
        let shadow = Shadow::new();
        shadow.follow();
        for key in 1..=1000 {
            let entry = entry(2 * key, EntryStatus::Written);
            if shadow.has_room() {
                shadow.push_written::<false>(entry);
            } else {
                shadow.push(entry);
            }
        }
        assert_eq!((shadow.len(), shadow.written()), (1000, 1000));
        assert!((1..=1000).all(|index| shadow.at(index).key == 2 * index as u64));
        assert_eq!(shadow.find_last(|entry| entry.key < 100), Some(49));
    }

    #[test]
    fn only_written_entries_are_counted() {
        let shadow = Shadow::new();
        shadow.follow();
        for (key, status) in [(2, EntryStatus::Written), (4, EntryStatus::Pending), (6, EntryStatus::Hidden)] {
            shadow.push(entry(key, status));
        }
        assert_eq!((shadow.written(), shadow.has_pending()), (1, true));
        shadow.set_written(2);
        assert_eq!((shadow.written(), shadow.has_pending()), (2, false));
        shadow.pop();
        shadow.pop();
        assert_eq!((shadow.written(), shadow.len()), (1, 1));
    }

    #[test]
    fn a_suspended_stack_matches_no_frame_and_keeps_its_entries() {
        let shadow = Shadow::new();
        shadow.follow();
        shadow.push(entry(2, EntryStatus::Written));
        shadow.suspend();
        assert!(shadow.is_suspended() && shadow.top().key == NOWHERE && shadow.len() == 1);
        shadow.resume();
        assert_eq!((shadow.top().key, shadow.len()), (2, 1));
    }

    #[test]
    fn a_lower_limit_is_detected() {
        let shadow = Shadow::new();
        shadow.follow();
        shadow.set_limit(1);
        assert!(shadow.has_room());
        shadow.push(entry(2, EntryStatus::Written));
        assert!(!shadow.has_room());
        shadow.lift_limit();
        assert!(shadow.has_room());
    }
}

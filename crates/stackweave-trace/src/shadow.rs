//! The shadow stack of a thread: what is open on it, outermost first.
//!
//! Hot file: what is inlined neither allocates nor locks. Only its own thread changes it, or another that holds the GIL
//! while its thread does not.

use std::cell::{Cell, UnsafeCell};
use std::ptr;

use crate::entry::{Entry, NOWHERE, Status};

const FIRST_CAPACITY: usize = 64;

/// In place of the innermost entry while nothing of the thread is told.
static ASLEEP: Entry = Entry::UNKNOWN;

/// Entries in a row, the outermost of which stands around all frames.
///
/// Its innermost entry can be looked at while another is recorded: a recorder asks then what is open. So an entry is added,
/// and taken away, once the event that says so is recorded.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Shadow {
    /// The innermost entry.
    top: Cell<*mut Entry>,
    /// The last entry that there is room for. May be set lower, to be told when the stack comes there.
    limit: Cell<*mut Entry>,
    /// The innermost entry of a stack that is asleep, else null.
    resting: Cell<*mut Entry>,
    /// How many entries are not written, without the outermost.
    unwritten: Cell<usize>,
    /// How many of those may be written yet.
    pending: Cell<usize>,
    entries: UnsafeCell<Vec<Entry>>,
}

impl Shadow {
    /// Of a thread of which nothing is known.
    pub(crate) fn new() -> Self {
        let shadow = Self {
            top: Cell::new(ptr::null_mut()),
            limit: Cell::new(ptr::null_mut()),
            resting: Cell::new(ptr::null_mut()),
            unwritten: Cell::new(0),
            pending: Cell::new(0),
            entries: UnsafeCell::new(vec![Entry::UNKNOWN; FIRST_CAPACITY]),
        };
        shadow.top.set(shadow.base());
        shadow.lift_limit();
        shadow
    }

    fn base(&self) -> *mut Entry {
        // SAFETY: nobody else has a reference to the vector itself: entries are reached by pointers.
        unsafe { (*self.entries.get()).as_mut_ptr() }
    }

    fn capacity(&self) -> usize {
        // SAFETY: as above.
        unsafe { (*self.entries.get()).len() }
    }

    /// Forgets all entries, and what is known of the thread.
    pub(crate) fn forget(&self) {
        let base = self.base();
        // SAFETY: the outermost entry is always there.
        unsafe { *base = Entry::UNKNOWN };
        self.top.set(base);
        self.unwritten.set(0);
        self.pending.set(0);
    }

    /// From now on the thread is followed: it has no entries yet.
    pub(crate) fn follow(&self) {
        self.forget();
        // SAFETY: as above.
        unsafe { *self.base() = Entry::OUTERMOST };
    }

    /// Whether the thread is followed.
    pub(crate) fn is_followed(&self) -> bool {
        // SAFETY: as above.
        unsafe { (*self.base()).key != NOWHERE }
    }

    /// The innermost entry.
    #[inline(always)]
    pub(crate) fn top(&self) -> &Entry {
        // SAFETY: points to an entry of the vector, or to a static one. Who changes an entry has no such reference.
        unsafe { &*self.top.get() }
    }

    /// How many entries there are, without the outermost.
    pub(crate) fn len(&self) -> usize {
        let innermost = if self.is_asleep() { self.resting.get() } else { self.top.get() };
        (innermost as usize - self.base() as usize) / size_of::<Entry>()
    }

    /// How many of them are written.
    pub(crate) fn written(&self) -> u64 {
        (self.len() - self.unwritten.get()) as u64
    }

    /// Whether some may be written yet.
    pub(crate) fn has_pending(&self) -> bool {
        self.pending.get() != 0
    }

    /// The entry at this place; 0 is the outermost.
    pub(crate) fn at(&self, place: usize) -> Entry {
        debug_assert!(place <= self.len(), "entry {place} of {}", self.len());
        // SAFETY: within the vector.
        unsafe { *self.base().add(place) }
    }

    /// Where the innermost entry of which that is true is, if there is one.
    pub(crate) fn find_last(&self, wanted: impl Fn(&Entry) -> bool) -> Option<usize> {
        (1..=self.len()).rev().find(|place| wanted(&self.at(*place)))
    }

    /// The entry at this place is written.
    pub(crate) fn set_written(&self, place: usize) {
        if self.at(place).status == Status::Pending {
            // SAFETY: within the vector.
            unsafe { (*self.base().add(place)).status = Status::Written };
            self.unwritten.set(self.unwritten.get() - 1);
            self.pending.set(self.pending.get() - 1);
        }
    }

    /// Adds a written entry for which there is room. Its times are set only if they are `TIMED`.
    #[inline(always)]
    pub(crate) fn push_written<const TIMED: bool>(&self, entry: Entry) {
        debug_assert!(self.has_room(), "no room");
        // SAFETY: there is room for one more, and all room is filled with entries.
        unsafe {
            let next = self.top.get().add(1);
            (*next).key = entry.key;
            (*next).call = entry.call;
            (*next).code = entry.code;
            (*next).form = entry.form;
            (*next).status = Status::Written;
            if TIMED {
                (*next).began = entry.began;
                (*next).inside = 0;
            }
            self.top.set(next);
        }
    }

    /// What is inside the innermost entry took that long.
    #[inline(always)]
    pub(crate) fn add_inside(&self, ticks: u64) {
        // SAFETY: an entry of the vector: nothing ends while it is asleep.
        unsafe { (*self.top.get()).inside += ticks };
    }

    /// Whether another entry can be added without further ado.
    #[inline(always)]
    pub(crate) fn has_room(&self) -> bool {
        self.top.get() != self.limit.get()
    }

    /// Adds an entry.
    pub(crate) fn push(&self, entry: Entry) {
        self.make_room();
        self.unwritten.set(self.unwritten.get() + usize::from(entry.status != Status::Written));
        self.pending.set(self.pending.get() + usize::from(entry.status == Status::Pending));
        // SAFETY: there is room for one more.
        unsafe {
            let next = self.top.get().add(1);
            next.write(entry);
            self.top.set(next);
        }
    }

    /// Takes the innermost entry away, which is written.
    #[inline(always)]
    pub(crate) fn pop_written(&self) {
        // SAFETY: there is one besides the outermost, which the caller has seen.
        self.top.set(unsafe { self.top.get().sub(1) });
    }

    /// Takes the innermost entry away.
    pub(crate) fn pop(&self) {
        let status = self.top().status;
        debug_assert!(self.len() > 0, "nothing is open");
        self.unwritten.set(self.unwritten.get() - usize::from(status != Status::Written));
        self.pending.set(self.pending.get() - usize::from(status == Status::Pending));
        self.pop_written();
    }

    #[cold]
    fn make_room(&self) {
        let len = self.len();
        if len + 1 < self.capacity() {
            return;
        }
        // SAFETY: nobody has a reference to the vector or its entries.
        unsafe { (*self.entries.get()).resize(2 * self.capacity(), Entry::OUTERMOST) };
        // SAFETY: the entries have the places that they had.
        self.top.set(unsafe { self.base().add(len) });
        self.lift_limit();
    }

    /// Sets the limit where the room ends.
    pub(crate) fn lift_limit(&self) {
        self.set_limit(self.capacity() - 1);
    }

    /// Has [`Shadow::has_room`] be false where that many entries are open.
    pub(crate) fn set_limit(&self, entries: usize) {
        // SAFETY: within the vector.
        self.limit.set(unsafe { self.base().add(entries.min(self.capacity() - 1)) });
    }

    /// Nothing fits until [`Shadow::wake`]: no frame is called from, or is, the innermost entry.
    pub(crate) fn sleep(&self) {
        if !self.is_asleep() {
            self.resting.set(self.top.replace((&raw const ASLEEP).cast_mut()));
        }
    }

    /// As before.
    pub(crate) fn wake(&self) {
        if self.is_asleep() {
            self.top.set(self.resting.replace(ptr::null_mut()));
        }
    }

    /// Whether it is asleep.
    pub(crate) fn is_asleep(&self) -> bool {
        !self.resting.get().is_null()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: u64, status: Status) -> Entry {
        Entry { key, call: key << 40, code: 7, status, ..Entry::OUTERMOST }
    }

    #[test]
    fn a_new_one_fits_nothing_until_it_is_followed() {
        let shadow = Shadow::new();
        assert!(!shadow.is_followed() && shadow.top().frame() == NOWHERE);
        shadow.follow();
        assert!(shadow.is_followed() && shadow.top().frame() == 0 && shadow.len() == 0);
    }

    #[test]
    fn it_grows_and_keeps_what_it_holds() {
        let shadow = Shadow::new();
        shadow.follow();
        for key in 1..=1000 {
            let entry = entry(2 * key, Status::Written);
            if shadow.has_room() {
                shadow.push_written::<false>(entry);
            } else {
                shadow.push(entry);
            }
        }
        assert_eq!((shadow.len(), shadow.written()), (1000, 1000));
        assert!((1..=1000).all(|place| shadow.at(place).key == 2 * place as u64));
        assert_eq!(shadow.find_last(|entry| entry.key < 100), Some(49));
    }

    #[test]
    fn what_is_not_written_is_not_counted() {
        let shadow = Shadow::new();
        shadow.follow();
        for (key, status) in [(2, Status::Written), (4, Status::Pending), (6, Status::Hidden)] {
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
    fn asleep_it_fits_nothing_and_keeps_all() {
        let shadow = Shadow::new();
        shadow.follow();
        shadow.push(entry(2, Status::Written));
        shadow.sleep();
        assert!(shadow.is_asleep() && shadow.top().key == NOWHERE && shadow.len() == 1);
        shadow.wake();
        assert_eq!((shadow.top().key, shadow.len()), (2, 1));
    }

    #[test]
    fn a_lower_limit_is_told() {
        let shadow = Shadow::new();
        shadow.follow();
        shadow.set_limit(1);
        assert!(shadow.has_room());
        shadow.push(entry(2, Status::Written));
        assert!(!shadow.has_room());
        shadow.lift_limit();
        assert!(shadow.has_room());
    }
}

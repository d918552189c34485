//! Two words for each thread: the twin of `thread_words_x86_64.rs` on other processors.
//!
//! Hot file: neither has a destructor nor is made lazily.

use std::cell::Cell;

thread_local! {
    static LANE: Cell<usize> = const { Cell::new(0) };
    static LIST: Cell<usize> = const { Cell::new(0) };
}

#[inline]
pub(super) fn lane() -> usize {
    LANE.with(Cell::get)
}

pub(super) fn set_lane(word: usize) {
    LANE.with(|lane| lane.set(word));
}

#[inline]
pub(super) fn list() -> usize {
    LIST.with(Cell::get)
}

pub(super) fn set_list(word: usize) {
    LIST.with(|list| list.set(word));
}

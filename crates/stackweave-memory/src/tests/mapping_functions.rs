//! The hooks of `mmap` and related functions record changes of the address space.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::Ordering;

use super::recorded::{about, plain, record, sized};
use crate::MemoryOptions;
use crate::platform::hooks;

const PAGE: usize = 4096;
const READ_WRITE: i32 = libc::PROT_READ | libc::PROT_WRITE;
const ANONYMOUS: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;

unsafe fn map(at: usize, size: usize, flags: i32) -> *mut c_void {
    // SAFETY: passed on to the caller.
    unsafe { hooks::mmap(ptr::without_provenance_mut(at), size, READ_WRITE, flags, -1, 0) }
}

fn without_stacks() -> MemoryOptions {
    MemoryOptions { depth: 0, ..MemoryOptions::default() }
}

#[test]
fn mappings_are_recorded_with_the_requested_size_and_unmapped_in_whole_pages() {
    let mut at = 0;
    // SAFETY: no other thread uses what is mapped here.
    let seen = record(without_stacks(), |_| unsafe {
        let mapped = map(0, 5 * PAGE + 1, ANONYMOUS);
        at = mapped.addr();
        assert_eq!(map(at + PAGE, PAGE, ANONYMOUS | libc::MAP_FIXED).addr(), at + PAGE);
        assert_eq!(hooks::munmap(mapped, 100), 0, "a part of a page unmaps the whole page");
        assert_eq!(hooks::munmap(mapped.byte_add(PAGE), 5 * PAGE), 0);
    });
    let expected = [
        sized("mmap", at, 5 * PAGE + 1),
        sized("mmap", at + PAGE, PAGE),
        sized("munmap", at, PAGE),
        sized("munmap", at + PAGE, 5 * PAGE),
    ];
    assert_eq!(about(&seen, &[at, at + PAGE]), expected);
}

#[test]
fn a_mapping_that_moves_leaves_its_old_address_unless_it_is_duplicated() {
    let (mut old, mut new, mut target, mut second) = (0, 0, 0, 0);
    let may_move = libc::MREMAP_MAYMOVE;
    let shared = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    // SAFETY: as above; the target is an existing mapping.
    let seen = record(without_stacks(), |_| unsafe {
        let mapped = map(0, 2 * PAGE, ANONYMOUS);
        old = mapped.addr();
        let moved = hooks::mremap(mapped, 2 * PAGE, 64 * PAGE, may_move, ptr::null_mut());
        new = moved.addr();
        target = map(0, 64 * PAGE, ANONYMOUS).addr();
        let fixed = may_move | libc::MREMAP_FIXED;
        let there = hooks::mremap(moved, 64 * PAGE, 64 * PAGE, fixed, ptr::without_provenance_mut(target));
        assert_eq!(there.addr(), target);
        assert_eq!(hooks::munmap(there, 64 * PAGE), 0);
        let first = map(0, PAGE, shared);
        let twice = hooks::mremap(first, 0, PAGE, may_move, ptr::null_mut());
        second = twice.addr();
        assert!(second != first.addr());
        hooks::munmap(first, PAGE);
        hooks::munmap(twice, PAGE);
    });
    let recorded = about(&seen, &[old, new, target, second]);
    let ranges =
        |kind: &str| recorded.iter().filter(|(name, _)| name == kind).map(|(_, words)| words.clone()).collect();
    let (moves, ends): (Vec<_>, Vec<_>) = (ranges("mremap"), ranges("munmap"));
    let words = |at: usize, pages: usize| vec![at as u64, (pages * PAGE) as u64];
    assert_eq!(moves, [words(new, 64), words(target, 64), words(second, 1)]);
    assert_eq!(ends[..3], [words(old, 2), words(new, 64), words(target, 64)]);
    assert!(ends[3..].contains(&words(second, 1)));
}

#[test]
fn a_refused_unmapping_keeps_the_mapping() {
    let mut at = 0;
    // SAFETY: as above.
    let seen = record(without_stacks(), |memory| unsafe {
        let mapped = map(0, PAGE, ANONYMOUS);
        at = mapped.addr();
        assert_eq!(hooks::munmap(mapped.byte_add(1), PAGE), -1);
        let refused = hooks::mremap(mapped, PAGE, usize::MAX / 2, libc::MREMAP_MAYMOVE, ptr::null_mut());
        assert_eq!(refused, libc::MAP_FAILED);
        assert_eq!(map(0, 0, ANONYMOUS), libc::MAP_FAILED);
        let before = memory.stats().failed_allocations;
        assert_eq!(map(0, usize::MAX / 2, ANONYMOUS), libc::MAP_FAILED);
        assert_eq!(memory.stats().failed_allocations, before + 1, "for lack of memory");
        assert_eq!(hooks::munmap(mapped, PAGE), 0);
    });
    let expected = [
        sized("mmap", at, PAGE),
        sized("munmap", at + 1, PAGE),
        plain("kept", at + 1),
        sized("munmap", at, PAGE),
        plain("kept", at),
        sized("munmap", at, PAGE),
    ];
    assert_eq!(about(&seen, &[at, at + 1]), expected);
}

#[test]
fn mappings_are_not_recorded_if_not_requested() {
    let options = MemoryOptions { mappings: false, ..without_stacks() };
    // Hooks that a program copied earlier are called even if mappings are not recorded.
    hooks::ORIGINALS.mmap.store(libc::mmap as *const () as usize, Ordering::Relaxed);
    hooks::ORIGINALS.munmap.store(libc::munmap as *const () as usize, Ordering::Relaxed);
    // SAFETY: as above.
    let seen = record(options, |_| unsafe {
        let mapped = map(0, 77 * PAGE, ANONYMOUS);
        hooks::munmap(mapped, 77 * PAGE);
    });
    assert!(!seen.iter().any(|event| event.kind.contains("map")), "{seen:?}");
}

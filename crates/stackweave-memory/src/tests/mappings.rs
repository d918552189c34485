//! The hooks of `mmap` and its kin tell what has happened to addresses.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::Ordering;

use super::recorded::{about, plain, record, sized};
use crate::MemoryOptions;
use crate::platform::hooks;

const PAGE: usize = 4096;
const READ_WRITE: i32 = libc::PROT_READ | libc::PROT_WRITE;
const OWN: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;

unsafe fn map(at: usize, size: usize, flags: i32) -> *mut c_void {
    // SAFETY: passed on to the caller.
    unsafe { hooks::mmap(ptr::without_provenance_mut(at), size, READ_WRITE, flags, -1, 0) }
}

fn without_stacks() -> MemoryOptions {
    MemoryOptions { depth: 0, ..MemoryOptions::default() }
}

#[test]
fn mappings_have_the_size_that_was_asked_for_and_go_in_whole_pages() {
    let mut at = 0;
    // SAFETY: what is mapped here is touched by nobody else.
    let seen = record(without_stacks(), |_| unsafe {
        let mapped = map(0, 5 * PAGE + 1, OWN);
        at = mapped.addr();
        assert_eq!(map(at + PAGE, PAGE, OWN | libc::MAP_FIXED).addr(), at + PAGE);
        assert_eq!(hooks::munmap(mapped, 100), 0, "a part of a page is the page");
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
fn a_mapping_that_moves_leaves_its_old_place_unless_it_was_to_stay() {
    let (mut old, mut new, mut target, mut second) = (0, 0, 0, 0);
    let may_move = libc::MREMAP_MAYMOVE;
    let shared = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    // SAFETY: as above; the target is a mapping that is there.
    let seen = record(without_stacks(), |_| unsafe {
        let mapped = map(0, 2 * PAGE, OWN);
        old = mapped.addr();
        let moved = hooks::mremap(mapped, 2 * PAGE, 64 * PAGE, may_move, ptr::null_mut());
        new = moved.addr();
        target = map(0, 64 * PAGE, OWN).addr();
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
    let told = about(&seen, &[old, new, target, second]);
    let places = |kind: &str| told.iter().filter(|(name, _)| name == kind).map(|(_, words)| words.clone()).collect();
    let (moves, ends): (Vec<_>, Vec<_>) = (places("mremap"), places("munmap"));
    let words = |at: usize, pages: usize| vec![at as u64, (pages * PAGE) as u64];
    assert_eq!(moves, [words(new, 64), words(target, 64), words(second, 1)]);
    assert_eq!(ends[..3], [words(old, 2), words(new, 64), words(target, 64)]);
    assert!(ends[3..].contains(&words(second, 1)));
}

#[test]
fn what_the_kernel_refuses_is_kept() {
    let mut at = 0;
    // SAFETY: as above.
    let seen = record(without_stacks(), |memory| unsafe {
        let mapped = map(0, PAGE, OWN);
        at = mapped.addr();
        assert_eq!(hooks::munmap(mapped.byte_add(1), PAGE), -1);
        let refused = hooks::mremap(mapped, PAGE, usize::MAX / 2, libc::MREMAP_MAYMOVE, ptr::null_mut());
        assert_eq!(refused, libc::MAP_FAILED);
        assert_eq!(map(0, 0, OWN), libc::MAP_FAILED);
        let before = memory.stats().failed_allocations;
        assert_eq!(map(0, usize::MAX / 2, OWN), libc::MAP_FAILED);
        assert_eq!(memory.stats().failed_allocations, before + 1, "for want of memory");
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
fn mappings_are_left_out_if_that_is_wanted() {
    let options = MemoryOptions { mappings: false, ..without_stacks() };
    // Hooks that were copied before are called whether they are wanted or not.
    hooks::ORIGINALS.mmap.store(libc::mmap as *const () as usize, Ordering::Relaxed);
    hooks::ORIGINALS.munmap.store(libc::munmap as *const () as usize, Ordering::Relaxed);
    // SAFETY: as above.
    let seen = record(options, |_| unsafe {
        let mapped = map(0, 77 * PAGE, OWN);
        hooks::munmap(mapped, 77 * PAGE);
    });
    assert!(!seen.iter().any(|event| event.kind.contains("map")), "{seen:?}");
}

//! The hooks of `malloc` and related functions record what happened, and return what the original functions return.

use std::ffi::c_void;
use std::ptr;

use super::recorded::{about, plain, record, sized};
use crate::MemoryOptions;
use crate::platform::hooks;

const HUGE: usize = usize::MAX / 2;

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap()
}

fn set_errno(value: i32) {
    // SAFETY: this thread's own.
    unsafe { *libc::__errno_location() = value };
}

fn without_stacks() -> MemoryOptions {
    MemoryOptions { depth: 0, ..MemoryOptions::default() }
}

#[test]
fn every_function_that_allocates_is_recorded_by_its_name() {
    let mut allocated = Vec::new();
    // SAFETY: as these functions are meant to be called.
    let seen = record(without_stacks(), |_| unsafe {
        let mut aligned: *mut c_void = ptr::null_mut();
        allocated.push(("malloc", hooks::malloc(1001), 1001));
        allocated.push(("calloc", hooks::calloc(7, 143), 1001));
        allocated.push(("realloc", hooks::realloc(ptr::null_mut(), 1002), 1002));
        allocated.push(("reallocarray", hooks::reallocarray(ptr::null_mut(), 3, 1003), 3009));
        assert_eq!(hooks::posix_memalign(&raw mut aligned, 64, 1004), 0);
        allocated.push(("posix_memalign", aligned, 1004));
        allocated.push(("aligned_alloc", hooks::aligned_alloc(64, 1024), 1024));
        allocated.push(("memalign", hooks::memalign(128, 1005), 1005));
        allocated.push(("valloc", hooks::valloc(1006), 1006));
        allocated.push(("pvalloc", hooks::pvalloc(1007), 1007));
        for (_, block, _) in &allocated {
            assert!(!block.is_null());
        }
        for (_, block, _) in &allocated {
            hooks::free(*block);
        }
    });
    let addresses: Vec<usize> = allocated.iter().map(|(_, block, _)| block.addr()).collect();
    let allocated = allocated.iter().map(|(name, block, size)| sized(name, block.addr(), *size));
    let freed = addresses.iter().map(|address| plain("free", *address));
    assert_eq!(about(&seen, &addresses), allocated.chain(freed).collect::<Vec<_>>());
    assert!(seen.windows(2).all(|pair| pair[0].ticks <= pair[1].ticks));
}

#[test]
fn a_block_that_is_moved_is_freed_and_allocated() {
    let mut blocks = Vec::new();
    // SAFETY: as these functions are meant to be called.
    let seen = record(without_stacks(), |_| unsafe {
        let first = hooks::malloc(2001);
        let second = hooks::realloc(first, 2_000_002);
        let third = hooks::reallocarray(second, 2, 3_000_003);
        assert!(hooks::realloc(third, 0).is_null(), "the C library frees it");
        blocks = vec![first.addr(), second.addr(), third.addr()];
    });
    let [first, second, third] = blocks[..] else { panic!() };
    let expected = [
        sized("malloc", first, 2001),
        plain("free", first),
        sized("realloc", second, 2_000_002),
        plain("free", second),
        sized("reallocarray", third, 6_000_006),
        plain("free", third),
    ];
    assert_eq!(about(&seen, &blocks), expected);
}

#[test]
fn a_failed_reallocation_keeps_the_block_and_is_recorded_once_with_its_size() {
    let mut block = 0;
    // SAFETY: as these functions are meant to be called.
    let seen = record(without_stacks(), |memory| unsafe {
        let allocated = hooks::malloc(100);
        block = allocated.addr();
        set_errno(0);
        assert!(hooks::realloc(allocated, HUGE).is_null());
        assert_eq!(errno(), libc::ENOMEM);
        assert!(hooks::reallocarray(allocated, HUGE, 4).is_null());
        assert!(hooks::malloc(HUGE).is_null() && hooks::calloc(HUGE, 4).is_null());
        assert!(hooks::calloc(0, HUGE).is_null() || hooks::calloc(0, 1).addr() != 0);
        let mut aligned: *mut c_void = ptr::without_provenance_mut(5);
        assert_eq!(hooks::posix_memalign(&raw mut aligned, 64, HUGE), libc::ENOMEM);
        assert_eq!(hooks::posix_memalign(&raw mut aligned, 3, 8), libc::EINVAL);
        assert_eq!(aligned.addr(), 5, "it is unchanged");
        assert_eq!(memory.stats().failed_allocations, 5);
        hooks::free(allocated);
    });
    let expected = [
        sized("malloc", block, 100),
        plain("free", block),
        plain("kept", block),
        plain("free", block),
        plain("kept", block),
        plain("free", block),
    ];
    assert_eq!(about(&seen, &[block]), expected);
    let failures: Vec<_> = seen.iter().filter(|event| event.kind == "instant-with").collect();
    assert_eq!(failures.len(), 1);
    let text = format!(r#"{{"size": {HUGE}, "allocator": "realloc"}}"#);
    assert_eq!(String::from_utf8_lossy(&failures[0].bytes), text);
}

#[test]
fn a_free_of_null_is_not_recorded_and_errno_is_preserved() {
    let mut empty = 0;
    // SAFETY: as these functions are meant to be called.
    let seen = record(MemoryOptions::default(), |_| unsafe {
        set_errno(77);
        hooks::free(ptr::null_mut());
        let block = hooks::malloc(0);
        empty = block.addr();
        hooks::free(block);
        for size in 0..2000 {
            let block = hooks::realloc(hooks::calloc(size, 3), size + 1);
            hooks::free(block);
            assert_eq!(errno(), 77);
        }
    });
    assert_eq!(about(&seen, &[empty])[..2], [sized("malloc", empty, 0), plain("free", empty)]);
    assert!(about(&seen, &[0]).is_empty());
}

#[test]
fn frees_have_stacks_if_requested() {
    let mut block = 0;
    let options = MemoryOptions { free_stacks: true, ..MemoryOptions::default() };
    // SAFETY: as these functions are meant to be called.
    let seen = record(options, |_| unsafe {
        let allocated = hooks::malloc(4321);
        block = allocated.addr();
        hooks::free(allocated);
    });
    let recorded: Vec<_> = seen.iter().filter(|event| event.words.first() == Some(&(block as u64))).collect();
    assert_eq!(recorded.iter().map(|event| &*event.kind).collect::<Vec<_>>(), ["malloc", "free-at"]);
    assert!(recorded.iter().all(|event| event.frames.len() > 3));
}

/// Allocates a block, and captures the stack of that.
#[inline(never)]
fn allocate_and_capture(frames: &mut Vec<u64>) -> usize {
    let captured = stackweave_capture::capture(&stackweave_capture::CaptureRequest::default());
    let address = |frame: stackweave_core::RawFrame| match frame.kind() {
        stackweave_core::RawFrameKind::Native(address) => address.address(),
        other => panic!("{other:?}"),
    };
    *frames = stackweave_capture::stacks().frames(captured.stack.unwrap()).map(address).collect();
    // SAFETY: as these functions are meant to be called; in one frame with the capture.
    unsafe {
        let block = hooks::malloc(5432);
        hooks::free(block);
        block.addr()
    }
}

#[test]
fn the_stack_begins_with_the_caller_and_matches_a_capture() {
    let (mut frames, mut block) = (Vec::new(), 0);
    let seen = record(MemoryOptions::default(), |_| block = allocate_and_capture(&mut frames));
    let event = seen.iter().find(|seen| seen.words[..2] == [block as u64, 5432]).unwrap();
    assert!(frames.len() > 4);
    assert_eq!(event.frames[1..], frames[1..]);
    assert!(event.frames[0].abs_diff(frames[0]) < 4096, "another address in the same function");
    let mut cut = Vec::new();
    let options = MemoryOptions { depth: 2, ..MemoryOptions::default() };
    let seen = record(options, |_| block = allocate_and_capture(&mut cut));
    let event = seen.iter().find(|seen| seen.words[..2] == [block as u64, 5432]).unwrap();
    assert_eq!(event.frames.len(), 2);
}

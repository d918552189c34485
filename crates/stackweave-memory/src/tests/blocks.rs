//! The hooks of `malloc` and its kin tell what has happened, and give what the functions themselves give.

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
    // SAFETY: the thread's own.
    unsafe { *libc::__errno_location() = value };
}

fn without_stacks() -> MemoryOptions {
    MemoryOptions { depth: 0, ..MemoryOptions::default() }
}

#[test]
fn every_function_that_takes_blocks_is_told_by_its_name() {
    let mut taken = Vec::new();
    // SAFETY: as these functions are meant to be called.
    let seen = record(without_stacks(), |_| unsafe {
        let mut aligned: *mut c_void = ptr::null_mut();
        taken.push(("malloc", hooks::malloc(1001), 1001));
        taken.push(("calloc", hooks::calloc(7, 143), 1001));
        taken.push(("realloc", hooks::realloc(ptr::null_mut(), 1002), 1002));
        taken.push(("reallocarray", hooks::reallocarray(ptr::null_mut(), 3, 1003), 3009));
        assert_eq!(hooks::posix_memalign(&raw mut aligned, 64, 1004), 0);
        taken.push(("posix_memalign", aligned, 1004));
        taken.push(("aligned_alloc", hooks::aligned_alloc(64, 1024), 1024));
        taken.push(("memalign", hooks::memalign(128, 1005), 1005));
        taken.push(("valloc", hooks::valloc(1006), 1006));
        taken.push(("pvalloc", hooks::pvalloc(1007), 1007));
        for (_, block, _) in &taken {
            assert!(!block.is_null());
        }
        for (_, block, _) in &taken {
            hooks::free(*block);
        }
    });
    let addresses: Vec<usize> = taken.iter().map(|(_, block, _)| block.addr()).collect();
    let taken = taken.iter().map(|(name, block, size)| sized(name, block.addr(), *size));
    let freed = addresses.iter().map(|address| plain("free", *address));
    assert_eq!(about(&seen, &addresses), taken.chain(freed).collect::<Vec<_>>());
    assert!(seen.windows(2).all(|pair| pair[0].ticks <= pair[1].ticks));
}

#[test]
fn a_block_that_is_moved_is_given_back_and_taken() {
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
fn what_fails_is_kept_and_told_once_with_its_size() {
    let mut block = 0;
    // SAFETY: as these functions are meant to be called.
    let seen = record(without_stacks(), |memory| unsafe {
        let taken = hooks::malloc(100);
        block = taken.addr();
        set_errno(0);
        assert!(hooks::realloc(taken, HUGE).is_null());
        assert_eq!(errno(), libc::ENOMEM);
        assert!(hooks::reallocarray(taken, HUGE, 4).is_null());
        assert!(hooks::malloc(HUGE).is_null() && hooks::calloc(HUGE, 4).is_null());
        assert!(hooks::calloc(0, HUGE).is_null() || hooks::calloc(0, 1).addr() != 0);
        let mut aligned: *mut c_void = ptr::without_provenance_mut(5);
        assert_eq!(hooks::posix_memalign(&raw mut aligned, 64, HUGE), libc::ENOMEM);
        assert_eq!(hooks::posix_memalign(&raw mut aligned, 3, 8), libc::EINVAL);
        assert_eq!(aligned.addr(), 5, "left alone");
        assert_eq!(memory.stats().failed_allocations, 5);
        hooks::free(taken);
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
    let told: Vec<_> = seen.iter().filter(|event| event.kind == "instant-with").collect();
    assert_eq!(told.len(), 1);
    let text = format!(r#"{{"size": {HUGE}, "allocator": "realloc"}}"#);
    assert_eq!(String::from_utf8_lossy(&told[0].bytes), text);
}

#[test]
fn nothing_is_told_of_no_block_and_errno_stays() {
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
fn frees_have_stacks_if_that_is_wanted() {
    let mut block = 0;
    let options = MemoryOptions { free_stacks: true, ..MemoryOptions::default() };
    // SAFETY: as these functions are meant to be called.
    let seen = record(options, |_| unsafe {
        let taken = hooks::malloc(4321);
        block = taken.addr();
        hooks::free(taken);
    });
    let told: Vec<_> = seen.iter().filter(|event| event.words.first() == Some(&(block as u64))).collect();
    assert_eq!(told.iter().map(|event| &*event.kind).collect::<Vec<_>>(), ["malloc", "free-at"]);
    assert!(told.iter().all(|event| event.frames.len() > 3));
}

/// Its stack, and the block that it takes.
#[inline(never)]
fn taking(frames: &mut Vec<u64>) -> usize {
    let captured = stackweave_capture::capture(&stackweave_capture::Request::default());
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
fn the_stack_begins_with_the_caller_and_goes_on_as_any_other() {
    let (mut frames, mut block) = (Vec::new(), 0);
    let seen = record(MemoryOptions::default(), |_| block = taking(&mut frames));
    let told = seen.iter().find(|event| event.words[..2] == [block as u64, 5432]).unwrap();
    assert!(frames.len() > 4);
    assert_eq!(told.frames[1..], frames[1..]);
    assert!(told.frames[0].abs_diff(frames[0]) < 4096, "another place in the same function");
    let mut cut = Vec::new();
    let options = MemoryOptions { depth: 2, ..MemoryOptions::default() };
    let seen = record(options, |_| block = taking(&mut cut));
    let told = seen.iter().find(|event| event.words[..2] == [block as u64, 5432]).unwrap();
    assert_eq!(told.frames.len(), 2);
}

//! Loading, forking and hooking at the same time.

use std::sync::atomic::AtomicBool;

use super::tests::*;
use super::*;

/// Calls `work` in each of these threads, until `action` is done.
fn meanwhile(threads: usize, work: impl Fn(usize) + Sync, action: impl FnOnce()) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for which in 0..threads {
            let (work, is_over) = (&work, &is_over);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    work(which);
                }
            });
        }
        // The threads are stopped even if it panics.
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(action));
        is_over.store(true, Ordering::Relaxed);
        done.unwrap_or_else(|failure| std::panic::resume_unwind(failure));
    });
}

#[test]
fn libraries_come_and_go_while_others_allocate_and_hooks_do_too() {
    let _exclusive = ExclusiveSlots::new();
    let library = Allocating::open(ALLOCATING[0].1);
    let loading = Allocating::open(ALLOCATING[1].1);
    let work = |which: usize| {
        if which < 2 {
            library.release(library.allocate());
            return;
        }
        let path = [ALLOCATING[2].1, ALLOCATING[3].1, ALLOCATING[4].1, ALLOCATING_LATER][which % 4];
        let handle = loading.load(path, libc::RTLD_LAZY);
        assert!(!handle.is_null());
        loading.release(loading.allocate_in(handle));
        loading.close(handle);
    };
    meanwhile(6, work, || {
        for _ in 0..100 {
            install(functions()).unwrap();
            for _ in 0..20 {
                recheck();
                assert!(stats().slots > 0);
            }
            assert_eq!(library.counted_alone(), 1);
            remove(functions());
        }
    });
    let pages = protections(ALLOCATING[0].1);
    install(functions()).unwrap();
    assert_eq!(protections(ALLOCATING[0].1), pages);
    assert_eq!(library.counted(), ALL);
}

#[test]
fn a_child_of_a_fork_in_the_middle_goes_on() {
    let _exclusive = ExclusiveSlots::new();
    let library = Allocating::open(ALLOCATING[0].1);
    let loading = Allocating::open(ALLOCATING[1].1);
    install(functions()).unwrap();
    let work = |which: usize| {
        // The other threads do not load modules: a child of a fork during a load is lost without us, too.
        library.release(library.allocate());
        if which == 0 {
            recheck();
            stats();
        }
    };
    meanwhile(3, work, || {
        for _ in 0..100 {
            let handle = loading.load(ALLOCATING[3].1, libc::RTLD_LAZY);
            // SAFETY: the child calls only what this test is about, and exits.
            let pid = unsafe { libc::fork() };
            if pid == 0 {
                // SAFETY: a limit for the child.
                unsafe { libc::alarm(20) };
                let is_hooked = library.counted() == ALL;
                loading.release(loading.allocate_in(handle));
                let has_stats = stats().slots > 0;
                remove(functions());
                let is_restored = library.counted() == 0;
                // SAFETY: ends the child.
                unsafe { libc::_exit(i32::from(!is_hooked) + 2 * i32::from(!has_stats) + 4 * i32::from(!is_restored)) };
            }
            let mut status = 0;
            // SAFETY: waits for the child.
            assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
            assert_eq!(status, 0);
            loading.close(handle);
        }
    });
}

//! Dumps of all threads of this process: their contents, and that nothing can block them.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod dumping;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use dumping::{
    FullPipe, MemoryFile, SleepingThread, dump, in_child, lock_tests, native_offsets, patient, script,
    sleep_function_range, threads_in,
};
use stackweave_capture::{
    CaptureStart, DumpError, DumpOptions, RawFrame, Watchdog, WatchdogOptions, dump_all_threads,
    dump_all_threads_from_context, prepare_dumps, register_source, write_frame,
};
use stackweave_testkit::counting_allocator::{CountingAllocator, requests};
use stackweave_testkit::signals::{SignalStack, in_handler};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn each_thread_is_written_with_the_function_it_is_in() {
    let _lock = lock_tests();
    let sleeper = SleepingThread::start("sleeps");
    let (dumped, text) = dump(&patient());
    let dumped = dumped.unwrap();
    assert_eq!((dumped.threads, dumped.answered), (threads_in(&text).len(), threads_in(&text).len()), "{text}");
    let thread = &threads_in(&text)["sleeps"];
    assert!(thread[0].ends_with(", no Python frames:"), "{text}");
    assert!(thread[1].starts_with("  | libc.so.6+0x"), "{text}");
    let (start, end) = sleep_function_range();
    assert!(native_offsets(thread).iter().any(|offset| (start..end).contains(offset)), "{start:#x} {text}");
    assert!(text.contains(", the calling thread"));
    sleeper.wake();
}

#[test]
fn the_calling_thread_can_be_omitted() {
    let _lock = lock_tests();
    let sleeper = SleepingThread::start("sleeps");
    let (all, _) = dump(&patient());
    let (others, text) = dump(&DumpOptions { calling_thread: None, ..patient() });
    assert_eq!(others.unwrap().threads + 1, all.unwrap().threads);
    assert!(!text.contains(", the calling thread") && threads_in(&text).contains_key("sleeps"), "{text}");
    sleeper.wake();
}

#[test]
fn a_hundred_threads_reply_repeatedly_without_allocations() {
    let _lock = lock_tests();
    let threads: Vec<_> = (0..100).map(|number| SleepingThread::start(&format!("thread {number}"))).collect();
    let file = MemoryFile::new();
    for _ in 0..10 {
        let before = requests();
        let dumped = dump_all_threads(file.fd(), &patient());
        assert_eq!(requests(), before, "the thread that dumps has allocated");
        let dumped = dumped.unwrap();
        assert!(dumped.answered == dumped.threads && dumped.threads > 100, "{dumped:?}");
    }
    let text = file.text();
    for number in 0..100 {
        assert_eq!(text.matches(&format!("\"thread {number}\"")).count(), 10);
    }
    // Each thread asserts that it has not allocated since it fell asleep.
    threads.into_iter().for_each(SleepingThread::wake);
}

#[test]
fn a_thread_that_blocks_signals_is_listed_and_gets_only_one() {
    let _lock = lock_tests();
    let (blocking, sleeper) = (SleepingThread::start_blocking_signals("deaf"), SleepingThread::start("sleeps"));
    let waiting = dumping::waiting_signals();
    for _ in 0..3 {
        // A tenth of it is spent on the thread that blocks the signal.
        let options = DumpOptions { timeout: Duration::from_secs(10), ..patient() };
        let (dumped, text) = dump(&options);
        let dumped = dumped.unwrap();
        assert_eq!(dumped.answered + 1, dumped.threads, "{text}");
        assert!(threads_in(&text)["deaf"][0].contains("has not answered: it blocks signal"), "{text}");
        assert!(threads_in(&text)["sleeps"].len() > 2);
    }
    // The kernel counts the signals of all processes of the user: those of other processes come and go, ours would
    // stay.
    let is_one = || dumping::waiting_signals() <= waiting + 1;
    assert!(dumping::becomes_true(is_one), "{} signals wait, {waiting} before", dumping::waiting_signals());
    blocking.wake();
    sleeper.wake();
}

#[test]
fn a_signal_handler_can_dump_on_either_stack() {
    let _lock = lock_tests();
    let sleeper = SleepingThread::start("sleeps");
    for stack in [SignalStack::Normal, SignalStack::Alternate] {
        let file = MemoryFile::new();
        let (fd, mut outcome) = (file.fd(), None);
        let mut inside = |context: *mut std::ffi::c_void| {
            let before = requests();
            // SAFETY: the context of the handler that is running.
            let dumped = unsafe { dump_all_threads_from_context(fd, context, &patient()) };
            outcome = Some((dumped, requests() - before));
        };
        in_handler(stack, &mut inside);
        let (dumped, allocated) = outcome.unwrap();
        let (dumped, text) = (dumped.unwrap(), file.text());
        assert_eq!((dumped.answered, allocated), (dumped.threads, 0), "{text}");
        let own = threads_in(&text).into_values().find(|lines| lines[0].contains(", the calling thread")).unwrap();
        assert!(own[1].starts_with("  | libc.so.6+0x"), "the function that raised the signal: {text}");
        assert!(!own.iter().any(|line| line.contains("cut here")), "{text}");
    }
    sleeper.wake();
}

#[test]
fn a_hanging_loader_does_not_block_dumps() {
    let _lock = lock_tests();
    // Threads that have never captured: their first capture is in the handler.
    let cold: Vec<_> = (0..20).map(|number| SleepingThread::start(&format!("cold {number}"))).collect();
    let stuck = dumping::StuckInLoader::start();
    let (dumped, text) = dump(&DumpOptions { calling_thread: None, ..patient() });
    let dumped = dumped.unwrap();
    assert_eq!(dumped.answered, dumped.threads, "{text}");
    assert!(threads_in(&text)["stuck in loader"].len() > 2, "{text}");
    stuck.release();
    cold.into_iter().for_each(SleepingThread::wake);
}

#[test]
fn a_concurrent_dump_fails_and_a_forked_child_can_dump() {
    let _lock = lock_tests();
    let full = FullPipe::new();
    let fd = full.fd();
    let (sender, task) = std::sync::mpsc::channel();
    let first = std::thread::spawn(move || {
        // SAFETY: `gettid` has no preconditions.
        sender.send(unsafe { libc::gettid() }).unwrap();
        dump_all_threads(fd, &patient())
    });
    let task = task.recv().unwrap();
    dumping::wait_for(|| dumping::is_in_write(task));
    let (second, text) = dump(&patient());
    assert_eq!(second, Err(DumpError::Busy));
    assert_eq!(text, "Stackweave: no dump of the threads: another dump is being written\n");
    let dumped_in_child = in_child(|| {
        let dumped = dump_all_threads(MemoryFile::new().fd(), &patient());
        dumped.is_ok_and(|dumped| dumped.threads == 1 && dumped.answered == 1)
    });
    assert!(dumped_in_child);
    full.drain();
    assert!(first.join().unwrap().is_ok());
    assert!(dump(&patient()).0.is_ok());
}

#[test]
fn a_signal_with_a_replaced_handler_is_not_sent() {
    let _lock = lock_tests();
    let signal = dumping::highest_handled_signal();
    let before = dumping::replace_handler(signal, libc::SIG_DFL);
    let (dumped, text) = dump(&patient());
    assert_eq!(dumped, Err(DumpError::SignalReplaced));
    assert!(text.contains("has another handler now"), "{text}");
    dumping::replace_handler(signal, libc::SIG_IGN);
    prepare_dumps().unwrap();
    assert!(dump(&patient()).0.is_ok(), "another signal was chosen");
    assert_ne!(before, libc::SIG_DFL);
}

#[test]
fn errors_of_the_descriptor_are_returned() {
    let _lock = lock_tests();
    assert_eq!(dump_all_threads(-1, &patient()), Err(DumpError::NotWritten(libc::EBADF)));
}

#[test]
fn sources_write_their_frames_and_long_stacks_are_cut() {
    let _lock = lock_tests();
    let source = register_source(Arc::new(script::Interpreter)).unwrap();
    script::WORD.store(7, Ordering::SeqCst);
    let options = DumpOptions { calling_thread: Some(CaptureStart::Caller), frames: 2, ..patient() };
    let (dumped, text) = dump(&options);
    dumped.unwrap();
    script::WORD.store(0, Ordering::SeqCst);
    drop(source);
    let own = threads_in(&text).into_values().find(|lines| lines[0].contains(", the calling thread")).unwrap();
    assert_eq!(own[1], "  File \"a script\", line 7 in word", "{text}");
    assert!(own[3].ends_with(" more frames)") && own.len() == 4, "{text}");
    let mut word = String::new();
    write_frame(RawFrame::script(250, 5), &mut word).unwrap();
    assert_eq!(word, "script250:0x5", "a source that is not known");
}

#[test]
fn a_watchdog_dumps_once_and_again_after_a_reset() {
    let _lock = lock_tests();
    let file = MemoryFile::new();
    let options = WatchdogOptions { timeout: Duration::from_millis(1), repeat: false, exit: false };
    let watchdog = Watchdog::start(file.fd(), options.clone()).unwrap();
    dumping::wait_for(|| watchdog.dumps() == 1);
    watchdog.reset();
    dumping::wait_for(|| watchdog.dumps() == 2);
    watchdog.cancel();
    assert!(!watchdog.is_running());
    let text = file.text();
    assert_eq!(text.matches("Stackweave: watchdog not reset for 1ms\n").count(), 2);
    assert!(!text.contains("stackweave-dog"), "it omits itself: {text}");

    let repeating = Watchdog::start(file.fd(), WatchdogOptions { repeat: true, ..options }).unwrap();
    dumping::wait_for(|| repeating.dumps() > 3);
}

#[test]
fn a_waiting_watchdog_can_be_cancelled_replies_to_dumps_and_is_not_in_a_forked_child() {
    let _lock = lock_tests();
    let file = MemoryFile::new();
    let options = WatchdogOptions { timeout: Duration::MAX, repeat: true, exit: true };
    let watchdog = Watchdog::start(file.fd(), options).unwrap();
    assert!(watchdog.is_running());
    // A new thread sets its name itself.
    dumping::wait_for(|| threads_in(&dump(&patient()).1).contains_key("stackweave-dog"));
    let (dumped, text) = dump(&patient());
    assert!(dumped.is_ok_and(|dumped| dumped.answered == dumped.threads), "{text}");
    assert!(threads_in(&text)["stackweave-dog"].len() > 2, "{text}");
    let has_ended = in_child(|| {
        watchdog.reset();
        watchdog.cancel();
        !watchdog.is_running()
    });
    assert!(has_ended);
    watchdog.cancel();
    assert_eq!((watchdog.dumps(), file.text()), (0, String::new()));
}

//! Dumps of all threads of this process: what they show, and what can't stop them.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod dumping;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use dumping::{Asleep, FullPipe, MemoryFile, alone, asleep_in, dump, in_child, native_offsets, script, threads_in};
use stackweave_capture::{
    CantDump, DumpOptions, RawFrame, Start, Watchdog, WatchdogOptions, dump_all_threads, dump_all_threads_from_context,
    prepare_dumps, register_source, write_frame,
};
use stackweave_testkit::counting_allocator::{CountingAllocator, requests};
use stackweave_testkit::signals::{SignalStack, in_handler};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn each_thread_is_written_with_the_function_it_is_in() {
    let _turn = alone();
    let sleeper = Asleep::start("sleeps");
    let (dumped, text) = dump(&DumpOptions::default());
    let dumped = dumped.unwrap();
    assert_eq!((dumped.threads, dumped.answered), (threads_in(&text).len(), threads_in(&text).len()), "{text}");
    let thread = &threads_in(&text)["sleeps"];
    assert!(thread[0].ends_with(", no Python frames:"), "{text}");
    assert!(thread[1].starts_with("  | libc.so.6+0x"), "{text}");
    let (start, end) = asleep_in();
    assert!(native_offsets(thread).iter().any(|offset| (start..end).contains(offset)), "{start:#x} {text}");
    assert!(text.contains(", which asks"));
    sleeper.wake();
}

#[test]
fn the_calling_thread_can_be_left_out() {
    let _turn = alone();
    let sleeper = Asleep::start("sleeps");
    let (all, _) = dump(&DumpOptions::default());
    let (others, text) = dump(&DumpOptions { calling_thread: None, ..DumpOptions::default() });
    assert_eq!(others.unwrap().threads + 1, all.unwrap().threads);
    assert!(!text.contains(", which asks") && threads_in(&text).contains_key("sleeps"), "{text}");
    sleeper.wake();
}

#[test]
fn a_hundred_threads_answer_again_and_again_and_nobody_allocates() {
    let _turn = alone();
    let threads: Vec<_> = (0..100).map(|number| Asleep::start(&format!("thread {number}"))).collect();
    let file = MemoryFile::new();
    for _ in 0..10 {
        let before = requests();
        let dumped = dump_all_threads(file.fd(), &DumpOptions::default());
        assert_eq!(requests(), before, "the thread that dumps has allocated");
        let dumped = dumped.unwrap();
        assert!(dumped.answered == dumped.threads && dumped.threads > 100, "{dumped:?}");
    }
    let text = file.text();
    for number in 0..100 {
        assert_eq!(text.matches(&format!("\"thread {number}\"")).count(), 10);
    }
    // Each asserts that it has not allocated since it fell asleep.
    threads.into_iter().for_each(Asleep::wake);
}

#[test]
fn a_thread_that_blocks_signals_is_named_and_gets_no_heap_of_them() {
    let _turn = alone();
    let (deaf, sleeper) = (Asleep::start_deaf("deaf"), Asleep::start("sleeps"));
    let waiting = dumping::waiting_signals();
    for _ in 0..5 {
        let options = DumpOptions { timeout: Duration::from_millis(100), ..DumpOptions::default() };
        let (dumped, text) = dump(&options);
        let dumped = dumped.unwrap();
        assert_eq!(dumped.answered + 1, dumped.threads, "{text}");
        assert!(threads_in(&text)["deaf"][0].contains("has not answered: it blocks signal"), "{text}");
        assert!(threads_in(&text)["sleeps"].len() > 2);
    }
    // The kernel counts the signals of all processes of the user: those of others come and go, a heap of ours would stay.
    let is_no_heap = || dumping::waiting_signals() <= waiting + 1;
    assert!(dumping::comes_true(is_no_heap), "{} signals wait, {waiting} before", dumping::waiting_signals());
    deaf.wake();
    sleeper.wake();
}

#[test]
fn a_signal_handler_can_dump_on_either_stack() {
    let _turn = alone();
    let sleeper = Asleep::start("sleeps");
    for stack in [SignalStack::Normal, SignalStack::Alternate] {
        let file = MemoryFile::new();
        let (fd, mut outcome) = (file.fd(), None);
        let mut inside = |context: *mut std::ffi::c_void| {
            let before = requests();
            // SAFETY: the context of the handler that is running.
            let dumped = unsafe { dump_all_threads_from_context(fd, context, &DumpOptions::default()) };
            outcome = Some((dumped, requests() - before));
        };
        in_handler(stack, &mut inside);
        let (dumped, allocated) = outcome.unwrap();
        let (dumped, text) = (dumped.unwrap(), file.text());
        assert_eq!((dumped.answered, allocated), (dumped.threads, 0), "{text}");
        let own = threads_in(&text).into_values().find(|lines| lines[0].contains(", which asks")).unwrap();
        assert!(own[1].starts_with("  | libc.so.6+0x"), "what raised the signal: {text}");
        assert!(!own.iter().any(|line| line.contains("cut here")), "{text}");
    }
    sleeper.wake();
}

#[test]
fn a_loader_that_hangs_hinders_nobody() {
    let _turn = alone();
    // Threads that have never captured: their first capture is in the handler.
    let cold: Vec<_> = (0..20).map(|number| Asleep::start(&format!("cold {number}"))).collect();
    let stuck = dumping::StuckInLoader::start();
    let (dumped, text) = dump(&DumpOptions { calling_thread: None, ..DumpOptions::default() });
    let dumped = dumped.unwrap();
    assert_eq!(dumped.answered, dumped.threads, "{text}");
    assert!(threads_in(&text)["stuck in loader"].len() > 2, "{text}");
    stuck.release();
    cold.into_iter().for_each(Asleep::wake);
}

#[test]
fn a_second_dump_says_that_it_is_not_its_turn_and_a_forked_child_takes_it() {
    let _turn = alone();
    let full = FullPipe::new();
    let fd = full.fd();
    let (tell, task) = std::sync::mpsc::channel();
    let first = std::thread::spawn(move || {
        // SAFETY: has no conditions.
        tell.send(unsafe { libc::gettid() }).unwrap();
        dump_all_threads(fd, &DumpOptions::default())
    });
    let task = task.recv().unwrap();
    dumping::wait_for(|| dumping::is_in_write(task));
    let (second, text) = dump(&DumpOptions::default());
    assert_eq!(second, Err(CantDump::Busy));
    assert_eq!(text, "Stackweave: no dump of the threads: another dump is being written\n");
    let dumped_in_child = in_child(|| {
        let dumped = dump_all_threads(MemoryFile::new().fd(), &DumpOptions::default());
        dumped.is_ok_and(|dumped| dumped.threads == 1 && dumped.answered == 1)
    });
    assert!(dumped_in_child);
    full.drain();
    assert!(first.join().unwrap().is_ok());
    assert!(dump(&DumpOptions::default()).0.is_ok());
}

#[test]
fn a_signal_that_was_taken_over_is_not_sent() {
    let _turn = alone();
    let signal = dumping::highest_handled_signal();
    let before = dumping::replace_handler(signal, libc::SIG_DFL);
    let (dumped, text) = dump(&DumpOptions::default());
    assert_eq!(dumped, Err(CantDump::SignalTaken));
    assert!(text.contains("has another handler now"), "{text}");
    dumping::replace_handler(signal, libc::SIG_IGN);
    prepare_dumps().unwrap();
    assert!(dump(&DumpOptions::default()).0.is_ok(), "another signal was chosen");
    assert_ne!(before, libc::SIG_DFL);
}

#[test]
fn errors_of_the_descriptor_are_told() {
    let _turn = alone();
    assert_eq!(dump_all_threads(-1, &DumpOptions::default()), Err(CantDump::NotWritten(libc::EBADF)));
}

#[test]
fn sources_write_their_frames_and_long_stacks_are_cut() {
    let _turn = alone();
    let source = register_source(Arc::new(script::Interpreter)).unwrap();
    script::WORD.store(7, Ordering::SeqCst);
    let options = DumpOptions { calling_thread: Some(Start::Caller), frames: 2, ..DumpOptions::default() };
    let (dumped, text) = dump(&options);
    dumped.unwrap();
    script::WORD.store(0, Ordering::SeqCst);
    drop(source);
    let own = threads_in(&text).into_values().find(|lines| lines[0].contains(", which asks")).unwrap();
    assert_eq!(own[1], "  File \"a script\", line 7 in word", "{text}");
    assert!(own[3].ends_with(" more frames)") && own.len() == 4, "{text}");
    let mut word = String::new();
    write_frame(RawFrame::script(250, 5), &mut word).unwrap();
    assert_eq!(word, "script250:0x5", "a source that is not known");
}

#[test]
fn a_watchdog_dumps_once_and_again_after_a_sign_of_life() {
    let _turn = alone();
    let file = MemoryFile::new();
    let options = WatchdogOptions { timeout: Duration::from_millis(1), repeat: false, exit: false };
    let watchdog = Watchdog::start(file.fd(), options.clone()).unwrap();
    dumping::wait_for(|| watchdog.dumps() == 1);
    watchdog.reset();
    dumping::wait_for(|| watchdog.dumps() == 2);
    watchdog.cancel();
    assert!(!watchdog.is_running());
    let text = file.text();
    assert_eq!(text.matches("Stackweave: no sign of life for 1ms\n").count(), 2);
    assert!(!text.contains("stackweave-dog"), "it leaves itself out: {text}");

    let repeating = Watchdog::start(file.fd(), WatchdogOptions { repeat: true, ..options }).unwrap();
    dumping::wait_for(|| repeating.dumps() > 3);
}

#[test]
fn a_watchdog_that_waits_is_cancelled_answers_dumps_and_is_not_in_a_forked_child() {
    let _turn = alone();
    let file = MemoryFile::new();
    let options = WatchdogOptions { timeout: Duration::MAX, repeat: true, exit: true };
    let watchdog = Watchdog::start(file.fd(), options).unwrap();
    assert!(watchdog.is_running());
    // A new thread gives itself its name.
    dumping::wait_for(|| threads_in(&dump(&DumpOptions::default()).1).contains_key("stackweave-dog"));
    let (dumped, text) = dump(&DumpOptions::default());
    assert!(dumped.is_ok_and(|dumped| dumped.answered == dumped.threads), "{text}");
    assert!(threads_in(&text)["stackweave-dog"].len() > 2, "{text}");
    let is_gone = in_child(|| {
        watchdog.reset();
        watchdog.cancel();
        !watchdog.is_running()
    });
    assert!(is_gone);
    watchdog.cancel();
    assert_eq!((watchdog.dumps(), file.text()), (0, String::new()));
}

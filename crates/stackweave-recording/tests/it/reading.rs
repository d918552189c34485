//! Recorded events are read back, of every thread and process, in their order.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::ops::ControlFlow;
use std::os::unix::fs::symlink;

use stackweave_recording::file::{BlockKind, LossReason, ProcessStart, write_block};
use stackweave_recording::{ProcessRecording, Recording, TimeAxis};
use stackweave_testkit::folder::Folder;
use stackweave_testkit::random::Random;

use crate::recording_builder::{RecordingBuilder, Steps, busy, open_bytes, start, steps_of, value_of};

#[test]
fn every_event_is_read_back() {
    for seed in 0..20 {
        let built = busy(7, seed, 5, 60).end();
        let recording = open_bytes(&built.bytes).unwrap();
        let [process] = recording.processes() else { panic!("{recording:?}") };
        assert_eq!(process.start().pid, 7);
        assert_eq!(steps_of(process), built.all_steps(), "seed {seed}");
        assert_eq!(process.event_count(), built.all_steps().values().map(|steps| steps.len() as u64).sum::<u64>());
        assert_eq!((recording.report(), recording.bytes()), (vec![], built.bytes.len() as u64));
    }
}

#[test]
fn names_and_stacks_of_events_are_read_back() {
    let mut built = RecordingBuilder::new(7, 0);
    built.thread(3, "worker");
    built.note(3, 5, "load", "{\"a\": 1}");
    let recording = open_bytes(&built.end().bytes).unwrap();
    let process = &recording.processes()[0];
    let dictionary = process.dictionary();
    let mut seen = 0;
    let visited = process.visit(None, &mut |_| (), &mut |events| {
        for event in events {
            let (frame, stack) = (u32::try_from(event.words[0]).unwrap(), u32::try_from(event.words[1]).unwrap());
            assert_eq!(dictionary.kind(event.kind).unwrap().name, "instant-with");
            assert_eq!(dictionary.frames_of(stack).collect::<Vec<_>>(), [frame]);
            assert_eq!(dictionary.names(frame).len(), 1);
            seen += 1;
        }
        ControlFlow::Continue(())
    });
    assert!(visited.unwrap().is_empty());
    assert_eq!((seen, dictionary.thread(3).map(|thread| thread.name.as_str())), (1, Some("worker")));
}

#[test]
fn a_recording_without_events_is_valid() {
    let recording = open_bytes(&RecordingBuilder::new(7, 0).end().bytes).unwrap();
    let process = &recording.processes()[0];
    assert_eq!((process.event_count(), process.time_range(), recording.time_range()), (0, None, None));
    assert_eq!((steps_of(process), in_time_order(process)), (Steps::new(), vec![]));
}

#[test]
fn several_processes_in_one_file_are_distinguished() {
    let built: Vec<RecordingBuilder> = (1..=4).map(|pid| busy(pid, pid.into(), 2, 9)).collect();
    // The second was killed.
    let closed = built.into_iter().map(|builder| if builder.bytes.len() % 2 == 0 { builder } else { builder.end() });
    let built: Vec<RecordingBuilder> = closed.collect();
    let file: Vec<u8> = built.iter().flat_map(|builder| builder.bytes.clone()).collect();
    let recording = open_bytes(&file).unwrap();
    assert_eq!(recording.processes().len(), 4);
    for (process, builder) in recording.processes().iter().zip(&built) {
        assert_eq!(steps_of(process), builder.all_steps());
        assert_eq!(process.missing().is_unclosed, process.end().is_none());
    }
}

#[test]
fn a_recording_that_was_not_closed_is_reported() {
    let recording = open_bytes(&busy(7, 1, 2, 9).bytes).unwrap();
    assert_eq!(recording.report(), ["The recording was not closed: its program was killed, or still runs."]);
}

#[test]
fn blocks_after_the_end_of_a_process_belong_to_it() {
    let mut built = busy(7, 1, 2, 9).end();
    built.clock(9_999, 99_999);
    built.steps(1, &[(9_999, 1)]);
    let recording = open_bytes(&built.bytes).unwrap();
    assert_eq!(steps_of(&recording.processes()[0]), built.all_steps());
    assert_eq!(recording.report(), Vec::<String>::new());
}

#[test]
fn lost_events_are_counted_by_reason() {
    let mut built = RecordingBuilder::new(7, 0);
    built.lost(LossReason::Full, 10);
    built.lost(LossReason::Interrupted, 1);
    built.lost(LossReason::Full, 5);
    let recording = open_bytes(&built.end().bytes).unwrap();
    let process = &recording.processes()[0];
    assert_eq!(process.missing().lost, [(LossReason::Full, 15), (LossReason::Interrupted, 1)]);
    assert_eq!((process.missing().events_lost(), process.losses().len()), (16, 3));
    let report = recording.report();
    assert_eq!(report[0], "15 events were lost while recording: the buffers were full.");
    assert!(report[1].starts_with("1 event was lost while recording: "), "{report:?}");
}

#[test]
fn blocks_of_unknown_kinds_are_skipped() {
    let mut built = busy(7, 3, 2, 5);
    let section = open_bytes(&built.bytes).unwrap().processes()[0].start().payload();
    let tag = crc32fast::hash(&section);
    write_block(BlockKind::Other(200), tag, b"the content of a later version", &mut built.bytes).unwrap();
    built.steps(1, &[(9_999_999, 4)]);
    let built = built.end();
    let recording = open_bytes(&built.bytes).unwrap();
    assert_eq!(steps_of(&recording.processes()[0]), built.all_steps());
    assert_eq!(recording.report(), ["A newer Stackweave wrote 1 block of a kind that this one does not know."]);
}

#[test]
fn a_visit_can_be_stopped_and_reports_its_progress() {
    let built = busy(7, 4, 3, 50).end();
    let recording = open_bytes(&built.bytes).unwrap();
    let process = &recording.processes()[0];
    let (mut progress, mut blocks) = (vec![], 0);
    let all = process.visit(None, &mut |bytes| progress.push(bytes), &mut |_| {
        blocks += 1;
        ControlFlow::Continue(())
    });
    assert!(all.unwrap().is_empty());
    assert!(progress.is_sorted() && progress.last() == Some(&process.bytes()), "{progress:?}");
    assert_eq!(blocks + 1, progress.len());
    let mut seen = 0;
    let visit = process.visit(None, &mut |_| (), &mut |_| {
        seen += 1;
        if seen == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(visit.unwrap().is_empty());
    assert_eq!(seen, 3);
}

#[test]
fn a_time_range_skips_blocks_outside_of_it() {
    let mut built = RecordingBuilder::new(7, 0);
    for block in 0..10 {
        built.steps(1, &[(block * 100, block), (block * 100 + 50, block)]);
    }
    let recording = open_bytes(&built.end().bytes).unwrap();
    let process = &recording.processes()[0];
    assert_eq!((process.time_range(), process.last_ticks(1), process.last_ticks(2)), (Some(0..951), Some(950), None));
    for (range, expected) in
        [(150..151, 1..2), (151..200, 0..0), (120..301, 1..4), (0..0, 0..0), (900..u64::MAX, 9..10)]
    {
        let mut blocks = vec![];
        let visit = process.visit(Some(range.clone()), &mut |_| (), &mut |events| {
            blocks.push(events.first_ticks() / 100);
            ControlFlow::Continue(())
        });
        assert!(visit.unwrap().is_empty());
        assert_eq!(blocks, expected.collect::<Vec<_>>(), "{range:?}");
    }
}

/// Returns the thread, ticks and value of each event.
fn in_time_order(process: &ProcessRecording) -> Vec<(u32, u64, u64)> {
    let mut seen = vec![];
    let visit = process.visit_in_time_order(None, &mut |_| (), &mut |timed| {
        seen.push((timed.thread, timed.event.ticks, value_of(timed.process, &timed.event)));
        ControlFlow::Continue(())
    });
    assert!(visit.unwrap().is_empty());
    seen
}

#[test]
fn in_time_order_every_event_comes_once_and_the_earliest_first() {
    for seed in 0..20 {
        let built = busy(7, seed, 6, 80).end();
        let recording = open_bytes(&built.bytes).unwrap();
        let seen = in_time_order(&recording.processes()[0]);
        assert!(seen.is_sorted_by_key(|(thread, ticks, _)| (*ticks, *thread)), "seed {seed}");
        let mut steps = Steps::new();
        for (thread, ticks, value) in seen {
            steps.entry(thread).or_default().push((ticks, value));
        }
        assert_eq!(steps, built.all_steps(), "seed {seed}");
    }
}

#[test]
fn in_time_order_a_nanosecond_has_several_ticks_and_equal_ticks_the_order_of_threads() {
    let mut built = RecordingBuilder::new(7, 0);
    built.clock(0, 0);
    built.clock(3_000, 1_000);
    built.steps(2, &[(9, 1), (11, 4), (12, 5)]);
    built.steps(1, &[(10, 2), (11, 3), (13, 6)]);
    let recording = open_bytes(&built.end().bytes).unwrap();
    let values: Vec<u64> = in_time_order(&recording.processes()[0]).iter().map(|event| event.2).collect();
    assert_eq!(values, [1, 2, 3, 4, 5, 6]);
}

#[test]
fn in_time_order_a_thread_keeps_its_order_even_if_its_clock_goes_back() {
    let mut built = RecordingBuilder::new(7, 0);
    built.steps(1, &[(10, 0), (30, 1), (20, 2), (40, 3)]);
    built.steps(1, &[(35, 4), (5, 5), (60, 6)]);
    built.steps(2, &[(25, 7), (50, 8)]);
    // The second block of the first thread begins before its first: it follows when that is complete.
    built.steps(3, &[(70, 9), (1, 10)]);
    let recording = open_bytes(&built.end().bytes).unwrap();
    let values: Vec<u64> = in_time_order(&recording.processes()[0]).iter().map(|event| event.2).collect();
    assert_eq!(values, [0, 7, 1, 2, 3, 4, 5, 8, 6, 9, 10]);
}

#[test]
fn in_time_order_a_range_and_threads_are_exact() {
    let built = busy(7, 5, 4, 60).end();
    let recording = open_bytes(&built.bytes).unwrap();
    let process = &recording.processes()[0];
    let all = in_time_order(process);
    let mut random = Random::new(6);
    for _ in 0..30 {
        let (a, b) = (random.below(20_000) as u64, random.below(20_000) as u64);
        let range = a.min(b)..a.max(b);
        let threads = [1 + u32::from(random.byte_below(4)), 1 + u32::from(random.byte_below(4))];
        let mut order = process.in_time_order(Some(range.clone()), Some(&threads));
        let mut seen = vec![];
        while let Some(timed) = order.next_event().unwrap() {
            assert_eq!(u64::try_from(timed.time_ns).unwrap(), timed.event.ticks);
            seen.push((timed.thread, timed.event.ticks, value_of(timed.process, &timed.event)));
        }
        let wanted = |event: &&(u32, u64, u64)| threads.contains(&event.0) && range.contains(&event.1);
        let mut expected: Vec<_> = all.iter().filter(wanted).copied().collect();
        // Threads may alternate at the same time.
        expected.sort_by_key(|event| (event.1, event.0));
        seen.sort_by_key(|event| (event.1, event.0));
        assert_eq!(seen, expected, "{range:?} {threads:?}");
    }
}

/// Returns the times and process ids of all events of all processes.
fn of_all_processes(recording: &Recording) -> Vec<(i64, u32)> {
    let mut seen = vec![];
    let visit = recording.visit_in_time_order(None, &mut |_| (), &mut |timed| {
        seen.push((timed.time_ns, timed.process.start().pid));
        ControlFlow::Continue(())
    });
    assert!(visit.unwrap().is_empty());
    seen
}

#[test]
fn processes_of_one_boot_share_the_monotonic_clock() {
    let mut file = vec![];
    for (pid, started_ns) in [(1, 1_000), (2, 1_500)] {
        // A wall clock that was set back in between has no effect.
        let start = ProcessStart {
            started_wall_ns: 9_000 - i64::from(pid) * 4_000,
            started_monotonic_ns: started_ns,
            ..start(pid)
        };
        let mut built = RecordingBuilder::of(&start);
        built.steps(1, &[(0, 0), (700, 1)]);
        file.extend(built.end().bytes);
    }
    let recording = open_bytes(&file).unwrap();
    assert_eq!((recording.time_axis(), recording.time_range()), (TimeAxis::Monotonic, Some(1_000..2_201)));
    assert_eq!(of_all_processes(&recording), [(1_000, 1), (1_500, 2), (1_700, 1), (2_200, 2)]);
}

#[test]
fn processes_of_several_machines_share_the_wall_clock() {
    let mut file = vec![];
    for (pid, started_wall_ns, monotonic_ns) in [(1, 5_000, 77), (2, 5_200, 4)] {
        let start = ProcessStart { started_wall_ns, boot_id: format!("boot {pid}"), ..start(pid) };
        let mut built = RecordingBuilder::of(&ProcessStart { started_monotonic_ns: monotonic_ns, ..start });
        built.steps(1, &[(0, 0), (300, 1)]);
        file.extend(built.end().bytes);
    }
    let recording = open_bytes(&file).unwrap();
    assert_eq!(recording.time_axis(), TimeAxis::Wall);
    assert_eq!(of_all_processes(&recording), [(5_000, 1), (5_200, 2), (5_300, 1), (5_500, 2)]);
}

#[test]
fn clock_points_determine_the_times_of_ticks() {
    let mut built = RecordingBuilder::new(7, 1_000);
    built.clock(0, 1_000);
    built.steps(1, &[(300, 0)]);
    built.clock(3_000, 2_000);
    let recording = open_bytes(&built.end().bytes).unwrap();
    assert_eq!(recording.processes()[0].time_range(), Some(100..101));
    assert_eq!(recording.time_range(), Some(1_100..1_101));
}

#[test]
fn a_growing_file_is_read_as_far_as_it_is_complete() {
    let built = busy(7, 8, 3, 40).end();
    let folder = Folder::new();
    let path = folder.write("growing.swv", &[]);
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    let mut written = 0;
    let mut random = Random::new(9);
    let mut earlier: Vec<(Recording, Steps)> = vec![];
    while written < built.bytes.len() {
        let len = (1 + random.below(400)).min(built.bytes.len() - written);
        file.write_all(&built.bytes[written..written + len]).unwrap();
        written += len;
        if let Ok(recording) = Recording::open(&path) {
            let expected = built.steps_where(|block| block.end <= written);
            earlier.push((recording, expected));
        }
    }
    // A recording shows what existed when it was opened, whatever was added since.
    assert!(earlier.len() > 10);
    for (recording, expected) in &earlier {
        assert_eq!(steps_of(&recording.processes()[0]), *expected);
    }
    let (last, _) = earlier.last().unwrap();
    assert!(last.report().is_empty());
}

#[test]
fn a_file_that_is_truncated_after_opening_loses_events_and_nothing_else() {
    let built = busy(7, 10, 2, 30).end();
    let folder = Folder::new();
    let path = folder.write("cut.swv", &built.bytes);
    let recording = Recording::open(&path).unwrap();
    let half = built.bytes.len() / 2;
    File::options().write(true).open(&path).unwrap().set_len(half as u64).unwrap();
    let (steps, missing) = crate::recording_builder::visited(&recording.processes()[0]);
    assert_eq!(steps, built.steps_where(|block| block.end <= half));
    assert!(!missing.damaged.is_empty());
    assert!(missing.to_string().starts_with("The file is damaged: "), "{missing}");
}

#[test]
fn a_folder_contains_all_recordings_in_it() {
    let folder = Folder::new();
    let mut expected = BTreeMap::new();
    // More files than are kept open.
    for pid in 1..=300 {
        let built = busy(pid, pid.into(), 1, 2).end();
        let name = if pid % 3 == 0 { format!("sub/below/{pid:03}.swv") } else { format!("{pid:03}.swv") };
        folder.write(&name, &built.bytes);
        expected.insert(pid, built.all_steps());
    }
    folder.write("notes.txt", b"no recording, and without the suffix of one");
    let recording = Recording::open(folder.path()).unwrap();
    assert_eq!(recording.report(), Vec::<String>::new());
    assert!(recording.processes().is_sorted_by_key(|process| process.path().to_owned()));
    let found: BTreeMap<u32, Steps> =
        recording.processes().iter().map(|process| (process.start().pid, steps_of(process))).collect();
    assert_eq!(found, expected);
    let events: usize = expected.values().flat_map(BTreeMap::values).map(Vec::len).sum();
    let seen = of_all_processes(&recording);
    assert!(seen.len() == events && seen.is_sorted_by_key(|(time, _)| *time));
}

#[test]
fn a_file_in_a_folder_that_is_no_recording_is_ignored_and_reported() {
    let folder = Folder::new();
    let built = busy(7, 1, 1, 2).end();
    folder.write("good.swv", &built.bytes);
    let bad = folder.write("bad.swv", b"hello");
    let gone = folder.path().join("gone.swv");
    symlink(folder.path().join("nowhere"), &gone).unwrap();
    symlink(folder.path(), folder.path().join("circle.swv")).unwrap();
    let recording = Recording::open(folder.path()).unwrap();
    assert_eq!(recording.processes().len(), 1);
    let sentences = [
        format!("Ignored: {}: this is no recording of Stackweave: it looks like text.", bad.display()),
        format!("Ignored: {}: there is no such file or folder.", gone.display()),
    ];
    assert_eq!(recording.report(), sentences);
}

#[test]
fn a_process_in_two_files_is_read_once() {
    let (built, other) = (busy(7, 1, 3, 20).end(), busy(8, 2, 1, 5).end());
    let folder = Folder::new();
    let cut = built.blocks[12].0.end;
    folder.write("a-cut.swv", &built.bytes[..cut]);
    let all = folder.write("b-all.swv", &[&built.bytes[..], &other.bytes].concat());
    let again = folder.write("c-again.swv", &built.bytes);
    let recording = Recording::open(folder.path()).unwrap();
    let [first, second] = recording.processes() else { panic!("{recording:?}") };
    assert_eq!((steps_of(first), steps_of(second)), (built.all_steps(), other.all_steps()));
    assert_eq!((first.path(), second.path()), (&*all, &*all));
    let sentence =
        format!("{} contains process 7, which {} contains, too: it is read once.", again.display(), all.display());
    assert_eq!((recording.report().len(), &recording.report()[1]), (2, &sentence));
}

#[test]
fn of_two_recordings_with_the_same_events_the_closed_one_is_read() {
    let built = busy(7, 1, 3, 20);
    let folder = Folder::new();
    folder.write("a-killed.swv", &built.bytes);
    let closed = folder.write("b-closed.swv", &built.end().bytes);
    let recording = Recording::open(folder.path()).unwrap();
    let [process] = recording.processes() else { panic!("{recording:?}") };
    assert_eq!((process.path(), process.missing().is_unclosed), (&*closed, false));
}

#[test]
fn a_file_that_is_rewritten_after_opening_returns_no_events_of_the_new_recording() {
    let with = |steps: &[(u64, u64)]| {
        let mut built = RecordingBuilder::new(7, 0);
        built.steps(1, steps);
        built.end().bytes
    };
    let folder = Folder::new();
    let path = folder.write("a.swv", &with(&[(1, 1), (2, 2)]));
    let recording = Recording::open(&path).unwrap();
    // The same file, with a longer block at the same offset.
    folder.write("a.swv", &with(&[(1, 3), (2, 4), (3, 5)]));
    let (steps, missing) = crate::recording_builder::visited(&recording.processes()[0]);
    assert_eq!((steps, missing.damaged.count()), (Steps::new(), 1));
}

#[test]
fn two_dumps_of_one_process_are_both_read() {
    let dump = |ticks: u64| {
        let mut built = RecordingBuilder::new(7, 0);
        built.steps(1, &[(ticks, ticks)]);
        built.end().bytes
    };
    let folder = Folder::new();
    let first = folder.write("1.swv", &dump(1));
    let second = folder.write("2.swv", &dump(2));
    let recording = Recording::open(folder.path()).unwrap();
    assert_eq!(recording.processes().len(), 2);
    let names = format!("{} and {}", first.display(), second.display());
    let sentence = format!("{names} both contain process 7, each with different events: events in both count twice.");
    assert_eq!(recording.report(), [sentence]);
}

#[test]
fn recordings_can_be_read_by_many_threads() {
    let built = busy(7, 1, 3, 40).end();
    let recording = open_bytes(&built.bytes).unwrap();
    let process = &recording.processes()[0];
    let order = process.in_time_order(None, None);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| assert_eq!(steps_of(process), built.all_steps()));
        }
        scope.spawn(move || {
            let mut order = order;
            assert!(order.next_event().unwrap().is_some());
        });
    });
}

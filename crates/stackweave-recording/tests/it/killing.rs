//! A process that is killed at any moment leaves a readable recording, up to the last flush.
//!
//! `STACKWEAVE_KILLS` sets the number of killed processes.

use std::fs;
use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use stackweave_recording::{Missing, RecorderOptions, Recording};
use stackweave_store::label;
use stackweave_testkit::folder::Folder;
use stackweave_testkit::random::Random;
use stackweave_testkit::{child, scale};

use crate::recorded::{ReadBack, mark, start};

const NAME: &str = "killing::a_killed_process_leaves_complete_events_in_order";
const THREADS: u64 = 3;

/// Returns the value of an event: distinct values, so that no event can be mistaken for another.
fn value(producer: u64, index: u64) -> u64 {
    Random::new(producer << 32 ^ index).bits()
}

/// Records until it is killed, on several threads, some of which end, with a new name now and then.
fn record_for_ever(path: &Path, round: usize) -> ! {
    let flush_every = Duration::from_micros(100 + (round as u64 * 37) % 1_000);
    let recorder = start(RecorderOptions { flush_every, memory: 256 * 1024, ..RecorderOptions::new(path) });
    let mark = mark(&recorder);
    let work = |producer: u64, count: u64| {
        for index in 0..count {
            recorder.record(mark, &[producer, value(producer, index)]);
            if index % 64 == 0 {
                let name = label("step", "killed.rs", u32::try_from(index).unwrap()).unwrap();
                recorder.instant_with(name, None, b"{}");
            }
        }
    };
    thread::scope(|scope| {
        for producer in 1..THREADS {
            scope.spawn(move || work(producer, u64::MAX));
        }
        for producer in THREADS.. {
            thread::scope(|inner| drop(inner.spawn(move || work(producer, 500))));
        }
    });
    unreachable!("it records until it is killed")
}

/// Forks children from a small process, one after another, and kills each after a short time.
fn kill_children(folder: &Path, kills: usize, seed: u64) {
    let mut random = Random::new(seed);
    for round in 0..kills {
        let path = folder.join(format!("{round}.swv"));
        // SAFETY: this process has one thread, so the child is unrestricted.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            record_for_ever(&path, round);
        }
        // A third of them while they start, a third once there is a file, a third once it has events.
        let max_sleep = match random.below(3) {
            0 => 2_000,
            phase => {
                let start = grown(&path, 0);
                if phase == 2 {
                    // Longer than the definitions before the first events.
                    grown(&path, start + 8 * 1024);
                }
                6_000
            }
        };
        thread::sleep(Duration::from_micros(random.below(max_sleep) as u64));
        let mut status = 0;
        // SAFETY: a child of this process, and a valid pointer to its status.
        unsafe {
            libc::kill(pid, libc::SIGKILL);
            assert_eq!(libc::waitpid(pid, &raw mut status, 0), pid);
        }
        assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGKILL, "round {round}: {status:#x}");
        check(&path, round);
    }
}

/// Waits until the file is longer than `length`, and returns its length.
fn grown(path: &Path, length: u64) -> u64 {
    loop {
        match fs::metadata(path) {
            Ok(file) if file.len() > length => return file.len(),
            _ => thread::sleep(Duration::from_micros(50)),
        }
    }
}

/// Checks that the content of the file is right, and in order from the beginning. Removes the file.
fn check(path: &Path, round: usize) {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return println!("found none"),
        Err(error) => panic!("round {round}: {error}"),
    };
    let opened = Recording::open(path).unwrap();
    fs::remove_file(path).unwrap();
    let read = ReadBack::bytes(&bytes);
    let [process] = opened.processes() else { panic!("round {round}: one process") };
    let missing = Missing { is_unclosed: true, cut_bytes: read.torn as u64, ..Missing::default() };
    assert_eq!((process.missing(), process.event_count()), (&missing, read.count()), "round {round}");
    assert!(read.end.is_none() && read.lost.is_empty(), "round {round}");
    for (producer, values) in read.marks() {
        for (index, found) in values.into_iter().enumerate() {
            assert_eq!(found, value(producer, index as u64), "round {round}: event {index} of {producer}");
        }
    }
    for events in read.events.values() {
        for event in events.iter().filter(|event| event.kind == "instant-with") {
            let number = u32::try_from(event.words[0]).unwrap();
            assert!(!read.dictionary.names(number).is_empty(), "round {round}: a frame without a name");
        }
    }
    println!("found {} {} {}", read.count(), bytes.len(), read.torn);
}

#[test]
fn a_killed_process_leaves_complete_events_in_order() {
    let kills = std::env::var("STACKWEAVE_KILLS").map_or_else(|_| scale(200, 2_000), |kills| kills.parse().unwrap());
    let seed = std::env::var("STACKWEAVE_SEED").map_or(6, |seed| seed.parse().unwrap());
    if let Some(folder) = child::role() {
        return kill_children(Path::new(&folder), kills, seed);
    }
    let folder = Folder::new();
    let mut command = child::command(&child::own_executable(), NAME, folder.path().to_str().unwrap());
    let output = child::run_for(&mut command, 3_600);
    assert!(output.status.success(), "seed {seed}: {}", child::text(&output));
    let text = String::from_utf8_lossy(&output.stdout);
    let counts: Vec<[u64; 3]> = text.lines().filter_map(numbers).collect();
    let with_events = counts.iter().filter(|[events, ..]| *events > 0).count();
    let torn = counts.iter().filter(|[.., torn]| *torn > 0).count();
    let events: u64 = counts.iter().map(|[events, ..]| events).sum();
    let without = text.lines().filter(|line| line.ends_with("found none")).count();
    println!(
        "{kills} killed: {without} before there was a file, {with_events} with events, {torn} truncated, {events} events"
    );
    assert_eq!(counts.len() + without, kills);
    assert!(with_events > kills / 5, "{with_events} of {kills} had recorded events");
}

fn numbers(line: &str) -> Option<[u64; 3]> {
    let mut words = line.split_once("found ")?.1.split(' ').map(str::parse);
    let three = [words.next()?.ok()?, words.next()?.ok()?, words.next()?.ok()?];
    words.next().is_none().then_some(three)
}

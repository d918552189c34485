//! Processes that are killed at any moment leave recordings that can be read, up to the last flush.
//!
//! `STACKWEAVE_KILLS` sets how many are killed.

use std::fs;
use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use stackweave_recording::{Missing, Options, Recording};
use stackweave_store::label;
use stackweave_testkit::folder::Folder;
use stackweave_testkit::random::Random;
use stackweave_testkit::{child, scale};

use crate::recorded::{Read, mark, start};

const NAME: &str = "killing::a_killed_process_leaves_whole_events_in_order";
const THREADS: u64 = 3;

/// What thread `who` records as its event `which`: different each time, so that no event can pass for another.
fn value(who: u64, which: u64) -> u64 {
    Random::new(who << 32 ^ which).bits()
}

/// Records until it is killed, from some threads, of which some end, with a name that is new now and then.
fn record_for_ever(path: &Path, round: usize) -> ! {
    let flush_every = Duration::from_micros(100 + (round as u64 * 37) % 1_000);
    let recorder = start(Options { flush_every, memory: 256 * 1024, ..Options::new(path) });
    let mark = mark(&recorder);
    let work = |who: u64, most: u64| {
        for which in 0..most {
            recorder.record(mark, &[who, value(who, which)]);
            if which % 64 == 0 {
                let name = label("step", "killed.rs", u32::try_from(which).unwrap()).unwrap();
                recorder.instant_with(name, None, b"{}");
            }
        }
    };
    thread::scope(|scope| {
        for who in 1..THREADS {
            scope.spawn(move || work(who, u64::MAX));
        }
        for who in THREADS.. {
            thread::scope(|inner| drop(inner.spawn(move || work(who, 500))));
        }
    });
    unreachable!("it records until it is killed")
}

/// Forks children from a small process, one after the other, and kills each after a moment.
fn kill_children(folder: &Path, kills: usize, seed: u64) {
    let mut random = Random::new(seed);
    for round in 0..kills {
        let path = folder.join(format!("{round}.swv"));
        // SAFETY: this process has one thread, so the child can do everything.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            record_for_ever(&path, round);
        }
        // A third of them while they begin, a third once there is a file, a third once it has events.
        let most = match random.below(3) {
            0 => 2_000,
            wanted => {
                let start = grown(&path, 0);
                if wanted == 2 {
                    // Longer than the definitions that come before the first events.
                    grown(&path, start + 8 * 1024);
                }
                6_000
            }
        };
        thread::sleep(Duration::from_micros(random.below(most) as u64));
        let mut status = 0;
        // SAFETY: a child of this process, and a place for its status.
        unsafe {
            libc::kill(pid, libc::SIGKILL);
            assert_eq!(libc::waitpid(pid, &raw mut status, 0), pid);
        }
        assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGKILL, "round {round}: {status:#x}");
        check(&path, round);
    }
}

/// Waits until the file is longer than that, and says how long it is.
fn grown(path: &Path, length: u64) -> u64 {
    loop {
        match fs::metadata(path) {
            Ok(file) if file.len() > length => return file.len(),
            _ => thread::sleep(Duration::from_micros(50)),
        }
    }
}

/// What is in the file is right, and in order from the beginning. Adds nothing to the disk.
fn check(path: &Path, round: usize) {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return println!("found none"),
        Err(error) => panic!("round {round}: {error}"),
    };
    let opened = Recording::open(path).unwrap();
    fs::remove_file(path).unwrap();
    let read = Read::bytes(&bytes);
    let [process] = opened.processes() else { panic!("round {round}: one process") };
    let missing = Missing { is_unclosed: true, cut_bytes: read.torn as u64, ..Missing::default() };
    assert_eq!((process.missing(), process.event_count()), (&missing, read.count()), "round {round}");
    assert!(read.end.is_none() && read.lost.is_empty(), "round {round}");
    for (who, values) in read.marks() {
        for (which, found) in values.into_iter().enumerate() {
            assert_eq!(found, value(who, which as u64), "round {round}: event {which} of {who}");
        }
    }
    for events in read.events.values() {
        for event in events.iter().filter(|event| event.kind == "instant-with") {
            let number = u32::try_from(event.words[0]).unwrap();
            assert!(!read.dictionary.names(number).is_empty(), "round {round}: every frame has its name");
        }
    }
    println!("found {} {} {}", read.count(), bytes.len(), read.torn);
}

#[test]
fn a_killed_process_leaves_whole_events_in_order() {
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
        "{kills} killed: {without} before there was a file, {with_events} with events, {torn} torn, {events} events"
    );
    assert_eq!(counts.len() + without, kills);
    assert!(with_events > kills / 5, "{with_events} of {kills} had come to record");
}

fn numbers(line: &str) -> Option<[u64; 3]> {
    let mut words = line.split_once("found ")?.1.split(' ').map(str::parse);
    let three = [words.next()?.ok()?, words.next()?.ok()?, words.next()?.ok()?];
    words.next().is_none().then_some(three)
}

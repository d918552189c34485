//! Valid recordings with extreme numbers end each command with one sentence at most: no crash, no hang, and no memory
//! out of proportion to the file.

use std::env;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use stackweave_testkit::folder::Folder;
use stackweave_testkit::hostile_recording::hostile_recording;
use stackweave_testkit::scale;

/// The number of recordings that one process reads.
const TOGETHER: u64 = 10;
/// The address space of a process: most of it is mapped by the test program itself.
const KILOBYTES: &str = "1500000";
const SECONDS: &str = "300";
/// The variable with the first seed for a child process.
const FIRST: &str = "STACKWEAVE_WILD_FIRST";

const COMMANDS: &[&str] = &[
    "info x.swv",
    "info x.swv --json",
    "top x.swv -n 1000",
    "top x.swv --json",
    "top x.swv --measure live",
    "top x.swv --start 1us --measure peak",
    "tree x.swv --all",
    "tree x.swv --json",
    "heap x.swv",
    "heap x.swv --json",
    "phases x.swv",
    "phases x.swv --json",
    "flame x.swv",
    "diff x.swv y.swv",
    "diff x.swv y.swv --fail-above 5",
    "report x.swv -o x.html",
    "report x.swv --before y.swv -o d.html",
    "merge x.swv y.swv -o merged.swv",
    "export x.swv -o x.prof",
    "export x.swv -o x.json",
    "export x.swv -o x.pftrace",
    "export x.swv -o x.speedscope.json",
    "export x.swv -o x.pb.gz",
    "export x.swv -o x.folded",
    "export x.swv -o x.svg",
    "export x.swv -o t.svg --time-order",
    "export x.swv -o x.callgraph.svg",
    "export x.swv -o x.memory.svg",
    "export x.swv -o x.dot",
    "export x.swv -o x.firefox.json",
    "export x.swv -o x.jsonl",
    "export x.swv -o x.csv",
    "export x.swv -o x.pickle",
    "export x.swv -o x.parquet",
];

/// Runs a test of this program in a child process, with limits of memory and time.
fn limited(first: u64) -> Output {
    let script = format!("ulimit -v {KILOBYTES}; exec timeout -k 5 {SECONDS} \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script, "sh"]).arg(env::current_exe().unwrap());
    command
        .args(["--exact", "wild_recordings::run_commands_on_some_recordings", "--nocapture", "--include-ignored"])
        .env(FIRST, first.to_string());
    command.env("RUST_BACKTRACE", "0").stdin(Stdio::null()).stdout(Stdio::null()).output().unwrap()
}

/// Runs all commands on some recordings, and prints its progress. Runs in the child.
#[test]
#[ignore = "run by the test below, in a process of its own"]
fn run_commands_on_some_recordings() {
    let first: u64 = env::var(FIRST).unwrap().parse().unwrap();
    for seed in first..first + TOGETHER {
        let folder = Folder::new();
        folder.write("x.swv", &hostile_recording(seed));
        folder.write("y.swv", &hostile_recording(seed ^ 1));
        env::set_current_dir(folder.path()).unwrap();
        for words in COMMANDS {
            eprintln!("AT seed {seed}: {words}");
            let arguments = ["stackweave"].into_iter().chain(words.split(' ')).map(Into::into);
            let done = std::panic::catch_unwind(|| stackweave_cli::run(arguments));
            if !matches!(done, Ok(0 | 1 | 3)) {
                eprintln!("FAULT {done:?} of seed {seed}: {words}");
            }
        }
        env::set_current_dir("/").unwrap();
    }
    eprintln!("ALL DONE");
}

/// Returns the faults of a child: one line for each command that did not fail with a sentence.
fn faults(output: &Output) -> Vec<String> {
    let error = String::from_utf8_lossy(&output.stderr);
    let is_fault = |line: &&str| line.contains("panicked at") || line.starts_with("FAULT");
    let mut faults: Vec<String> = error.lines().filter(is_fault).map(str::to_owned).collect();
    if !error.contains("ALL DONE") {
        let last = error.lines().rfind(|line| line.starts_with("AT ")).unwrap_or("at the beginning");
        faults.push(format!("{} {last}: {}", output.status, error.lines().last().unwrap_or_default()));
    }
    faults
}

#[test]
fn every_command_fails_with_a_sentence_at_most() {
    // More with `STACKWEAVE_WILD=3000`.
    let recordings =
        env::var("STACKWEAVE_WILD").ok().and_then(|text| text.parse().ok()).unwrap_or_else(|| scale(60, 240));
    let next = AtomicU64::new(0);
    let work = || {
        let mut found = Vec::new();
        loop {
            let first = next.fetch_add(TOGETHER, Ordering::Relaxed);
            if first >= recordings {
                return found;
            }
            found.extend(faults(&limited(first)));
        }
    };
    let found: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert!(found.is_empty(), "{} faults:\n{}", found.len(), found.join("\n"));
}

#[test]
fn the_recordings_are_read() {
    let is_read = |seed: &u64| {
        let folder = Folder::new();
        let path = folder.write("x.swv", &hostile_recording(*seed));
        let recording = stackweave_recording::Recording::open(&path).unwrap();
        let of_process = |process: &stackweave_recording::ProcessRecording| {
            process.dictionary().frame_count() > 1 && process.dictionary().kinds().count() > 30
        };
        recording.event_count() > 0 && recording.processes().iter().all(of_process)
    };
    let read = (0..50).filter(is_read).count();
    assert!(read > 40, "of 50, only {read} have definitions and events");
}

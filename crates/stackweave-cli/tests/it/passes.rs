//! The number of times that each command reads the events of a recording.
//!
//! The kernel counts the bytes that a thread reads. A recording here is so large that what else a command reads does not
//! matter, and its recorder's own thread so small that it does not count as a pass, but is seen in the rest.

use std::path::Path;

use stackweave_export::Format;
use stackweave_heap::LedgerOptions;
use stackweave_recording::Recording;
use stackweave_recording::events::{self, Allocator};
use stackweave_recording::file::ProcessStart;
use stackweave_tapes::memory::{MemoryStep, MemoryTape, RECORDER, header};
use stackweave_tapes::{span, with_bytes};
use stackweave_testkit::child::in_own_process;

const ROUNDS: u64 = 20_000;

/// A part of a recording.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Calls,
    Runs,
    Samples,
    Memory,
    Device,
    /// It has no end, and no snapshot of its memory.
    Killed,
}

/// The recordings, with the names of their columns.
const RECORDINGS: [(&str, &[Part]); 7] = [
    ("calls", &[Part::Calls]),
    ("runs", &[Part::Calls, Part::Runs]),
    ("samples", &[Part::Samples]),
    ("memory", &[Part::Memory]),
    ("both", &[Part::Calls, Part::Memory]),
    ("device", &[Part::Calls, Part::Memory, Part::Device]),
    ("killed", &[Part::Calls, Part::Memory, Part::Killed]),
];

/// Returns a number that does not compress.
fn noise(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40
}

fn bytes(parts: &[Part]) -> Vec<u8> {
    let has = |part: Part| parts.contains(&part);
    let options = [("recorder", "memory"), ("memory.mode", "history"), ("calls", "1")];
    let start = match (has(Part::Memory), has(Part::Calls)) {
        (false, _) => ProcessStart { pid: 7, ..ProcessStart::default() },
        (true, false) => header(&options[..2]),
        (true, true) => header(&options),
    };
    let mut tape = MemoryTape::with(&start, LedgerOptions::default());
    tape.tape.kind(&events::DEMOTED);
    tape.tape.thread(1, 8, "MainThread");
    for round in 0..ROUNDS {
        add_round(&mut tape, round, has);
        if round.is_multiple_of(1_000) {
            tape.tape.flush(1);
        }
    }
    if has(Part::Killed) {
        return tape.tape.unended_bytes();
    }
    if has(Part::Memory) {
        tape.snapshot(1, false);
    }
    tape.tape.bytes()
}

fn add_round(tape: &mut MemoryTape, round: u64, has: impl Fn(Part) -> bool) {
    let at = round * 2_000 + noise(round) % 1_000;
    let address = |number: u64| 0x1000 + noise(number) % 4096 * 16;
    let name = span(["load", "step", "save"][usize::try_from(round % 3).unwrap()]);
    if has(Part::Runs) && round.is_multiple_of(1_000) {
        tape.tape.event((1, at), &events::BEGIN_RUN, &with_bytes(&[name.to_bits()], "{}"));
    } else if has(Part::Calls) {
        tape.tape.begin((1, at), name);
    }
    if has(Part::Samples) {
        tape.tape.sample((1, at), &[name, span("main")], 1);
    }
    if has(Part::Memory) {
        let (address, free, size) = (address(round), address(round + 3), 1 + noise(round + 7) % 4096);
        let stack = vec![name, span("main")];
        tape.step(1, at + 1, &MemoryStep::Allocate { address, size, stack: stack.clone(), by: Allocator::Malloc });
        if has(Part::Device) {
            tape.step(1, at + 2, &MemoryStep::HostAllocate { device: 0, address, size, stack });
        }
        tape.step(1, at + 3, &MemoryStep::Free { address: free });
        if round.is_multiple_of(20) {
            let value = |number: u64| f64::from_bits(1 << 60 | noise(number));
            tape.curve(at, value(round), value(round + 1));
        }
    }
    if has(Part::Calls) {
        tape.tape.end((1, at + 900 + noise(round) % 90));
    }
}

/// Returns how many bytes this thread reads in `work`.
fn read_by(work: impl FnOnce()) -> u64 {
    let read = || {
        let counts = std::fs::read_to_string("/proc/thread-self/io").unwrap();
        let line = counts.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap();
        line.parse::<u64>().unwrap()
    };
    let before = read();
    work();
    read() - before
}

/// The bytes of a recording that are read for its index, for one pass over all events, and for those of the recorder.
struct Costs {
    index: u64,
    pass: u64,
    own: u64,
}

impl Costs {
    fn of(path: &Path) -> Self {
        let mut recording = None;
        let index = read_by(|| recording = Some(Recording::open(path).unwrap()));
        let recording = recording.unwrap();
        let process = &recording.processes()[0];
        let go_on = |_: &_| std::ops::ControlFlow::Continue(());
        let pass = read_by(|| drop(process.visit(None, &mut |_| {}, &mut { go_on }).unwrap()));
        let own = read_by(|| {
            let mut order = process.in_time_order(None, Some(&[RECORDER]));
            while order.next_event().unwrap().is_some() {}
        });
        // The rest is the reading of the counts.
        let own = if own < 500 { 0 } else { own };
        assert!(pass > 18_000 && own < pass / 6 && (own == 0 || own > pass / 60), "{pass} and {own} bytes");
        Self { index, pass, own }
    }

    /// Returns the passes of a command that opens so many files, and how often it read the events of the recorder only.
    fn passes(&self, read: u64, files: usize) -> String {
        let read = read.saturating_sub(self.index * files as u64);
        let passes = (read + self.pass / 20) / self.pass;
        let rest = read.saturating_sub(passes * self.pass);
        match (rest + self.own / 2).checked_div(self.own) {
            None | Some(0) => passes.to_string(),
            Some(own) => format!("{passes}+{own}"),
        }
    }
}

/// Returns the arguments of all commands that read events.
fn commands(file: &str, output: &str) -> Vec<Vec<String>> {
    let word = |word: &str| word.replace("FILE", file).replace("OUT", output);
    let words = |line: &str| line.split(' ').map(word).collect::<Vec<String>>();
    let mut all: Vec<Vec<String>> = [
        "info FILE",
        "top FILE",
        "tree FILE",
        "flame FILE",
        "diff FILE FILE",
        "phases FILE",
        "heap FILE",
        "top --measure live FILE",
        "report FILE -o OUT.html",
        "report --start 1ms FILE -o OUT.html",
    ]
    .map(words)
    .into();
    // Speedscope and Firefox read back what they have written to temporary files.
    let left_out = [Format::Report, Format::Speedscope, Format::Firefox];
    let formats = Format::all().filter(|format| !left_out.contains(format));
    all.extend(formats.map(|format| words(&format!("export --format {format} FILE -o OUT.{format}"))));
    all
}

/// Returns the name of the row of a command.
fn row_name(command: &[String]) -> String {
    let named: Vec<&str> = command.iter().map(String::as_str).filter(|word| !word.contains('/')).collect();
    named.join(" ").trim_end_matches(" -o").to_owned()
}

/// Returns the columns of the table, each with its heading and the rows.
fn columns(folder: &Path) -> Vec<Vec<String>> {
    let mut columns = Vec::new();
    for (name, parts) in RECORDINGS {
        let path = folder.join(format!("{name}.swv"));
        std::fs::write(&path, bytes(parts)).unwrap();
        let costs = Costs::of(&path);
        let all = commands(path.to_str().unwrap(), folder.join(name).to_str().unwrap());
        if columns.is_empty() {
            columns.push([String::new()].into_iter().chain(all.iter().map(|command| row_name(command))).collect());
        }
        let cell = |command: &Vec<String>| {
            let files = command.iter().filter(|word| Path::new(word) == path).count();
            let mut status = 0;
            let words = ["stackweave"].into_iter().chain(command.iter().map(String::as_str));
            let read = read_by(|| status = stackweave_cli::run(words.map(Into::into)));
            if status == 0 { costs.passes(read, files) } else { "-".to_owned() }
        };
        columns.push([name.to_owned()].into_iter().chain(all.iter().map(cell)).collect());
    }
    columns
}

fn table(folder: &Path) -> String {
    let columns = columns(folder);
    let line = |row: usize| {
        let cells: Vec<String> = columns[1..].iter().map(|column| format!("{:>8}", column[row])).collect();
        format!("{:<30}{}", columns[0][row], cells.concat())
    };
    (0..columns[0].len()).map(line).collect::<Vec<String>>().join("\n")
}

/// The passes of each command. `1+2` are one pass, and two readings of the recorder's own events; `-` is a failure, as
/// the recording has nothing that the command shows.
const EXPECTED: &str = "
                                 calls    runs samples  memory    both  device  killed
info                                 1       1       1     1+1     1+1     1+1     1+1
top                                  1       1       1     0+1       1       1       1
tree                                 1       1       1     0+1       1       1       1
flame                                1       1       1     0+1       1       1       1
diff                                 2       2       2     0+2       2       2       2
phases                               2       2       -       -       2       2       2
heap                                 -       -       -     0+1     0+1     1+1     1+1
top --measure live                   -       -       -     0+1     0+1     0+1     1+1
report                               1       1       2     2+1     2+1     2+1     2+1
report --start 1ms                   1       1       2     2+1     2+1     2+1     2+1
export --format memory-curve         -       -       -       1       1       1       1
export --format callgraph            1       1       1     0+1       1       1       1
export --format pstats               1       1       1     0+1       1       1       1
export --format chrome               1       1       1       1       1       1       1
export --format perfetto             1       1       1       1       1       1       1
export --format pprof                1       1       1     1+1     1+1     1+1     1+1
export --format folded               1       1       1     0+1       1       1       1
export --format flamegraph           1       1       1     0+1       1       1       1
export --format dot                  1       1       1     0+1       1       1       1
export --format json                 1       1       1       1       1       1       1
export --format allocations          -       -       -     0+1     0+1     0+1     1+1
export --format pytorch              -       -       -       2       3       4       3
export --format parquet              1       1       1       1       1       1       1
";

#[test]
fn every_command_reads_the_events_as_often_as_the_table_says() {
    in_own_process("passes::every_command_reads_the_events_as_often_as_the_table_says", |folder| {
        let found = table(folder);
        assert!(found.trim() == EXPECTED.trim(), "\n{found}\n");
    });
}

//! Recordings with known trees.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use stackweave_core::{BuildId, Module, RawFrame};
use stackweave_recording::file::ProcessStart;
use stackweave_tapes::{NativeName, Tape, native, span};
use stackweave_testkit::random::Random;

pub const MAIN_THREAD: u32 = 1;
pub const WORKER: u32 = 2;
pub const PID: u32 = 4242;
pub const WORKER_TID: u32 = 4243;
/// The start of the example, in nanoseconds since 1970.
pub const STARTED_NS: i64 = 1_700_000_000_123_456_789;
/// A return address in `libkernel.so`, where `inner` is inlined into `outer`.
pub const KERNEL: u64 = 0x7f00_0000_1234;

/// A path of the example's tree, outermost function first, with calls, self and total nanoseconds.
pub type Path = (&'static [&'static str], u64, i64, i64);

/// The tree of [`example`], computed by hand, callers before callees.
pub const TREE: [Path; 9] = [
    (&["main"], 1, 600, 3000),
    (&["main", "Model.step"], 2, 800, 2400),
    (&["main", "Model.step", "fib"], 1, 500, 800),
    (&["main", "Model.step", "fib", "fib"], 1, 300, 300),
    (&["main", "Model.step", "load batch"], 1, 400, 400),
    (&["main", "Model.step", "outer"], 1, 0, 400),
    (&["main", "Model.step", "outer", "inner"], 1, 400, 400),
    (&["fib"], 1, 900, 1000),
    (&["fib", "load batch"], 1, 100, 100),
];
/// The total time.
pub const TOTAL: i64 = 4000;

/// By function: name, calls, primitive calls, self and total nanoseconds.
pub const STATISTICS: [(&str, u64, u64, i64, i64); 6] = [
    ("main", 1, 1, 600, 3000),
    ("Model.step", 2, 2, 800, 2400),
    ("fib", 3, 2, 1700, 1800),
    ("load batch", 2, 2, 500, 500),
    ("outer", 1, 1, 0, 400),
    ("inner", 1, 1, 400, 400),
];

/// The frames of the example.
#[derive(Clone, Copy)]
struct Frames {
    main: RawFrame,
    step: RawFrame,
    fib: RawFrame,
    load: RawFrame,
    kernel: RawFrame,
}

/// Records two threads, recursion, Python, native and label frames, inlined calls, counters, instants with and without
/// details, samples and allocations. The times are those of [`TREE`].
///
/// Samples: weight 3 on main;Model.step;outer;inner and 2 on fib. Allocations: 4096 bytes on main;Model.step, which are
/// freed, and 100 bytes on main;Model.step;fib and 28 bytes without a stack, which are not.
pub fn example() -> Tape {
    example_from(&example_start())
}

/// Records the same with a slower clock.
pub fn example_with_ticks(ticks_per_second: u64) -> Tape {
    example_from(&ProcessStart { ticks_per_second, ..example_start() })
}

/// Returns the process of the example.
pub fn example_start() -> ProcessStart {
    ProcessStart {
        pid: PID,
        parent_pid: 1,
        host: "machine".to_owned(),
        executable: "/usr/bin/python3".to_owned(),
        command_line: vec!["python3".to_owned(), "train.py".to_owned()],
        python: Some("3.13.0".to_owned()),
        started_wall_ns: STARTED_NS,
        ticks_per_second: 1_000_000_000,
        ..ProcessStart::default()
    }
}

/// Records the same as another process.
pub fn example_from(start: &ProcessStart) -> Tape {
    let mut tape = Tape::started(start);
    tape.thread(MAIN_THREAD, PID, "main");
    tape.thread(WORKER, WORKER_TID, "worker");
    let functions = [("main", "/app/train.py", 1), ("Model.step", "/app/model.py", 10), ("fib", "/app/fib.py", 3)];
    let [main, step, fib] =
        functions.map(|(name, filename, line)| Tape::at(tape.python(name, filename, line), line + 2));
    tape.module(Module {
        path: "/opt/lib/libkernel.so".into(),
        build_id: BuildId::new(&[0xab; 20]),
        bias: 0x7f00_0000_0000,
        start: 0x7f00_0000_0000,
        end: 0x7f00_0000_8000,
    });
    let name = |name: &str, filename: &str, line, is_inlined| NativeName {
        name: name.to_owned(),
        filename: filename.to_owned(),
        line,
        is_inlined,
    };
    let kernel = vec![name("inner", "/src/kernel.h", 5, true), name("outer", "/src/kernel.c", 42, false)];
    tape.name_native(KERNEL, kernel);
    let frames = Frames { main, step, fib, load: span("load batch"), kernel: native(KERNEL) };
    record_spans(&mut tape, frames);
    tape
}

fn record_spans(tape: &mut Tape, Frames { main, step, fib, load, kernel }: Frames) {
    let on = |ticks| (MAIN_THREAD, ticks);
    tape.begin(on(0), main);
    tape.counter(on(50), span("queue length"), 1.0);
    tape.begin_at(on(100), step, &[main]);
    tape.allocate(on(150), (0x1000, 4096), &[step, main]);
    tape.begin(on(200), fib);
    tape.begin(on(300), fib);
    tape.allocate(on(400), (0x3000, 100), &[fib, step, main]);
    tape.end(on(600));
    tape.end(on(1000));
    tape.begin_with(on(1000), load, &[step, main], r#"{"size": 32}"#);
    tape.counter(on(1050), span("queue length"), 2.5);
    tape.end(on(1400));
    tape.instant(on(1450), span("checkpoint"), &[step, main]);
    tape.begin(on(1500), kernel);
    tape.sample(on(1700), &[kernel, step, main], 3);
    tape.end(on(1900));
    tape.free(on(1950), 0x1000);
    tape.end(on(2000));
    tape.begin_at(on(2100), step, &[main]);
    tape.end(on(2600));
    tape.instant_with(on(2700), span("saved"), &[], r#"{"path": "a\"b", "epoch": 1}"#);
    tape.end(on(3000));
    let on = |ticks| (WORKER, ticks);
    tape.begin(on(500), fib);
    tape.sample(on(600), &[fib], 2);
    tape.begin(on(900), load);
    tape.end(on(1000));
    tape.end(on(1500));
    tape.allocate(on(1600), (0x5000, 28), &[]);
}

/// Returns names that formats must handle. The empty name differs from no name.
pub fn nasty_names() -> Vec<String> {
    let names = [
        "</script><script>alert(1)</script>",
        "\"quoted\" 'twice'",
        "back\\slash \\n \\",
        "new\nline\r\ntab\tbell\u{7}nul\0",
        "a;b;c 12",
        " leading and trailing ",
        "",
        "\u{1f9f5} \u{fc}n\u{ef}c\u{f6}d\u{e9} \u{202e}rtl \u{fffd}",
        "<lambda>&amp;&#0;",
        "%s {0} ${x} `y` $(z)",
        "a (b.py:3)",
    ];
    let mut names: Vec<String> = names.map(str::to_owned).into();
    names.push("long ".repeat(2000));
    names
}

/// Records each of [`nasty_names`] as a label, as a Python function in a file of that name, and, once, as native code
/// in a module whose path is not UTF-8. Each takes 10 ns of self time and is called by the one before.
pub fn nasty() -> Tape {
    let mut tape = Tape::started(&ProcessStart {
        pid: 7,
        command_line: vec!["</title>\"".to_owned(), "\u{1f9f5}\n".to_owned()],
        ..ProcessStart::default()
    });
    let names = nasty_names();
    tape.thread(1, 7, &names[0]);
    tape.module(Module {
        path: OsStr::from_bytes(b"/tmp/not \xff\xfe utf-8;\"<.so").into(),
        build_id: None,
        bias: 0x10_0000,
        start: 0x10_0000,
        end: 0x20_0000,
    });
    let mut frames = vec![native(0x10_0042), native(0x66_0000)];
    for name in &names {
        frames.push(span(name));
        let function = tape.python(name, &format!("/tmp/{name}.py"), 3);
        frames.push(Tape::at(function, 5));
    }
    let count = frames.len() as u64;
    for (ticks, frame) in (0..).step_by(5).zip(&frames) {
        tape.begin((1, ticks), *frame);
    }
    for ticks in (count * 5..).step_by(5).take(frames.len()) {
        tape.end((1, ticks));
    }
    tape
}

/// Records threads that begin and end spans at random, with some samples, allocations, frees and counters.
pub fn random(seed: u64, events: usize) -> Tape {
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let mut tape =
        Tape::started(&ProcessStart { pid: PID, command_line: vec!["random".to_owned()], ..ProcessStart::default() });
    let mut frames: Vec<RawFrame> = (0..20).map(|number| span(&format!("span {number}"))).collect();
    for number in 0..20 {
        let function =
            tape.python(&format!("Class.function{number}"), &format!("/app/file{}.py", number % 5), number * 7);
        frames.extend((1..3).map(|line| Tape::at(function, number * 7 + line)));
    }
    frames.extend((1..10).map(|number| native(0x4000 + number * 16)));
    let mut open = [0_usize; 3];
    let mut ticks = 0;
    for (number, name) in (1..).zip(["main", "worker 1", "worker 2"]) {
        tape.thread(number, PID + number - 1, name);
    }
    for _ in 0..events {
        ticks += random.bits() % 1000;
        let thread = random.below(3);
        let at = (u32::try_from(thread).unwrap() + 1, ticks);
        let frame = frames[random.below(frames.len())];
        let depth = random.below(12);
        let stack: Vec<RawFrame> = (0..depth).map(|_| frames[random.below(frames.len())]).collect();
        match random.below(16) {
            0 => tape.sample(at, &stack, 1 + i64::try_from(depth).unwrap()),
            1 => tape.allocate(at, (16 * (random.bits() % 256), random.bits() % 10_000), &stack),
            2 => tape.free(at, 16 * (random.bits() % 256)),
            3 => tape.counter(at, frame, f64::from(random.byte_below(100)) / 4.0),
            4 => tape.instant(at, frame, &stack),
            5..10 if open[thread] < 40 => {
                tape.begin(at, frame);
                open[thread] += 1;
            }
            _ if open[thread] > 0 => {
                tape.end(at);
                open[thread] -= 1;
            }
            _ => tape.instant(at, frame, &[]),
        }
    }
    tape
}

//! A recording of memory with known figures.

use stackweave_recording::events::{self, Allocator};
use stackweave_recording::file::ProcessStart;
use stackweave_tapes::{Tape, span, stack_word};

use super::examples::{MAIN_THREAD, PID, WORKER, WORKER_TID, example_start};

/// Starts a process with two threads that records memory.
pub fn memory_tape(options: &[(&str, &str)]) -> Tape {
    memory_tape_of(PID, options)
}

fn memory_tape_of(pid: u32, options: &[(&str, &str)]) -> Tape {
    let options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let mut tape = Tape::started(&ProcessStart { pid, options: options.collect(), ..example_start() });
    tape.thread(MAIN_THREAD, PID, "main");
    tape.thread(WORKER, WORKER_TID, "worker");
    tape
}

/// Records two threads that allocate and free blocks and mappings; a mapping that is freed in part, a free that failed,
/// a block that is freed by another thread, a free of an unknown block, tags, and a host with two devices.
///
/// The heap of the process is [`OWN_CURVE`].
pub fn memory() -> Tape {
    memory_of(PID)
}

/// Records the same in another process.
pub fn memory_of(pid: u32) -> Tape {
    let mut tape = memory_tape_of(pid, &[("recorder", "memory"), ("memory.mode", "history")]);
    let functions = [("main", "/app/train.py", 1), ("Model.step", "/app/model.py", 10), ("load", "/app/load.py", 3)];
    let [main, step, load] =
        functions.map(|(name, filename, line)| Tape::at(tape.python(name, filename, line), line + 2));
    let on = |ticks| (MAIN_THREAD, ticks);
    let off = |ticks| (WORKER, ticks);
    tape.begin(on(500), span("epoch"));
    tape.allocate_by(on(1000), Allocator::Malloc, (0x5000_0000, 1000), &[step, main]);
    tape.tag(off(1500), Some("loading"));
    tape.allocate_by(off(2000), Allocator::Calloc, (0x5000_1000, 2000), &[load]);
    tape.allocate_by(on(3000), Allocator::Mmap, (0x7f00_0000_0000, 8192), &[main]);
    tape.event(on(4000), &events::MUNMAP, &[0x7f00_0000_0000, 4096]);
    tape.tag(off(4500), None);
    tape.allocate_by(off(5000), Allocator::PosixMemalign, (0x5100_0000, 1024), &[load]);
    tape.free(on(6000), 0x5000_0000);
    // A realloc that failed.
    tape.free(on(7000), 0x5000_1000);
    tape.event(on(7100), &events::KEPT, &[0x5000_1000]);
    tape.event(on(8000), &events::FREE_AT, &[0x5100_0000, stack_word(&[step, main])]);
    tape.free(on(8500), 0xdead_0000);
    tape.allocate_by(on(9000), Allocator::Malloc, (0x5000_0000, 0), &[]);
    tape.instant_with(on(9500), span("out of memory"), &[main], r#"{"size": 1000000}"#);
    let device = |number: i64| number.cast_unsigned();
    tape.event(on(10_000), &events::SEGMENT, &[0x1_0000, 4096, stack_word(&[main]), device(1), 7, 3]);
    tape.event(on(10_100), &events::HOST_ALLOCATE, &[0x1_0100, 512, stack_word(&[step, main]), device(1), 7, 3]);
    tape.event(on(10_200), &events::HOST_ALLOCATE, &[0x1_0400, 256, stack_word(&[load]), device(1), 7, 3]);
    tape.event(on(10_300), &events::HOST_FREE, &[0x1_0100, 512, 0, device(1), 7, 3]);
    tape.event(on(10_400), &events::SEGMENT, &[0x9_0000, 4096, 0, device(1), 0, 0]);
    tape.event(on(10_500), &events::SEGMENT_FREE, &[0x9_0000, 4096, 0, device(1), 0, 0]);
    tape.allocate_by(on(11_000), Allocator::Realloc, (0x5000_0000, 24), &[step, main]);
    tape.end(on(12_000));
    tape
}

/// The heap of [`memory`] at each change: time and bytes.
pub const OWN_CURVE: [(u64, u64); 10] = [
    (1000, 1000),
    (2000, 3000),
    (3000, 11_192),
    (4000, 7096),
    (5000, 8120),
    (6000, 7120),
    (7000, 5120),
    (7100, 7120),
    (8000, 6096),
    (11_000, 6120),
];
